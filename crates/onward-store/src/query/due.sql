-- Due times: when the sweep must check each plan. The last parameter of a query of all tenants is the
-- node of a distributed database, or null.

-- name: due_sooner
-- A row change: `row_change.rs` describes it, and the backends render it.

-- name: due_set
-- A row change.

-- name: due_clear
-- A row change.

-- name: due_late (sqlite)
-- Differs because there is no row security here. The plans that would be checked after a step stalls,
-- or that have a step with a time after `$2`: a wrong clock has written these times.
SELECT tenant_id, plan_id, at FROM due
WHERE at > $1 AND $3 IS NULL AND EXISTS (SELECT 1 FROM steps WHERE steps.tenant_id = due.tenant_id
    AND steps.plan_id = due.plan_id AND steps.status = 'in_progress'
    AND (steps.stalls_at + 1 < due.at OR steps.started_at > $2 OR steps.last_progress_at > $2));

-- name: due_late (postgres)
-- Differs because row security allows only a function to read the rows of all tenants.
SELECT tenant_id, plan_id, at FROM onward_due_late($1, $2, $3);

-- name: due_advance
UPDATE due SET at = $3 WHERE tenant_id = $1 AND plan_id = $2 AND at > $3;

-- name: plan_tag
UPDATE plans SET version_tag = $3 WHERE tenant_id = $1 AND plan_id = $2;

-- name: due_first (sqlite)
-- Differs because there is no row security here.
SELECT CASE WHEN $1 IS NULL THEN (SELECT min(at) FROM (SELECT min(at) AS at FROM due
    UNION ALL SELECT min(at) AS at FROM due_calls) AS firsts) END AS at;

-- name: due_first (postgres)
-- Differs because row security allows only a function to read the rows of all tenants.
SELECT onward_due_first($1) AS at;

-- name: due_between (sqlite)
-- Differs because there is no row security here.
SELECT tenant_id, plan_id, at FROM (
    SELECT tenant_id, plan_id, at, row_number() OVER (PARTITION BY tenant_id ORDER BY at * $3) AS turn
    FROM due WHERE at > $1 AND at <= $2 AND $5 IS NULL) AS queued
ORDER BY turn, at * $3 LIMIT $4;

-- name: due_between (postgres)
-- Differs because row security allows only a function to read the rows of all tenants.
SELECT tenant_id, plan_id, at FROM onward_due_between($1, $2, $3, $4, $5);

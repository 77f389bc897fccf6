-- When the sweep must check which plan. Outside row security.

-- name: due_sooner (sqlite)
-- Differs because no other writer is active meanwhile, so `$4` has no effect.
INSERT INTO due (tenant_id, plan_id, at) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, plan_id) DO UPDATE SET at = excluded.at
WHERE excluded.at < due.at AND $4 IS NOT NULL;

-- name: due_sooner (postgres)
-- Differs because an unchanged row would still be locked, which writes to it. A row that is early
-- enough is not updated if it is not due before `$4`: until then no sweep postpones it. As for
-- events, there may be padding rows without a plan.
INSERT INTO due (tenant_id, plan_id, at)
SELECT $1, new.plan_id, new.at
FROM (VALUES (CAST($2 AS uuid), CAST($3 AS bigint), CAST($4 AS bigint))) AS new (plan_id, at, quiet)
WHERE new.plan_id IS NOT NULL AND (
    SELECT was.at > new.quiet AND was.at <= new.at
    FROM due AS was WHERE was.tenant_id = $1 AND was.plan_id = new.plan_id) IS NOT TRUE
ON CONFLICT (tenant_id, plan_id) DO UPDATE SET at = excluded.at WHERE excluded.at < due.at;

-- name: due_set
INSERT INTO due (tenant_id, plan_id, at) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, plan_id) DO UPDATE SET at = excluded.at;

-- name: due_clear (sqlite)
-- Differs because each row is deleted separately here.
DELETE FROM due WHERE tenant_id = $1 AND plan_id = $2;

-- name: due_clear (postgres)
-- Differs because several plans are several rows of one statement, found by key as in `plan_move`.
DELETE FROM due USING (VALUES (CAST($2 AS uuid))) AS old (plan_id)
WHERE due.tenant_id = $1 AND due.plan_id = old.plan_id AND old.plan_id = least(old.plan_id);

-- name: due_first
SELECT min(at) AS at FROM (SELECT min(at) AS at FROM due
    UNION ALL SELECT min(at) AS at FROM due_calls) AS firsts;

-- name: due_until
SELECT tenant_id, plan_id, at FROM due WHERE at <= $1 ORDER BY at LIMIT $2;

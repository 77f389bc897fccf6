-- Which plans must be looked at, and when. Stands outside of the tenants.

-- name: due_sooner (sqlite)
-- Differs because nobody else writes meanwhile.
INSERT INTO due (tenant_id, plan_id, at) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, plan_id) DO UPDATE SET at = excluded.at WHERE excluded.at < due.at;

-- name: due_sooner (postgres)
-- Differs because a row that stays as it is would be locked all the same, which writes to it. One that is
-- soon enough is left alone where it is not due before `$4`: until then no sweep puts it off.
INSERT INTO due (tenant_id, plan_id, at)
SELECT $1, $2, CAST($3 AS bigint) WHERE NOT EXISTS (
    SELECT 1 FROM due WHERE tenant_id = $1 AND plan_id = $2 AND at > CAST($4 AS bigint) AND at <= $3)
ON CONFLICT (tenant_id, plan_id) DO UPDATE SET at = excluded.at WHERE excluded.at < due.at;

-- name: due_set
INSERT INTO due (tenant_id, plan_id, at) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, plan_id) DO UPDATE SET at = excluded.at;

-- name: due_clear
DELETE FROM due WHERE tenant_id = $1 AND plan_id = $2;

-- name: due_first
SELECT min(at) AS at FROM (SELECT min(at) AS at FROM due
    UNION ALL SELECT min(at) AS at FROM due_calls) AS firsts;

-- name: due_until
SELECT tenant_id, plan_id, at FROM due WHERE at <= $1 ORDER BY at LIMIT $2;

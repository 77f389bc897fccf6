-- Which plans must be looked at, and when. Stands outside of the tenants.

-- name: due_sooner (sqlite)
-- Differs because nobody else writes meanwhile.
INSERT INTO due (tenant_id, plan_id, at) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, plan_id) DO UPDATE SET at = excluded.at WHERE excluded.at < due.at;

-- name: due_sooner (postgres)
-- Differs because a row that stays as it is would be locked all the same, which writes to it. One that is
-- soon enough is left alone where it is not due before `$4`: until then no sweep puts it off. As of events, there
-- may be rows of no plan.
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
-- Differs because each row is removed by itself here.
DELETE FROM due WHERE tenant_id = $1 AND plan_id = $2;

-- name: due_clear (postgres)
-- Differs because several plans are several rows of one change, looked for as by `plan_move`.
DELETE FROM due USING (VALUES (CAST($2 AS uuid))) AS old (plan_id)
WHERE due.tenant_id = $1 AND due.plan_id = old.plan_id AND old.plan_id = least(old.plan_id);

-- name: due_first
SELECT min(at) AS at FROM (SELECT min(at) AS at FROM due
    UNION ALL SELECT min(at) AS at FROM due_calls) AS firsts;

-- name: due_until
SELECT tenant_id, plan_id, at FROM due WHERE at <= $1 ORDER BY at LIMIT $2;

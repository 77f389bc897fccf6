-- Tenants and the tenant log.

-- name: tenant
SELECT tenant_id, agents_decide_reviews, created_at FROM tenants WHERE tenant_id = $1;

-- name: tenant_insert
INSERT INTO tenants (tenant_id, agents_decide_reviews, created_at) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id) DO NOTHING;

-- name: tenant_update
UPDATE tenants SET agents_decide_reviews = $2 WHERE tenant_id = $1;

-- name: tenant_checked
UPDATE tenants SET checked_at = $2 WHERE tenant_id = $1;

-- The following statements change no row, but wait like every write while their table is locked.

-- name: check_plans
UPDATE plans SET seq = seq WHERE tenant_id = $1 AND plan_id = $2;

-- name: check_steps
UPDATE steps SET attempt = attempt WHERE tenant_id = $1 AND step_id = $2;

-- name: check_events
INSERT INTO events SELECT * FROM events WHERE tenant_id = $1 AND plan_id = $2;

-- name: check_due
UPDATE due SET at = at WHERE tenant_id = $1 AND plan_id = $2;

-- name: obstacles (sqlite)
-- Differs because a file has neither table locks nor standbys.
SELECT '' AS obstacle, '' AS detail WHERE 0 = 1;

-- name: obstacles (postgres)
-- Differs because they are in the catalog of the server.
SELECT obstacle, detail FROM onward_obstacles();

-- name: tenants_all (sqlite)
-- Differs because there is no row security here.
SELECT tenant_id, agents_decide_reviews, created_at FROM tenants WHERE $1 IS NULL ORDER BY tenant_id;

-- name: tenants_all (postgres)
-- Differs because row security allows only a function to read the rows of all tenants.
SELECT tenant_id, agents_decide_reviews, created_at FROM onward_tenants($1);

-- name: tenant_log_insert
INSERT INTO tenant_log (tenant_id, entry_id, at, actor, action, details)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: tenant_log_latest
SELECT entry_id, at, actor, action, details FROM tenant_log
WHERE tenant_id = $1 ORDER BY at DESC, entry_id DESC LIMIT $2;

-- name: tenant_bytes
-- Of all texts of a tenant. Sizes are read without the texts.
SELECT CAST(coalesce((SELECT sum(octet_length(details)) FROM events WHERE tenant_id = $1), 0)
    + coalesce((SELECT sum(octet_length(content)) FROM artifacts WHERE tenant_id = $1), 0)
    + coalesce((SELECT sum(octet_length(content)) FROM outputs WHERE tenant_id = $1), 0)
    + coalesce((SELECT sum(octet_length(data)) FROM extractions WHERE tenant_id = $1), 0)
    + coalesce((SELECT sum(coalesce(octet_length(state), 0) + coalesce(octet_length(result), 0))
        FROM tasks WHERE tenant_id = $1), 0)
    + coalesce((SELECT sum(octet_length(request) + octet_length(response)) FROM tool_calls
        WHERE tenant_id = $1), 0) AS bigint) AS bytes;

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

-- name: tenants_all (sqlite)
-- Differs because there is no row security here.
SELECT tenant_id, agents_decide_reviews, created_at FROM tenants ORDER BY tenant_id;

-- name: tenants_all (postgres)
-- Differs because row security allows only a function to read the rows of all tenants.
SELECT tenant_id, agents_decide_reviews, created_at FROM onward_tenants();

-- name: tenant_log_insert
INSERT INTO tenant_log (tenant_id, entry_id, at, actor, action, details)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: tenant_log_latest
SELECT entry_id, at, actor, action, details FROM tenant_log
WHERE tenant_id = $1 ORDER BY at DESC, entry_id DESC LIMIT $2;

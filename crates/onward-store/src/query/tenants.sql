-- Tenants and the tenant log.

-- name: tenant
SELECT tenant_id, agents_decide_reviews, created_at FROM tenants WHERE tenant_id = $1;

-- name: tenant_insert
INSERT INTO tenants (tenant_id, agents_decide_reviews, created_at) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id) DO NOTHING;

-- name: tenants_all (sqlite)
-- Differs because there is no row security here.
SELECT tenant_id, agents_decide_reviews, created_at FROM tenants ORDER BY tenant_id;

-- name: tenants_all (postgres)
-- Differs because row security shows a tenant only itself, and all tenants to an operator.
WITH operator AS MATERIALIZED (SELECT set_config('onward.operator', 'on', true) AS asks)
SELECT seen.tenant_id, seen.agents_decide_reviews, seen.created_at FROM operator
CROSS JOIN LATERAL (
    SELECT tenant_id, agents_decide_reviews, created_at FROM tenants
    WHERE operator.asks = 'on' OFFSET 0
) AS seen ORDER BY seen.tenant_id;

-- name: tenant_log_insert
INSERT INTO tenant_log (tenant_id, entry_id, at, actor, action, details)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: tenant_log_latest
SELECT entry_id, at, actor, action, details FROM tenant_log
WHERE tenant_id = $1 ORDER BY at DESC, entry_id DESC LIMIT $2;

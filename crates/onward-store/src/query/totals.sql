-- Totals over all tenants, for the operator of the server.

-- name: plan_groups (sqlite)
-- Differs because there is no row security here. The plans of all tenants, grouped by the facts for
-- their attention at `$1`. Captured plans without an action since `$3` are archived, and no agent has
-- worked since `$2` on a plan that is idle.
SELECT status, failure_kind, failed, origin, archived, budget, pending, in_progress,
    awaiting_input, idle, stuck, orphaned, ready, count(*) AS plans
FROM (SELECT CAST(plans.status AS text) AS status, CAST(plans.failure_kind AS text) AS failure_kind,
        CASE WHEN plans.failed > 0 THEN CAST(1 AS bigint) ELSE 0 END AS failed,
        CAST(plans.origin AS text) AS origin,
        CASE WHEN plans.ended_at IS NULL AND plans.origin = 'agent' AND plans.acted_at < $3
            THEN CAST(1 AS bigint) ELSE 0 END AS archived,
        CASE WHEN plans.ended_at IS NULL THEN CAST(plans.budget AS text) END AS budget,
        CASE WHEN plans.ended_at IS NULL AND plans.pending > 0
            THEN CAST(1 AS bigint) ELSE 0 END AS pending,
        CASE WHEN plans.ended_at IS NULL AND plans.in_progress > 0
            THEN CAST(1 AS bigint) ELSE 0 END AS in_progress,
        CASE WHEN plans.ended_at IS NULL AND plans.awaiting_input > 0
            THEN CAST(1 AS bigint) ELSE 0 END AS awaiting_input,
        CASE WHEN plans.ended_at IS NULL AND plans.worked_at < $2
            THEN CAST(1 AS bigint) ELSE 0 END AS idle,
        CASE WHEN plans.ended_at IS NULL THEN coalesce(open_steps.stuck, 0) ELSE 0 END AS stuck,
        CASE WHEN plans.ended_at IS NULL THEN coalesce(open_steps.orphaned, 0) ELSE 0 END AS orphaned,
        CASE WHEN plans.ended_at IS NULL THEN coalesce(open_steps.ready, 0) ELSE 0 END AS ready
    FROM plans LEFT JOIN (SELECT steps.tenant_id AS tenant_id, steps.plan_id AS plan_id,
            max(CASE WHEN steps.status = 'in_progress' AND steps.stalls_at < $1
                THEN CAST(1 AS bigint) ELSE 0 END) AS stuck,
            min(CASE WHEN steps.status = 'pending' THEN NULL WHEN steps.orphaned_at IS NULL
                THEN CAST(0 AS bigint) ELSE 1 END) AS orphaned,
            max(CASE WHEN steps.status = 'pending' THEN CAST(1 AS bigint) ELSE 0 END) AS ready
        FROM steps WHERE steps.status = 'in_progress' OR (steps.status = 'pending'
            AND steps.stalls_at IS NULL AND steps.open_dependencies = 0)
        GROUP BY steps.tenant_id, steps.plan_id) AS open_steps
    ON open_steps.tenant_id = plans.tenant_id AND open_steps.plan_id = plans.plan_id) AS facts
GROUP BY status, failure_kind, failed, origin, archived, budget, pending, in_progress,
    awaiting_input, idle, stuck, orphaned, ready;

-- name: plan_groups (postgres)
-- Differs because row security allows only a function to read the rows of all tenants.
SELECT status, failure_kind, failed, origin, archived, budget, pending, in_progress,
    awaiting_input, idle, stuck, orphaned, ready, plans
FROM onward_plan_groups($1, $2, $3);

-- name: total_bytes (sqlite)
-- Differs because a file has pages. Free pages do not count.
SELECT (page_count - freelist_count) * page_size AS bytes
FROM pragma_page_count, pragma_freelist_count, pragma_page_size;

-- name: total_bytes (postgres)
-- Differs because the tables are in the catalog of the server.
SELECT onward_total_bytes() AS bytes;

-- name: tenants_expired (sqlite)
-- Differs because there is no row security here. The tenants with data that retention deletes.
SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM plans AS expired
    WHERE expired.tenant_id = tenants.tenant_id AND expired.status IN ('completed', 'failed')
        AND expired.acted_about <= CAST($1 AS bigint) / 10000 AND expired.updated_at < CAST($1 AS bigint))
UNION SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM tool_calls AS expired
    WHERE expired.tenant_id = tenants.tenant_id AND expired.at < $2)
UNION SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM extractions AS expired
    WHERE expired.tenant_id = tenants.tenant_id AND expired.artifact_id IS NULL AND expired.created_at < $2)
UNION SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM tasks AS expired
    WHERE expired.tenant_id = tenants.tenant_id AND expired.plan_id IS NULL AND expired.created_at < $2)
UNION SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM sessions AS expired
    WHERE expired.tenant_id = tenants.tenant_id AND expired.last_seen_at < $3)
UNION SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM directory_plans AS expired
    WHERE expired.tenant_id = tenants.tenant_id AND expired.seen_at < $3)
ORDER BY tenant_id;

-- name: tenants_expired (postgres)
-- Differs because row security allows only a function to read the rows of all tenants.
SELECT tenant_id FROM onward_tenants_expired($1, $2, $3) ORDER BY tenant_id;

-- The facts of a command, in one statement, so that all of them come from one snapshot even if the
-- plan is not locked. The columns of several tables follow each other, each group after the key of
-- its table.

-- Each table is found by the parameters alone, never through another table: a query plan made while
-- the tables are small stays efficient when they are large.

-- What is known of the stored plan beside its head. Most plans have no branches and no reviews, so the
-- response to a claim need not search for them.

-- fragment: known
acted_about, version_tag,
CASE WHEN EXISTS (SELECT 1 FROM branches
        WHERE branches.tenant_id = $1 AND branches.plan_id = plans.plan_id)
    OR EXISTS (SELECT 1 FROM {reviews}
        WHERE events.tenant_id = $1 AND events.plan_id = plans.plan_id AND name = 'user_reviewed')
    THEN CAST(1 AS bigint) ELSE 0 END AS has_context

-- fragment: first_ready
status = 'pending' AND stalls_at IS NULL AND open_dependencies = 0
ORDER BY priority DESC, step_order LIMIT 1

-- The first step with undelivered feedback that the session `$3` holds. A caller without a session
-- receives the feedback for claims without one.

-- fragment: held_undelivered
undelivered = 1 AND status = 'in_progress' AND claim_session IS NOT DISTINCT FROM $3
ORDER BY step_order LIMIT 1

-- A single row is found by its key: a subquery that returns a list would be copied into a temporary
-- table first.

-- fragment: plan_of_step
(SELECT plan_id FROM steps WHERE tenant_id = $1 AND step_id = $2)

-- fragment: step_facts
(SELECT {head}, {known} FROM plans WHERE tenant_id = $1 AND plan_id = {plan_of_step}) AS plan
CROSS JOIN (SELECT {step}, open_dependencies FROM steps WHERE tenant_id = $1 AND step_id = $2)
    AS step
LEFT JOIN (SELECT {branch}, ordinal FROM branches WHERE tenant_id = $1 AND after_step = $2) AS branch
    ON 1 = 1

-- fragment: needed
CASE WHEN EXISTS (SELECT 1 FROM dependencies WHERE tenant_id = $1 AND needs = $2)
    THEN CAST(1 AS bigint) ELSE 0 END AS needed

-- name: plan_held (postgres)
-- Differs because a write transaction on SQLite already locks the whole file; here the plan must be
-- locked until the commit.
SELECT plan_id FROM plans WHERE tenant_id = $1 AND plan_id = $2 FOR NO KEY UPDATE;

-- name: plan_of_step_held (postgres)
-- Differs for the same reason.
SELECT plan_id FROM plans WHERE tenant_id = $1 AND plan_id = {plan_of_step} FOR NO KEY UPDATE;

-- name: plan_facts
SELECT {head}, {known} FROM plans WHERE tenant_id = $1 AND plan_id = $2;

-- name: step_facts
-- One row per branch of the step, in any order, and one row if it has none.
SELECT plan.*, step.*, {needed}, branch.* FROM {step_facts};

-- name: step_facts_and_ready
-- Also the step of the same plan that would be assigned next.
SELECT plan.*, step.*, {needed}, branch.*, ready.* FROM {step_facts}
LEFT JOIN (SELECT {step} FROM steps WHERE tenant_id = $1 AND step_id = (SELECT step_id FROM steps
    WHERE tenant_id = $1 AND plan_id = {plan_of_step} AND {first_ready})) AS ready ON 1 = 1;

-- fragment: next_facts
(SELECT {head}, {known} FROM plans WHERE tenant_id = $1 AND plan_id = $2) AS plan
LEFT JOIN (SELECT {step} FROM steps WHERE tenant_id = $1 AND step_id = (SELECT step_id FROM steps
    WHERE tenant_id = $1 AND plan_id = $2 AND {held_undelivered})) AS undelivered ON 1 = 1
LEFT JOIN (SELECT {step} FROM steps WHERE tenant_id = $1 AND step_id = (SELECT step_id FROM steps
    WHERE tenant_id = $1 AND plan_id = $2 AND {first_ready})) AS ready ON 1 = 1

-- fragment: matches_no_state
((status <> 'pending' AND status <> 'in_progress' AND status <> 'awaiting_input'
    AND status <> 'completed' AND status <> 'skipped' AND status <> 'failed')
    OR (status = 'pending' AND (claim_token IS NOT NULL OR stalls_at IS NOT NULL
        OR typeof(open_dependencies) <> 'integer'))
    OR (status = 'completed' OR status = 'skipped' OR status = 'failed') <> (ended_at IS NOT NULL))

-- name: next_facts (sqlite)
-- Differs because a file can contain a row that matches no state, which the search for the next
-- step would not find.
SELECT plan.*, (SELECT step_id FROM steps WHERE tenant_id = $1 AND plan_id = $2
    AND {matches_no_state} ORDER BY step_order LIMIT 1) AS corrupt_step, undelivered.*, ready.*
FROM {next_facts};

-- name: next_facts (postgres)
-- Differs because the server enforces types and constraints.
SELECT plan.*, CAST(NULL AS uuid) AS corrupt_step, undelivered.*, ready.* FROM {next_facts};

-- name: open_dependencies
-- The first open dependencies of a step, by order.
SELECT step_id, step_order, status FROM steps
WHERE tenant_id = $1 AND (status IN ('pending', 'in_progress', 'awaiting_input')
        OR (status = 'failed' AND (SELECT dependent.on_dependency_failure FROM steps AS dependent
            WHERE dependent.tenant_id = $1 AND dependent.step_id = $2) = 'block'))
    AND step_id IN (SELECT needs FROM dependencies WHERE tenant_id = $1 AND step_id = $2)
ORDER BY step_order LIMIT $3;

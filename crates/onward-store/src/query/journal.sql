-- What was done in the plans of a directory.

-- name: journal
-- Completed steps of all plans of a directory, the last one first, after `$3` and `$4`. In SQLite, a
-- cross join keeps the order of the tables: the steps are found by their plan.
SELECT plans.plan_id AS plan_id, plans.name AS name, plans.status AS status,
    plans.completed + plans.skipped AS done, plans.pending + plans.in_progress
    + plans.awaiting_input + plans.completed + plans.skipped + plans.failed AS total,
    steps.step_id AS step_id, steps.step_order AS step_order, steps.title AS title,
    steps.step_type AS step_type, steps.ended_at AS ended_at
FROM directory_plans CROSS JOIN plans CROSS JOIN steps
WHERE directory_plans.tenant_id = $1 AND directory_plans.directory = $2
    AND plans.tenant_id = $1 AND plans.plan_id = directory_plans.plan_id
    AND steps.tenant_id = $1 AND steps.plan_id = directory_plans.plan_id
    AND steps.status = 'completed'
    AND (steps.ended_at < $3 OR (steps.ended_at = $3 AND steps.step_id < $4))
ORDER BY steps.ended_at DESC, steps.step_id DESC LIMIT $5;

-- name: journal_directories
-- Directories with plans, the most recent activity first.
SELECT directory, max(seen_at) AS seen_at FROM directory_plans WHERE tenant_id = $1
GROUP BY directory ORDER BY max(seen_at) DESC, directory LIMIT $2;

-- Tool calls that MCP clients follow as tasks.

-- fragment: task
task_id, actor, tool, plan_id, state, version, created_at, updated_at, outcome, result

-- name: task_insert
INSERT INTO tasks (tenant_id, task_id, actor, tool, plan_id, state, version, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $7);

-- name: task
SELECT {task} FROM tasks WHERE tenant_id = $1 AND task_id = $2 AND actor = $3;

-- name: task_update
-- A task with an outcome does not change.
UPDATE tasks SET state = $4, updated_at = $5, outcome = $6, result = $7, version = version + 1
WHERE tenant_id = $1 AND task_id = $2 AND version = $3 AND outcome IS NULL;

-- name: tasks_page
SELECT {task} FROM tasks WHERE tenant_id = $1 AND task_id > $2 ORDER BY task_id LIMIT $3;

-- name: tasks_delete_before
-- Tasks without a plan: nothing else references them.
DELETE FROM tasks WHERE tenant_id = $1 AND plan_id IS NULL AND created_at < $2;

-- name: tasks_delete
DELETE FROM tasks WHERE tenant_id = $1 AND plan_id = $2;

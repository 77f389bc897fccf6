-- Skill executions of agents.

-- fragment: skill
execution_id, skill_name, status, session, plan_id, metadata, error_message, started_at,
updated_at, ended_at

-- name: skill_locked (sqlite)
-- Differs because the write transaction already locks the whole file.
SELECT {skill} FROM skill_executions WHERE tenant_id = $1 AND execution_id = $2;

-- name: skill_locked (postgres)
-- Differs because the execution must be locked until the commit.
SELECT {skill} FROM skill_executions WHERE tenant_id = $1 AND execution_id = $2
FOR NO KEY UPDATE;

-- name: skill_started_locked (sqlite)
-- Differs for the same reason.
SELECT {skill} FROM skill_executions
WHERE tenant_id = $1 AND session = $2 AND status = 'started'
ORDER BY started_at DESC, execution_id DESC LIMIT 1;

-- name: skill_started_locked (postgres)
-- Differs for the same reason.
SELECT {skill} FROM skill_executions
WHERE tenant_id = $1 AND session = $2 AND status = 'started'
ORDER BY started_at DESC, execution_id DESC LIMIT 1
FOR NO KEY UPDATE;

-- name: skills_of_plan
SELECT {skill} FROM skill_executions
WHERE tenant_id = $1 AND plan_id = $2 ORDER BY started_at DESC, execution_id DESC LIMIT $3;

-- name: skills_page
SELECT {skill} FROM skill_executions
WHERE tenant_id = $1 AND execution_id > $2 ORDER BY execution_id LIMIT $3;

-- name: skill_seen
SELECT {skill} FROM skill_executions WHERE tenant_id = $1 AND execution_id = $2;

-- name: skills_listed
-- Latest start first; `$2` and `$3` are the end of the previous page.
SELECT {skill} FROM skill_executions
WHERE tenant_id = $1 AND started_at <= $2 AND (started_at < $2 OR execution_id < $3)
    AND (CAST($4 AS text) IS NULL OR status = $4) AND (CAST($5 AS text) IS NULL OR skill_name = $5)
ORDER BY started_at DESC, execution_id DESC LIMIT $6;

-- name: skills_by_status
-- Index-only scan.
SELECT status, count(*) AS executions, CAST(sum(CASE WHEN ended_at > started_at
    THEN ended_at - started_at ELSE 0 END) AS bigint) AS took
FROM skill_executions WHERE tenant_id = $1 GROUP BY status ORDER BY status;

-- name: skills_failed_since
SELECT count(*) AS executions FROM skill_executions
WHERE tenant_id = $1 AND status = 'failed' AND ended_at >= $2;

-- name: skill_insert
INSERT INTO skill_executions (tenant_id, execution_id, status, session, plan_id, metadata,
    error_message, updated_at, ended_at, skill_name, started_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: skill_update
UPDATE skill_executions SET status = $3, session = $4, plan_id = $5, metadata = $6,
    error_message = $7, updated_at = $8, ended_at = $9
WHERE tenant_id = $1 AND execution_id = $2;

-- name: skills_delete_ended
-- Ended executions are deleted with their plan.
DELETE FROM skill_executions WHERE tenant_id = $1 AND plan_id = $2 AND ended_at IS NOT NULL;

-- name: skills_orphan
-- Running executions remain when the plan is deleted: their end will still be reported.
UPDATE skill_executions SET plan_id = NULL WHERE tenant_id = $1 AND plan_id = $2;

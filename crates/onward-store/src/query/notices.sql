-- Notifications and their delivery state.

-- fragment: notice
plan_id, finding, kind, step_id, attempt, since_at, note, found_at, delivery, tries, next_at,
ended_at, last_error

-- name: notice_insert
-- A finding that is found again keeps its existing notification.
INSERT INTO notices (tenant_id, plan_id, finding, kind, step_id, attempt, since_at, note, found_at,
    delivery, tries, next_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'waiting', 0, $9)
ON CONFLICT (tenant_id, plan_id, finding) DO NOTHING;

-- name: notices_due_locked (sqlite)
-- Differs because the write transaction already locks the whole file.
SELECT {notice} FROM notices
WHERE tenant_id = $1 AND next_at <= $2 ORDER BY next_at LIMIT $3;

-- name: notices_due_locked (postgres)
-- Differs because the rows must be locked until the commit; concurrent callers skip them.
SELECT {notice} FROM notices
WHERE tenant_id = $1 AND next_at <= $2 ORDER BY next_at LIMIT $3
FOR NO KEY UPDATE SKIP LOCKED;

-- name: notice_first
SELECT min(next_at) AS next_at FROM notices WHERE tenant_id = $1 AND next_at IS NOT NULL;

-- name: notice_update
-- An update by another process takes precedence. The notification is deleted with its plan.
UPDATE notices SET delivery = $4, tries = $5, next_at = $6, ended_at = $7, last_error = $8
WHERE tenant_id = $1 AND plan_id = $2 AND finding = $3 AND delivery = 'waiting' AND tries = $9;

-- name: notices_after
SELECT {notice} FROM notices
WHERE tenant_id = $1 AND found_at > $2 ORDER BY found_at LIMIT $3;

-- name: notices_latest
SELECT {notice} FROM notices WHERE tenant_id = $1 ORDER BY found_at DESC LIMIT $2;

-- name: notices_delete
DELETE FROM notices WHERE tenant_id = $1 AND plan_id = $2;

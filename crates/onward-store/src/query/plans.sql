-- Plans: their head, what their author said, their list.

-- fragment: head
plan_id, status, review_step, review_id, marked_at, ended_at, failure_kind, failure_words,
last_session, pending, in_progress, awaiting_input, completed, skipped, failed, seq,
stall_threshold_ms, on_stall

-- fragment: sheet
name, research_question, design_rationale, output_formatting_notes, created_at, updated_at

-- name: plan_sheet
SELECT {head}, {sheet} FROM plans WHERE tenant_id = $1 AND plan_id = $2;

-- name: plan_sheet_of_step
SELECT {head}, {sheet} FROM plans WHERE tenant_id = $1
    AND plan_id = (SELECT plan_id FROM steps WHERE tenant_id = $1 AND step_id = $2);

-- name: plans_active
-- From the newest change on; `$2` and `$3` are where the page before ended.
-- The inner list first, so that what has stalled is counted for those alone that are shown.
SELECT {head}, {sheet},
    (SELECT count(*) FROM steps WHERE steps.tenant_id = page.tenant_id
        AND steps.plan_id = page.plan_id AND steps.status = 'in_progress' AND stalls_at < $4) AS stalled
FROM (SELECT * FROM plans
    WHERE tenant_id = $1 AND ended_at IS NULL AND updated_about <= CAST($2 AS bigint) / 10000
        AND (updated_at < $2 OR (updated_at = $2 AND plan_id < $3))
    ORDER BY updated_about DESC, updated_at DESC, plan_id DESC LIMIT $5) AS page
ORDER BY updated_at DESC, plan_id DESC;

-- name: plans_finished
SELECT {head}, {sheet}, 0 * CAST($4 AS bigint) AS stalled
FROM plans
WHERE tenant_id = $1 AND ended_at IS NOT NULL AND updated_about <= CAST($2 AS bigint) / 10000
    AND (updated_at < $2 OR (updated_at = $2 AND plan_id < $3))
ORDER BY updated_about DESC, updated_at DESC, plan_id DESC LIMIT $5;

-- name: plans_between
-- Plans whose id begins in a given way: ids between two bounds.
SELECT plan_id FROM plans
WHERE tenant_id = $1 AND plan_id >= $2 AND plan_id <= $3 ORDER BY plan_id LIMIT 2;

-- name: plans_ended_before
SELECT plan_id FROM plans
WHERE tenant_id = $1 AND ended_at IS NOT NULL AND updated_about <= CAST($2 AS bigint) / 10000
    AND updated_at < $2
ORDER BY updated_about, updated_at, plan_id LIMIT $3;

-- name: plans_by_status (sqlite)
-- Differs because here the rows would be looked up one by one, in the order of their ids.
SELECT status, count(*) AS plans, CAST(
    sum(pending + in_progress + awaiting_input + completed + skipped + failed) AS bigint) AS steps
FROM plans NOT INDEXED WHERE tenant_id = $1 GROUP BY status ORDER BY status;

-- name: plans_by_status (postgres)
-- Differs because here the planner sees that by itself.
SELECT status, count(*) AS plans, CAST(
    sum(pending + in_progress + awaiting_input + completed + skipped + failed) AS bigint) AS steps
FROM plans WHERE tenant_id = $1 GROUP BY status ORDER BY status;

-- name: plan_insert
INSERT INTO plans (tenant_id, plan_id, status, review_step, review_id, marked_at, ended_at,
    failure_kind, failure_words, last_session, pending, in_progress, awaiting_input, completed,
    skipped, failed, seq, stall_threshold_ms, on_stall, name, research_question, design_rationale,
    output_formatting_notes, created_at, updated_at, updated_about)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    $21, $22, $23, $24, $25, CAST($25 AS bigint) / 10000);

-- name: plan_update (sqlite)
-- Differs because here an index counts as changed when one of its columns is set, to whatever value:
-- a plan that goes on has not ended, and `plan_touch` says when it changed, where that is news.
UPDATE plans SET status = $3, review_step = $4, review_id = $5, marked_at = $6, last_session = $10,
    pending = $11, in_progress = $12, awaiting_input = $13, completed = $14, skipped = $15,
    failed = $16, seq = $17, updated_at = $18
WHERE tenant_id = $1 AND plan_id = $2 AND seq = $19;

-- name: plan_update (postgres)
-- Differs because here every parameter must be used.
UPDATE plans SET status = $3, review_step = $4, review_id = $5, marked_at = $6, ended_at = $7,
    failure_kind = $8, failure_words = $9, last_session = $10, pending = $11, in_progress = $12,
    awaiting_input = $13, completed = $14, skipped = $15, failed = $16, seq = $17, updated_at = $18,
    updated_about = CAST($18 AS bigint) / 10000
WHERE tenant_id = $1 AND plan_id = $2 AND seq = $19;

-- name: plan_end
UPDATE plans SET status = $3, review_step = $4, review_id = $5, marked_at = $6, ended_at = $7,
    failure_kind = $8, failure_words = $9, last_session = $10, pending = $11, in_progress = $12,
    awaiting_input = $13, completed = $14, skipped = $15, failed = $16, seq = $17, updated_at = $18,
    updated_about = CAST($18 AS bigint) / 10000
WHERE tenant_id = $1 AND plan_id = $2 AND seq = $19;

-- name: plan_touch (sqlite)
-- Differs because PostgreSQL sees by itself that an indexed column keeps its value.
UPDATE plans SET updated_about = $3 WHERE tenant_id = $1 AND plan_id = $2;

-- name: plan_delete
DELETE FROM plans WHERE tenant_id = $1 AND plan_id = $2;

-- name: resumed_session
SELECT session FROM resumed_sessions WHERE tenant_id = $1 AND plan_id = $2 AND session = $3;

-- name: resumed_sessions
SELECT session FROM resumed_sessions WHERE tenant_id = $1 AND plan_id = $2 ORDER BY session;

-- name: resumed_session_insert
INSERT INTO resumed_sessions (tenant_id, plan_id, session) VALUES ($1, $2, $3);

-- name: resumed_sessions_delete
DELETE FROM resumed_sessions WHERE tenant_id = $1 AND plan_id = $2;

-- name: idempotency_key
SELECT idempotency_key, plan_id, digest FROM idempotency_keys
WHERE tenant_id = $1 AND idempotency_key = $2;

-- name: idempotency_key_insert
INSERT INTO idempotency_keys (tenant_id, idempotency_key, plan_id, digest, created_at)
VALUES ($1, $2, $3, $4, $5);

-- name: idempotency_keys_delete
DELETE FROM idempotency_keys WHERE tenant_id = $1 AND plan_id = $2;

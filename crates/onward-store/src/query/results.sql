-- Results of ended steps, as search contains them.

-- name: results_waiting
-- Whether search does not contain all ended steps.
SELECT CAST(count(*) AS bigint) AS waiting FROM (
    SELECT step_id FROM steps WHERE tenant_id = $1 AND ended_at IS NOT NULL AND indexed = 0 LIMIT 1)
    AS found;

-- fragment: unindexed
steps.plan_id AS plan_id, steps.step_id AS step_id, steps.title AS title,
substr(steps.instructions, 1, 200) AS instructions, steps.result_summary AS result_summary,
steps.failure_words AS failure_words, steps.ended_at AS ended_at,
CAST(CASE WHEN steps.superseded_by IS NOT NULL OR (plans.forked_from IS NOT NULL
    AND steps.ended_at <= plans.created_at AND EXISTS (SELECT 1 FROM plans AS source
        WHERE source.tenant_id = $1 AND source.plan_id = plans.forked_from))
    THEN 1 ELSE 0 END AS bigint) AS is_hidden,
CAST(CASE WHEN plans.origin = 'agent' THEN 1 ELSE 0 END AS bigint) AS is_captured
FROM steps JOIN plans ON plans.tenant_id = $1 AND plans.plan_id = steps.plan_id
WHERE steps.tenant_id = $1 AND steps.ended_at IS NOT NULL AND steps.indexed = 0

-- name: results_unindexed (sqlite)
-- Differs because a write transaction on SQLite locks the whole file. Search does not contain results
-- that were redone, nor those that a fork took over while their plan exists.
SELECT {unindexed} LIMIT $2;

-- name: results_unindexed (postgres)
-- Differs because concurrent searches must not index the same result. Search does not contain results
-- that were redone, nor those that a fork took over while their plan exists.
SELECT {unindexed} LIMIT $2 FOR UPDATE OF steps;

-- name: step_indexed
UPDATE steps SET indexed = 1 WHERE tenant_id = $1 AND step_id = $2;

-- name: result_insert
INSERT INTO results (tenant_id, step_id, plan_id, title, content, created_at)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: result_delete
DELETE FROM results WHERE tenant_id = $1 AND step_id = $2;

-- name: results_delete
DELETE FROM results WHERE tenant_id = $1 AND plan_id = $2;

-- name: steps_of_forks_index
-- The results that the forks of a deleted plan took over are theirs now.
UPDATE steps SET indexed = 0 WHERE tenant_id = $1 AND ended_at IS NOT NULL AND plan_id IN (
    SELECT plan_id FROM plans WHERE plans.tenant_id = $1 AND plans.forked_from = $2);

-- name: results_latest
-- Newest first. The rows are selected before any content is read.
SELECT plan_id, step_id, title, substr(content, 1, 500) AS excerpt, created_at FROM results
WHERE tenant_id = $1 AND step_id IN (SELECT step_id FROM results AS last WHERE tenant_id = $1
    ORDER BY created_at DESC, step_id DESC LIMIT $2)
ORDER BY created_at DESC, step_id DESC;

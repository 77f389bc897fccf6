-- Plans: head, brief and lists.

-- fragment: head
plan_id, status, open_reviews, marked_at, ended_at, failure_kind, failure_words,
last_session, pending, in_progress, awaiting_input, completed, skipped, failed, seq,
stall_threshold_ms, on_stall, on_dependency_failure, origin, superseded, project_key, labels, priority,
budget

-- fragment: sheet
name, research_question, design_rationale, output_formatting_notes, created_at, updated_at,
acted_at, worked_at, created_by, client, host, directory, forked_from, forked_step, tokens

-- name: plan_sheet
SELECT {head}, {sheet} FROM plans WHERE tenant_id = $1 AND plan_id = $2;

-- name: plan_sheet_of_step
SELECT {head}, {sheet} FROM plans WHERE tenant_id = $1
    AND plan_id = (SELECT plan_id FROM steps WHERE tenant_id = $1 AND step_id = $2);

-- fragment: attention
(SELECT min(CASE WHEN steps.last_progress_at > steps.started_at THEN steps.last_progress_at
        ELSE steps.started_at END) FROM steps
    WHERE steps.tenant_id = $1 AND steps.plan_id = plans.plan_id
    AND steps.status = 'in_progress' AND steps.stalls_at < $2) AS stuck_since,
(SELECT min(+steps.updated_at) FROM steps WHERE steps.tenant_id = $1
    AND steps.plan_id = plans.plan_id AND steps.status = 'awaiting_input') AS asked_at,
(SELECT CASE WHEN count(*) = count(steps.orphaned_at) THEN max(steps.orphaned_at) END FROM steps
    WHERE steps.tenant_id = $1 AND steps.plan_id = plans.plan_id
    AND steps.status = 'in_progress') AS orphaned_at,
CASE WHEN EXISTS (SELECT 1 FROM steps WHERE steps.tenant_id = $1
    AND steps.plan_id = plans.plan_id AND steps.status = 'pending' AND steps.stalls_at IS NULL
    AND steps.open_dependencies = 0) THEN CAST(1 AS bigint) ELSE 0 END AS ready

-- name: plans_in
-- Plans in one status, most recent change first; `$3` and `$4` are the end of the previous page.
-- Captured plans without an action since `$7` are archived.
-- The inner query selects the page, so that texts are read and stalls counted only for its plans.
SELECT {head}, {sheet}, {attention}
FROM (SELECT plan_id AS listed FROM plans
    WHERE tenant_id = $1 AND status = $6 AND acted_about <= CAST($3 AS bigint) / 10000
        AND (acted_at < $3 OR (acted_at = $3 AND plan_id < $4))
        AND (origin = 'caller' OR acted_at >= $7)
    ORDER BY acted_about DESC, acted_at DESC, plan_id DESC LIMIT $5) AS page
JOIN plans ON plans.tenant_id = $1 AND plans.plan_id = page.listed
ORDER BY acted_at DESC, plan_id DESC;

-- name: plans_in_project
-- As `plans_in`, for one project. Reads all its plans in the status.
SELECT {head}, {sheet}, {attention}
FROM (SELECT plan_id AS listed FROM plans
    WHERE tenant_id = $1 AND project_key = $8 AND status = $6
        AND (acted_at < $3 OR (acted_at = $3 AND plan_id < $4))
        AND (origin = 'caller' OR acted_at >= $7)
    ORDER BY acted_at DESC, plan_id DESC LIMIT $5) AS page
JOIN plans ON plans.tenant_id = $1 AND plans.plan_id = page.listed
ORDER BY acted_at DESC, plan_id DESC;

-- name: plans_archived
-- Captured plans that have not ended, most recent change first, after `$3` and `$4`.
SELECT {head}, {sheet}, {attention}
FROM (SELECT plan_id AS listed FROM plans
    WHERE tenant_id = $1 AND origin = 'agent' AND ended_at IS NULL
        AND acted_about <= CAST($3 AS bigint) / 10000
        AND (acted_at < $3 OR (acted_at = $3 AND plan_id < $4))
    ORDER BY acted_about DESC, acted_at DESC, plan_id DESC LIMIT $5) AS page
JOIN plans ON plans.tenant_id = $1 AND plans.plan_id = page.listed
ORDER BY acted_at DESC, plan_id DESC;

-- name: plans_archived_count
SELECT count(*) AS plans FROM plans
WHERE tenant_id = $1 AND origin = 'agent' AND ended_at IS NULL
    AND acted_about <= CAST($2 AS bigint) / 10000 AND acted_at < $2;

-- name: plan_route
UPDATE plans SET project_key = $3, labels = $4, priority = CAST($5 AS bigint)
WHERE tenant_id = $1 AND plan_id = $2;

-- name: plan_budget
UPDATE plans SET budget = $3 WHERE tenant_id = $1 AND plan_id = $2;

-- name: plan_tokens
SELECT tokens FROM plans WHERE tenant_id = $1 AND plan_id = $2;

-- name: plan_tokens_add
UPDATE plans SET tokens = coalesce(tokens, 0) + $3 WHERE tenant_id = $1 AND plan_id = $2;

-- fragment: open_plan
{head}, name, created_at, updated_at, acted_at, worked_at, created_by, client, host, directory,
{attention}

-- name: plans_open
-- Open plans in one status, with the facts for their attention, without texts. There are few open
-- plans, and each needs a few index lookups. Captured plans without an action since `$5` are archived.
SELECT {open_plan} FROM plans WHERE tenant_id = $1 AND status = $3
    AND (origin = 'caller' OR acted_at >= $5)
ORDER BY acted_about, plan_id LIMIT $4;

-- name: plans_maybe_stuck
-- As `plans_open`, only plans with a step past its limit or with a budget. All other plans cost one
-- index lookup. A captured plan does not stall.
SELECT {open_plan} FROM plans WHERE tenant_id = $1 AND status = $3 AND origin = 'caller'
    AND (budget IS NOT NULL OR EXISTS (SELECT 1 FROM steps WHERE steps.tenant_id = $1
        AND steps.plan_id = plans.plan_id AND steps.status = 'in_progress' AND steps.stalls_at < $2))
ORDER BY acted_about, plan_id LIMIT $4;

-- name: plans_by_outcome
-- Index-only scan.
SELECT status, failed, failure_kind, count(*) AS plans FROM plans
WHERE tenant_id = $1 AND ended_at IS NOT NULL
GROUP BY status, failed, failure_kind;

-- name: plans_found (sqlite)
-- Differs because the words are in a separate index here. Plans that contain all words and are in
-- one of the statuses in `$5`, most recent change first.
SELECT plans.plan_id AS plan_id FROM plan_word_index
    CROSS JOIN plan_words ON plan_words.words_no = plan_word_index.rowid
    CROSS JOIN plans ON plans.tenant_id = $1 AND plans.plan_id = plan_words.plan_id
WHERE plan_word_index MATCH $6 AND plan_words.tenant_id = $1
    AND $5 LIKE '%' || plans.status || '%'
    AND (plans.acted_at < $2 OR (plans.acted_at = $2 AND plans.plan_id < $3))
ORDER BY plans.acted_at DESC, plans.plan_id DESC LIMIT $4;

-- name: plans_found (postgres)
-- Differs because row security allows only a function to use the index. Plans that contain all
-- words and are in one of the statuses in `$5`, most recent change first.
SELECT plan_id FROM onward_plans_found($1, $6, $5, $2, $3, $4) AS plan_id;

-- name: plan_listed
SELECT {head}, {sheet}, {attention} FROM plans WHERE tenant_id = $1 AND plan_id = $3;

-- name: plans_with_words (sqlite)
-- Differs because the words are in a separate index here. Number of plans that contain all words,
-- counted up to `$3`.
SELECT count(*) AS plans FROM (
    SELECT plan_words.words_no FROM plan_word_index
    CROSS JOIN plan_words ON plan_words.words_no = plan_word_index.rowid
    WHERE plan_word_index MATCH $2 AND plan_words.tenant_id = $1 LIMIT $3);

-- name: plans_with_words (postgres)
-- Differs because row security allows only a function to use the index. Number of plans that
-- contain all words, counted up to `$3`.
SELECT onward_plan_word_count($1, $2, $3) AS plans;

-- name: plan_words_insert (sqlite)
-- Differs because the words are in a separate index here.
INSERT INTO indexed_plans (tenant_id, plan_id, words) VALUES ($1, $2, $3);

-- name: plan_words_insert (postgres)
-- Differs because the words are a column here.
INSERT INTO plan_words (tenant_id, plan_id, words)
VALUES ($1, $2, to_tsvector('simple', CAST($3 AS text)));

-- name: plan_words_delete
DELETE FROM plan_words WHERE tenant_id = $1 AND plan_id = $2;

-- name: plans_between
-- Plans whose id begins with a prefix: ids between two bounds.
SELECT plan_id FROM plans
WHERE tenant_id = $1 AND plan_id >= $2 AND plan_id <= $3 ORDER BY plan_id LIMIT $4;

-- name: plans_ended_before
SELECT plan_id, updated_at FROM plans
WHERE tenant_id = $1 AND status = $4 AND acted_about <= CAST($2 AS bigint) / 10000
    AND updated_at < $2
ORDER BY acted_about, updated_at, plan_id LIMIT $3;

-- name: plans_by_status
-- Index-only scan.
SELECT status, count(*) AS plans, CAST(sum(steps) AS bigint) AS steps
FROM plans WHERE tenant_id = $1 GROUP BY status ORDER BY status;

-- name: plan_insert
-- The casts name the base types of domains.
INSERT INTO plans (tenant_id, plan_id, status, open_reviews, marked_at, ended_at,
    failure_kind, failure_words, last_session, pending, in_progress, awaiting_input, completed,
    skipped, failed, seq, stall_threshold_ms, on_stall, on_dependency_failure, name,
    research_question, design_rationale, output_formatting_notes, created_at, updated_at, acted_at,
    worked_at, created_by, client, host, directory, version_tag, origin, superseded, forked_from,
    forked_step, project_key, labels, priority, budget, acted_about, steps)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, CAST($17 AS bigint),
    CAST($18 AS text), CAST($19 AS text), $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31,
    $32, CAST($33 AS text), CAST($34 AS bigint), $35, $36, $37, $38, CAST($39 AS bigint), $40,
    CAST($26 AS bigint) / 10000,
    CAST($10 AS bigint) + CAST($11 AS bigint) + CAST($12 AS bigint) + CAST($13 AS bigint)
        + CAST($14 AS bigint) + CAST($15 AS bigint));

-- name: plan_update (sqlite)
-- Differs because SQLite updates an index when a statement sets one of its columns, even to the
-- same value. For a plan whose state and number of steps are unchanged. `plan_touch` updates the
-- list order, if it changes.
UPDATE plans SET last_session = $3, pending = $4, in_progress = $5, awaiting_input = $6,
    completed = $7, skipped = $8, failed = $9, seq = $10, updated_at = $11,
    acted_at = coalesce($12, acted_at), worked_at = coalesce($13, worked_at), version_tag = $14
WHERE tenant_id = $1 AND plan_id = $2 AND seq = $15 AND version_tag = $16;

-- name: plan_move
-- A row change: `row_change.rs` describes it, and the backends render it. For a plan whose state or number of
-- steps changes.

-- name: plan_supersede
UPDATE plans SET superseded = CAST($3 AS bigint) WHERE tenant_id = $1 AND plan_id = $2;

-- name: plan_forks
-- Forks of a plan, oldest first.
SELECT plan_id FROM plans WHERE tenant_id = $1 AND forked_from = $2
ORDER BY created_at, plan_id LIMIT $3;

-- name: plan_note
-- For an audit entry that does not change the plan.
UPDATE plans SET seq = $3, version_tag = $4
WHERE tenant_id = $1 AND plan_id = $2 AND seq = $5 AND version_tag = $6;

-- name: plan_touch (sqlite)
-- Differs because PostgreSQL itself detects that an indexed column keeps its value.
UPDATE plans SET acted_about = $3 WHERE tenant_id = $1 AND plan_id = $2;

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
VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING;

-- name: idempotency_keys_delete
DELETE FROM idempotency_keys WHERE tenant_id = $1 AND plan_id = $2;

-- name: plan_bytes
-- Of the texts that a plan contains. Sizes are read without the texts.
SELECT CAST(coalesce((SELECT sum(octet_length(details)) FROM events
        WHERE tenant_id = $1 AND plan_id = $2), 0)
    + coalesce((SELECT sum(octet_length(content)) FROM artifacts
        WHERE tenant_id = $1 AND plan_id = $2), 0)
    + coalesce((SELECT sum(octet_length(content)) FROM outputs
        WHERE tenant_id = $1 AND plan_id = $2), 0) AS bigint) AS bytes;

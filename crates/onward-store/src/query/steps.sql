-- Steps: specification, state and dependencies.

-- fragment: step
step_id, plan_id, step_order, step_type, title, instructions, depends_on, stall_threshold_ms,
max_attempts, gates, status, attempt, claim_token, claim_session, started_at, last_progress_at, monitored,
stall_marked_at, orphaned_at, undelivered, kept_artifact_id, review, ended_at, result_summary, result_confidence, result,
result_report, result_notes, result_evidence, skipped_by_branch, skipped_by_review, failure_kind, failure_words,
superseded, updated_at, supersedes, superseded_by, labels, priority, on_dependency_failure

-- fragment: line
step_id, step_order, step_type, title, status, attempt, claim_session, started_at,
last_progress_at, monitored, orphaned_at, stalls_at, stall_threshold_ms, ended_at,
substr(result_summary, 1, 1000) AS result_summary, failure_kind, failure_words, updated_at,
last_note, last_percent, noted_at, supersedes, superseded_by

-- name: step
SELECT {step} FROM steps WHERE tenant_id = $1 AND step_id = $2;

-- name: step_tokens
SELECT tokens FROM steps WHERE tenant_id = $1 AND step_id = $2;

-- name: step_tokens_all
SELECT step_id, tokens FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND tokens IS NOT NULL ORDER BY step_order;

-- name: step_tokens_add
UPDATE steps SET tokens = coalesce(tokens, 0) + $3 WHERE tenant_id = $1 AND step_id = $2;

-- name: steps_ready
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND {first_ready};

-- name: steps_undelivered
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND {held_undelivered};

-- name: steps_stalled
-- Stalled steps, and those whose session has ended. Found by the index of steps in progress, then
-- sorted by order.
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'in_progress'
    AND (stalls_at < $3 OR orphaned_at IS NOT NULL)
ORDER BY step_order;

-- name: plans_orphaned
-- The plans of a project with a step whose session has ended, the most urgent first.
SELECT plan_id FROM plans
WHERE tenant_id = $1 AND project_key = $2 AND (status = 'executing' OR status = 'stalled')
    AND EXISTS (SELECT 1 FROM steps WHERE steps.tenant_id = $1 AND steps.plan_id = plans.plan_id
        AND steps.status = 'in_progress' AND steps.orphaned_at IS NOT NULL)
ORDER BY priority DESC, created_at, plan_id LIMIT $3;

-- name: plans_held
-- The plans of a project with a step in progress that a session holds, the most urgent first.
SELECT plan_id FROM plans
WHERE tenant_id = $1 AND project_key = $2 AND (status = 'executing' OR status = 'stalled')
    AND EXISTS (SELECT 1 FROM steps WHERE steps.tenant_id = $1 AND steps.plan_id = plans.plan_id
        AND steps.status = 'in_progress' AND steps.claim_session = $4)
ORDER BY priority DESC, created_at, plan_id LIMIT $3;

-- name: steps_orphaned
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'in_progress' AND orphaned_at IS NOT NULL
ORDER BY +step_order;

-- name: steps_to_check
-- For the sweep: stalled steps, and those whose times are after `$4`, written by a wrong clock. A plan
-- has few steps in progress.
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'in_progress'
    AND (stalls_at < $3 OR started_at > $4 OR last_progress_at > $4)
ORDER BY step_order;

-- name: steps_in_progress
-- The plus prevents the use of the index over all steps: few steps are in progress.
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'in_progress' ORDER BY +step_order;

-- name: steps_waiting_for
-- Pending steps that depend on `$2` and continue if it fails, with their number of open dependencies.
SELECT {step}, open_dependencies FROM steps
WHERE tenant_id = $1 AND status = 'pending' AND on_dependency_failure = 'continue'
    AND step_id IN (SELECT step_id FROM dependencies WHERE tenant_id = $1 AND needs = $2)
ORDER BY step_order;

-- name: steps_pending_between
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_order > $3
    AND step_order < (SELECT target.step_order FROM steps AS target
        WHERE target.tenant_id = $1 AND target.step_id = $4)
    AND status = 'pending'
ORDER BY step_order;

-- name: steps_all
SELECT {step} FROM steps WHERE tenant_id = $1 AND plan_id = $2 ORDER BY step_order;

-- name: steps_page
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_order > $3 ORDER BY step_order LIMIT $4;

-- name: steps_derived
-- Derived columns of each step.
SELECT step_id, open_dependencies, stalls_at, ended_commit, project_key, plan_priority,
    plan_created_at
FROM steps
WHERE tenant_id = $1 AND plan_id = $2 ORDER BY step_order;

-- name: step_states
-- The state of every step, for drawing.
SELECT step_id, step_order, status, stalls_at, superseded_by FROM steps
WHERE tenant_id = $1 AND plan_id = $2 ORDER BY step_order;

-- name: step_at
SELECT step_id, step_order, status FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_order = $3;

-- name: step_place
SELECT step_id, step_order, status FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_id = $3;

-- name: step_is_taken
SELECT step_id FROM steps WHERE tenant_id = $1 AND step_id = $2;

-- name: step_ids
SELECT step_id FROM steps WHERE tenant_id = $1 AND plan_id = $2 ORDER BY step_order;

-- name: step_outlines
-- The definition and the status of every step, without its work and its result.
SELECT step_id, step_order, step_type, title, instructions, depends_on, stall_threshold_ms,
    max_attempts, gates, status, supersedes, superseded_by, labels, priority, on_dependency_failure
FROM steps WHERE tenant_id = $1 AND plan_id = $2 ORDER BY step_order;

-- name: step_line
SELECT {line} FROM steps WHERE tenant_id = $1 AND step_id = $2;

-- name: step_line_last_completed
-- The step that was completed last, found in the audit trail from its end.
SELECT {line} FROM steps WHERE tenant_id = $1 AND step_id = (SELECT events.step_id FROM events
    WHERE events.tenant_id = $1 AND events.plan_id = $2 AND events.name = 'step_completed'
    ORDER BY events.seq DESC LIMIT 1);

-- name: step_lines
SELECT {line} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_order > $3 ORDER BY step_order LIMIT $4;

-- name: step_lines_of_status
SELECT {line} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_order > $3 AND status = $5
    AND superseded_by IS NULL
ORDER BY step_order LIMIT $4;

-- name: step_lines_done
SELECT {line} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_order > $3 AND status IN ('completed', 'skipped')
    AND superseded_by IS NULL
ORDER BY step_order LIMIT $4;

-- name: step_lines_in_progress
-- The plus has the same purpose as in `steps_in_progress`.
SELECT {line} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND +step_order > $3 AND status = 'in_progress'
ORDER BY +step_order LIMIT $4;

-- name: step_lines_held
-- Steps in progress that a session holds.
SELECT {line} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'in_progress' AND claim_session = $3
ORDER BY +step_order LIMIT $4;

-- name: steps_held
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'in_progress' AND claim_session = $3
ORDER BY +step_order LIMIT $4;

-- name: steps_pending_from
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_order >= $3 AND status = 'pending'
ORDER BY step_order LIMIT $4;

-- name: steps_under_review
-- The plus has the same purpose as in `steps_in_progress`.
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'awaiting_input'
ORDER BY +step_order LIMIT $3;

-- name: step_lines_awaiting_input
-- The plus has the same purpose as in `steps_in_progress`.
SELECT {line} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND +step_order > $3 AND status = 'awaiting_input'
ORDER BY +step_order LIMIT $4;

-- name: step_lines_of_session
-- Steps in progress that a session has claimed, in all plans; sorted so that concurrent
-- transactions lock the plans in the same order.
SELECT {line} FROM steps
WHERE tenant_id = $1 AND claim_session = $2 AND status = 'in_progress'
ORDER BY plan_id, step_id LIMIT $3;

-- name: steps_claimed
-- Steps in progress and under review that a session has claimed, sorted like `step_lines_of_session`.
SELECT step_id FROM steps
WHERE tenant_id = $1 AND claim_session = $2 AND (status = 'in_progress' OR status = 'awaiting_input')
ORDER BY plan_id, step_id LIMIT $3;

-- name: step_lines_stalled
SELECT {line} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'in_progress' AND stalls_at < $3
ORDER BY step_order LIMIT $4;

-- name: steps_blocked
SELECT count(*) AS blocked FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'pending' AND open_dependencies > 0;

-- name: step_texts
-- The texts of a step, for reading in pages.
SELECT step_id, plan_id, instructions, review, result_summary, result, result_report,
    result_notes, result_evidence
FROM steps
WHERE tenant_id = $1 AND step_id = $2;

-- name: step_result
-- The result of a completed step, unless its data has more than 128 KiB: conditions do not read larger
-- data.
SELECT step_id, result_confidence, result_summary, result FROM steps
WHERE tenant_id = $1 AND step_id = $2 AND status = 'completed'
    AND (result IS NULL OR octet_length(result) <= 131072);

-- name: step_reports
-- Execution reports that are not longer than `$5` bytes, and the sizes of all.
SELECT step_id, CAST(octet_length(result_report) AS bigint) AS report_bytes,
    CASE WHEN octet_length(result_report) <= CAST($5 AS bigint) THEN result_report END AS result_report
FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_order >= $3 AND step_order <= $4
    AND result_report IS NOT NULL
ORDER BY step_order;

-- name: step_next_stall
SELECT min(stalls_at) AS stalls_at FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'in_progress' AND stalls_at >= $3;

-- name: step_ended_commit
SELECT step_id, ended_commit FROM steps
WHERE tenant_id = $1 AND step_id = $2 AND status = 'completed';

-- name: step_notes
SELECT step_id, step_order, result_notes FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND result_notes IS NOT NULL AND superseded_by IS NULL
ORDER BY step_order LIMIT 1000;

-- name: steps_reviewed
-- All pending reviews of the tenant, oldest first. A plan that has ended has no pending review.
SELECT {step} FROM steps
WHERE tenant_id = $1 AND status = 'awaiting_input' AND updated_at >= $2
    AND EXISTS (SELECT 1 FROM plans WHERE plans.tenant_id = $1
        AND plans.plan_id = steps.plan_id AND plans.ended_at IS NULL)
ORDER BY updated_at, step_id LIMIT $3;

-- name: steps_of_review
-- Steps whose pending review contains an id. The caller compares the id: data of a result may contain
-- the same text.
SELECT {step} FROM steps
WHERE tenant_id = $1 AND status = 'awaiting_input'
    AND review LIKE '%"reviewId":"' || CAST($2 AS text) || '"%';

-- name: steps_between
-- Steps whose id begins with a prefix: ids between two bounds.
SELECT step_id FROM steps
WHERE tenant_id = $1 AND step_id >= $2 AND step_id <= $3 ORDER BY step_id LIMIT $4;

-- name: step_insert
-- The casts name the base types of domains.
INSERT INTO steps (tenant_id, step_id, plan_id, step_order, step_type, title, instructions,
    depends_on, stall_threshold_ms, max_attempts, gates, status, attempt, undelivered, superseded,
    updated_at, open_dependencies, supersedes, labels, priority, on_dependency_failure)
VALUES ($1, $2, $3, CAST($4 AS bigint), CAST($5 AS text), $6, $7, $8, CAST($9 AS bigint),
    CAST($10 AS bigint), $11, 'pending', 1, 0, '[]', $12, CAST($13 AS bigint), $14, $15,
    CAST($16 AS bigint), CAST($17 AS text));

-- name: step_update
-- A row change: `row_change.rs` describes it, and the backends render it.

-- name: step_advance
-- A row change, for a step that was only claimed or completed, as in most transitions: each column
-- has a cost.

-- name: step_note
UPDATE steps SET last_note = $3, last_percent = $4, noted_at = $5
WHERE tenant_id = $1 AND step_id = $2;

-- name: step_definition
UPDATE steps SET step_type = CAST($3 AS text), title = $4, instructions = $5, depends_on = $6,
    stall_threshold_ms = CAST($7 AS bigint), gates = $8, updated_at = $9, labels = $10,
    priority = CAST($11 AS bigint), on_dependency_failure = CAST($12 AS text)
WHERE tenant_id = $1 AND step_id = $2;

-- name: queue_add
-- Copies the project and the priority of the plan to its open steps.
UPDATE steps SET project_key = $3, plan_priority = $4,
    plan_created_at = (SELECT created_at FROM plans WHERE tenant_id = $1 AND plan_id = $2)
WHERE tenant_id = $1 AND plan_id = $2 AND ended_at IS NULL
    AND (project_key IS DISTINCT FROM $3 OR plan_priority IS DISTINCT FROM $4);

-- name: queue_remove
-- Removes the steps of a plan from the queue of its project, because the plan assigns no steps now.
-- Steps that are not ready are not in the queue.
UPDATE steps SET project_key = NULL
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'pending' AND open_dependencies = 0
    AND project_key IS NOT NULL;

-- fragment: in_queue
tenant_id = $1 AND project_key = $2 AND status = 'pending' AND open_dependencies = 0

-- name: queue_labels
-- The sets of labels of the steps in the queue of a project. Each is found by one index lookup.
WITH RECURSIVE sets(labels) AS (
    SELECT (SELECT labels FROM steps WHERE {in_queue} ORDER BY labels LIMIT 1)
    UNION ALL
    SELECT (SELECT steps.labels FROM steps WHERE {in_queue} AND steps.labels > sets.labels
        ORDER BY steps.labels LIMIT 1)
    FROM sets WHERE sets.labels IS NOT NULL)
SELECT labels FROM sets WHERE labels IS NOT NULL;

-- name: queue_first
-- The first step with these labels in the queue of a project.
SELECT plan_id, plan_priority, priority, plan_created_at, step_order FROM steps
WHERE {in_queue} AND labels = $3
ORDER BY plan_priority DESC, priority DESC, plan_created_at, plan_id, step_order LIMIT 1;

-- fragment: labelled
tenant_id = $1 AND plan_id = $2 AND labels <> '' AND status = 'pending' AND open_dependencies = 0

-- name: plan_labels
-- The sets of labels of the steps of a plan that can be assigned. Each is found by one index lookup.
WITH RECURSIVE sets(labels) AS (
    SELECT (SELECT labels FROM steps WHERE {labelled} ORDER BY labels LIMIT 1)
    UNION ALL
    SELECT (SELECT steps.labels FROM steps WHERE {labelled} AND steps.labels > sets.labels
        ORDER BY steps.labels LIMIT 1)
    FROM sets WHERE sets.labels IS NOT NULL)
SELECT labels FROM sets WHERE labels IS NOT NULL;

-- name: steps_ready_with
-- The first step of a plan with these labels that can be assigned.
SELECT {step} FROM steps WHERE {labelled} AND labels = $3 ORDER BY priority DESC, step_order LIMIT 1;

-- name: steps_ready_without_labels
-- The index has no labels, so the labelled steps before it are read too.
SELECT {step} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND status = 'pending' AND stalls_at IS NULL
    AND open_dependencies = 0 AND labels = ''
ORDER BY priority DESC, step_order LIMIT 1;

-- name: steps_shift_up
-- Uses negative numbers, because an order must be unique at every moment.
UPDATE steps SET step_order = -(step_order + $4)
WHERE tenant_id = $1 AND plan_id = $2 AND step_order > $3;

-- name: steps_shift_between
-- As `steps_shift_up`, but only up to the order `$4`.
UPDATE steps SET step_order = -(step_order + $5)
WHERE tenant_id = $1 AND plan_id = $2 AND step_order > $3 AND step_order <= $4;

-- name: steps_shift_down
UPDATE steps SET step_order = -(step_order - 1)
WHERE tenant_id = $1 AND plan_id = $2 AND step_order > (
    SELECT gone.step_order FROM steps AS gone WHERE gone.tenant_id = $1 AND gone.step_id = $3);

-- name: step_move
UPDATE steps SET step_order = -CAST($3 AS bigint) WHERE tenant_id = $1 AND step_id = $2;

-- name: steps_restore_sign
UPDATE steps SET step_order = -step_order
WHERE tenant_id = $1 AND plan_id = $2 AND step_order < 0;

-- name: step_delete
DELETE FROM steps WHERE tenant_id = $1 AND step_id = $2;

-- name: steps_delete
DELETE FROM steps WHERE tenant_id = $1 AND plan_id = $2;

-- name: dependents
SELECT step_id FROM dependencies WHERE tenant_id = $1 AND needs = $2 ORDER BY step_id;

-- name: dependency_orders
-- The orders of the steps that the steps between two orders depend on.
SELECT dependent.step_id, needed.step_order FROM steps AS dependent
    JOIN dependencies ON dependencies.tenant_id = $1
        AND dependencies.step_id = dependent.step_id
    JOIN steps AS needed ON needed.tenant_id = $1
        AND needed.step_id = dependencies.needs
WHERE dependent.tenant_id = $1 AND dependent.plan_id = $2
    AND dependent.step_order >= $3 AND dependent.step_order <= $4
ORDER BY dependent.step_order, needed.step_order;

-- name: dependents_release
-- A failed dependency is met only for steps that continue after failures.
UPDATE steps SET open_dependencies = open_dependencies - 1
WHERE tenant_id = $1 AND (on_dependency_failure = 'continue' OR CAST($3 AS bigint) = 0)
    AND step_id IN (SELECT step_id FROM dependencies WHERE tenant_id = $1 AND needs = $2);

-- name: step_count_dependencies
UPDATE steps SET open_dependencies = (
    SELECT count(*) FROM dependencies
        JOIN steps AS needed ON needed.tenant_id = $1
            AND needed.step_id = dependencies.needs
    WHERE dependencies.tenant_id = $1 AND dependencies.step_id = $2
        AND (needed.status IN ('pending', 'in_progress', 'awaiting_input')
            OR (needed.status = 'failed' AND steps.on_dependency_failure = 'block')))
WHERE tenant_id = $1 AND step_id = $2;

-- name: step_supersede
-- Search no longer contains its result.
UPDATE steps SET superseded_by = $3, indexed = 0 WHERE tenant_id = $1 AND step_id = $2;

-- name: dependents_follow
-- Pending steps that depend on the terminal step `$2` depend on its successor instead. `$3` and `$4`
-- are the ids of the two as text. A step that the failure has blocked waits for it already.
UPDATE steps SET depends_on = replace(depends_on, $3, $4), updated_at = $5,
    open_dependencies = open_dependencies + CASE WHEN on_dependency_failure = 'block'
        AND (SELECT superseded.status FROM steps AS superseded
            WHERE superseded.tenant_id = $1 AND superseded.step_id = $2) = 'failed'
        THEN 0 ELSE 1 END
WHERE tenant_id = $1 AND status = 'pending'
    AND step_id IN (SELECT step_id FROM dependencies WHERE tenant_id = $1 AND needs = $2);

-- name: dependencies_follow
UPDATE dependencies SET needs = $3
WHERE tenant_id = $1 AND needs = $2 AND step_id IN (
    SELECT pending.step_id FROM dependencies AS needing
        JOIN steps AS pending ON pending.tenant_id = $1
            AND pending.step_id = needing.step_id
    WHERE needing.tenant_id = $1 AND needing.needs = $2 AND pending.status = 'pending');

-- name: dependency_insert
INSERT INTO dependencies (tenant_id, needs, step_id, plan_id) VALUES ($1, $2, $3, $4);

-- name: dependencies_delete_of_step
DELETE FROM dependencies WHERE tenant_id = $1 AND step_id = $2;

-- name: dependencies_delete
DELETE FROM dependencies WHERE tenant_id = $1 AND plan_id = $2;

-- Context for an agent that resumes a plan or a step: rows with the sizes of their texts, so that
-- only the texts that fit the size budget are read.

-- fragment: brief
step_id, step_order, step_type, title, status, attempt, failure_kind, failure_words,
result_confidence, CAST(octet_length(result_summary) AS bigint) AS summary_bytes,
CAST(octet_length(result) AS bigint) AS data_bytes,
CAST(octet_length(result_evidence) AS bigint) AS evidence_bytes

-- The context of a plan does not contain superseded steps: its audit trail is their history.

-- name: briefs_below
SELECT {brief} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_order < $3 AND superseded_by IS NULL
ORDER BY step_order DESC LIMIT $4;

-- name: briefs_from
SELECT {brief} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_order >= $3 AND superseded_by IS NULL
ORDER BY step_order LIMIT $4;

-- name: briefs_completed_below
SELECT {brief} FROM steps
WHERE tenant_id = $1 AND plan_id = $2 AND step_order < $3 AND status = 'completed'
    AND superseded_by IS NULL
ORDER BY step_order DESC LIMIT $4;

-- name: briefs_completed_needed
-- Completed dependencies of `$2`.
SELECT {brief} FROM steps
WHERE tenant_id = $1 AND step_order < $3 AND status = 'completed'
    AND step_id IN (SELECT needs FROM dependencies WHERE tenant_id = $1 AND step_id = $2)
ORDER BY step_order DESC LIMIT $4;

-- name: step_summary
SELECT step_id, result_summary FROM steps WHERE tenant_id = $1 AND step_id = $2;

-- name: step_data
SELECT step_id, result FROM steps WHERE tenant_id = $1 AND step_id = $2;

-- name: step_evidence
SELECT step_id, result_evidence FROM steps WHERE tenant_id = $1 AND step_id = $2;

-- name: artifact_excerpts
-- Artifacts of the step first, then the newest. The rows are selected before any content is read.
SELECT artifact_id, step_id, artifact_type, title, substr(content, 1, 500) AS excerpt,
    CAST(octet_length(content) AS bigint) AS content_bytes, created_at
FROM artifacts
WHERE tenant_id = $1 AND artifact_id IN (
    SELECT artifact_id FROM artifacts WHERE tenant_id = $1 AND plan_id = $2
    ORDER BY CASE WHEN step_id = $3 THEN 0 ELSE 1 END, created_at DESC, artifact_id DESC LIMIT $4)
ORDER BY CASE WHEN step_id = $3 THEN 0 ELSE 1 END, created_at DESC, artifact_id DESC;

-- name: events_recent
-- Details may contain a whole plan; long ones are not read.
SELECT seq, at, actor, session, name, step_id,
    CASE WHEN octet_length(details) <= 500 THEN details END AS details
FROM events WHERE tenant_id = $1 AND plan_id = $2 ORDER BY seq DESC LIMIT $3;

-- name: events_of_step
-- The attempts and the rejected results of a step, newest first. Scans the audit trail of the plan, like
-- `events_latest_named`. Long details are not read.
SELECT seq, at, actor, session, name, step_id,
    CASE WHEN octet_length(details) <= 4000 THEN details END AS details
FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND step_id = $3
    AND name IN ('step_started', 'step_requeued', 'step_completed', 'step_failed', 'late_result_kept')
ORDER BY seq DESC LIMIT $4;

-- name: events_of_review
-- The request and the decision of a review, in plans with an action since `$2`, which is not later than
-- the request.
SELECT plan_id, seq, commit_seq, at, actor, session, name, step_id, details FROM events
WHERE tenant_id = $1 AND name = 'user_reviewed' AND {details_json} ->> 'reviewId' = $3
    AND plan_id IN (SELECT plan_id FROM plans WHERE plans.tenant_id = $1
        AND plans.status IN ('planning', 'executing', 'awaiting_review', 'stalled', 'completed', 'failed')
        AND plans.acted_about >= CAST($2 AS bigint) / 10000)
ORDER BY seq LIMIT 2;

-- name: events_significant
-- The entries after `$3` that a new session needs. Long details are not read.
SELECT seq, at, actor, session, name, step_id,
    CASE WHEN octet_length(details) <= 4000 THEN details END AS details,
    (SELECT step_order FROM steps
        WHERE steps.tenant_id = $1 AND steps.step_id = events.step_id) AS step_order
FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND seq > $3
    AND name NOT IN ('step_started', 'step_completed', 'plan_status_changed', 'session_resumed', 'skill_started',
        'skill_completed')
ORDER BY seq DESC LIMIT $4;

-- fragment: reviews (sqlite)
-- Differs because SQLite reads all events of the plan without the hint.
events INDEXED BY events_reviews

-- fragment: reviews (postgres)
-- Differs because PostgreSQL uses the index without a hint.
events

-- name: events_of_reviews
SELECT seq, commit_seq, at, actor, session, name, step_id, details FROM {reviews}
WHERE tenant_id = $1 AND plan_id = $2 AND name = 'user_reviewed' AND step_id = $3
ORDER BY seq DESC LIMIT $4;

-- name: events_of_plan_reviews
-- Review requests and decisions of a plan, newest first.
SELECT seq, commit_seq, at, actor, session, name, step_id, details FROM {reviews}
WHERE tenant_id = $1 AND plan_id = $2 AND name = 'user_reviewed' ORDER BY seq DESC LIMIT $3;

-- name: events_of_earlier_reviews
-- Reviews of the last step before order `$3` that was completed, or skipped by a reviewer, of the
-- dependencies of step `$4`, of the step that it supersedes, and of the step itself, with the order
-- of the reviewed step. Most plans have no reviews; the first condition saves the search for these
-- steps.
SELECT seq, commit_seq, at, actor, session, name, step_id, details,
    (SELECT step_order FROM steps WHERE steps.tenant_id = $1 AND steps.step_id = events.step_id)
        AS step_order
FROM {reviews}
WHERE EXISTS (SELECT 1 FROM {reviews}
        WHERE tenant_id = $1 AND plan_id = $2 AND name = 'user_reviewed')
    AND tenant_id = $1 AND plan_id = $2 AND name = 'user_reviewed'
    AND step_id IN (SELECT needs FROM dependencies
            WHERE dependencies.tenant_id = $1 AND dependencies.step_id = $4
        UNION ALL SELECT supersedes FROM steps WHERE steps.tenant_id = $1 AND steps.step_id = $4
        UNION ALL SELECT step_id FROM steps WHERE steps.tenant_id = $1 AND steps.step_id = $4
        UNION ALL SELECT step_id FROM (SELECT step_id FROM steps
            WHERE steps.tenant_id = $1 AND steps.plan_id = $2 AND step_order < $3
                AND (status = 'completed' OR skipped_by_review IS NOT NULL)
                AND superseded_by IS NULL
            ORDER BY step_order DESC LIMIT 1) AS previous)
ORDER BY seq;

-- name: artifacts_latest
-- The artifacts of all plans, newest first. The rows are selected before any content is read.
SELECT plan_id, artifact_id, step_id, artifact_type, title, substr(content, 1, 500) AS excerpt,
    CAST(octet_length(content) AS bigint) AS content_bytes, created_at
FROM artifacts
WHERE tenant_id = $1 AND artifact_id IN (
    SELECT artifact_id FROM artifacts WHERE tenant_id = $1
    ORDER BY created_at DESC, artifact_id DESC LIMIT $2)
ORDER BY created_at DESC, artifact_id DESC;

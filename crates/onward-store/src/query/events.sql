-- The audit trail, which is append-only.

-- fragment: event
seq, commit_seq, at, actor, session, name, step_id, details

-- fragment: details_json (sqlite)
-- Differs because `->>` reads text here, and a cast to `json` would convert the text to a number.
events.details

-- fragment: details_json (postgres)
-- Differs because `->>` requires JSON.
CAST(events.details AS json)

-- name: events_by_hour
-- Finished steps, stalls and review requests per hour since `$2`, of plans that an agent or a user
-- has changed since then.
SELECT at / 3600000 AS hour, name, count(*) AS events FROM events
WHERE tenant_id = $1 AND at >= $2 AND (name = 'step_completed' OR name = 'plan_stalled'
        OR (name = 'user_reviewed' AND {details_json} ->> 'action' = 'review_requested'))
    AND plan_id IN (SELECT plan_id FROM plans WHERE plans.tenant_id = $1
        AND plans.status IN ('planning', 'executing', 'awaiting_review', 'stalled', 'completed', 'failed')
        AND plans.acted_about >= CAST($2 AS bigint) / 10000)
GROUP BY at / 3600000, name;

-- name: events_of_claims
-- What a budget counts. Reads all entries of the plan, when its budget is set.
-- The clock can be set back, so the first claim is that of the first entry.
SELECT count(*) AS attempts, count(DISTINCT step_id) AS steps,
    (SELECT first.at FROM events AS first WHERE first.tenant_id = $1 AND first.plan_id = $2
        AND first.name = 'step_started' ORDER BY first.seq LIMIT 1) AS first_claim_at,
    (SELECT tokens FROM plans WHERE plans.tenant_id = $1 AND plans.plan_id = $2) AS tokens
FROM events WHERE tenant_id = $1 AND plan_id = $2 AND name = 'step_started';

-- name: event_insert
-- A row change: `row_change.rs` describes it, and the backends render it.

-- name: events_after
SELECT {event} FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND seq > $3 ORDER BY seq LIMIT $4;

-- name: events_page
-- A page of limited size: an entry belongs to it if the entries before it have fewer bytes than `$5`.
-- Only the sizes are summed, so the details of later entries are not read.
SELECT {event} FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND seq > $3 AND seq <= (
    SELECT max(seq) FROM (
        SELECT seq, sum(size) OVER (ORDER BY seq) - size AS bytes_before FROM (
            SELECT sized.seq, octet_length(sized.details) AS size FROM events AS sized
            WHERE sized.tenant_id = $1 AND sized.plan_id = $2 AND sized.seq > $3
            ORDER BY sized.seq LIMIT $4) AS page) AS summed
    WHERE bytes_before < CAST($5 AS bigint))
ORDER BY seq;

-- name: trail_of_plan
-- The whole audit trail if it is within the limits, and the due time and version tag of the plan. One
-- statement, so that all of them come from the same snapshot.
SELECT {event}, (SELECT due.at FROM due WHERE due.tenant_id = $1 AND due.plan_id = $2) AS due_at,
    light.version_tag
FROM (SELECT plans.plan_id, plans.version_tag FROM plans
    WHERE plans.tenant_id = $1 AND plans.plan_id = $2 AND plans.seq <= $3
        AND (SELECT sum(octet_length(weighed.details)) FROM events AS weighed
            WHERE weighed.tenant_id = $1 AND weighed.plan_id = $2) <= $4) AS light
    JOIN events ON events.tenant_id = $1 AND events.plan_id = light.plan_id
ORDER BY seq;

-- name: trail_of_step
-- The same for the plan of a step.
SELECT {event},
    (SELECT due.at FROM due WHERE due.tenant_id = $1 AND due.plan_id = light.plan_id) AS due_at,
    light.version_tag
FROM (SELECT plans.plan_id, plans.version_tag FROM steps
        JOIN plans ON plans.tenant_id = $1 AND plans.plan_id = steps.plan_id
    WHERE steps.tenant_id = $1 AND steps.step_id = $2 AND plans.seq <= $3
        AND (SELECT sum(octet_length(weighed.details)) FROM events AS weighed
            WHERE weighed.tenant_id = $1 AND weighed.plan_id = plans.plan_id) <= $4) AS light
    JOIN events ON events.tenant_id = $1 AND events.plan_id = light.plan_id
ORDER BY seq;

-- name: events_latest
-- A page of limited size, like `events_page`.
SELECT {event} FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND seq <= $3 AND seq >= (
    SELECT min(seq) FROM (
        SELECT seq, sum(size) OVER (ORDER BY seq DESC) - size AS bytes_before FROM (
            SELECT sized.seq, octet_length(sized.details) AS size FROM events AS sized
            WHERE sized.tenant_id = $1 AND sized.plan_id = $2 AND sized.seq <= $3
            ORDER BY sized.seq DESC LIMIT $4) AS page) AS summed
    WHERE bytes_before < CAST($5 AS bigint))
ORDER BY seq DESC;

-- name: events_latest_named
-- The same for events of one type. Scans the audit trail of the plan, like `events_of_reviews`.
SELECT {event} FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND seq <= $3 AND name = $6 AND seq >= (
    SELECT min(seq) FROM (
        SELECT seq, sum(size) OVER (ORDER BY seq DESC) - size AS bytes_before FROM (
            SELECT sized.seq, octet_length(sized.details) AS size FROM events AS sized
            WHERE sized.tenant_id = $1 AND sized.plan_id = $2 AND sized.seq <= $3
                AND sized.name = $6
            ORDER BY sized.seq DESC LIMIT $4) AS page) AS summed
    WHERE bytes_before < CAST($5 AS bigint))
ORDER BY seq DESC;

-- name: events_delete (sqlite)
-- Differs because a trigger of SQLite rejects the deletion while the plan exists.
DELETE FROM events WHERE tenant_id = $1 AND plan_id = $2;

-- name: events_delete (postgres)
-- Differs because the role of a transaction may not delete events; the function may, if the plan
-- does not exist.
SELECT onward_delete_events($1, $2) AS deleted;

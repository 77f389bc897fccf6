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
-- Only the sizes are summed, so the details of later entries are not read. Only entries from `$6`
-- until `$7`.
SELECT {event} FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND at >= $6 AND at < $7 AND seq > $3 AND seq <= (
    SELECT max(seq) FROM (
        SELECT seq, sum(size) OVER (ORDER BY seq) - size AS bytes_before FROM (
            SELECT sized.seq, octet_length(sized.details) AS size FROM events AS sized
            WHERE sized.tenant_id = $1 AND sized.plan_id = $2 AND sized.seq > $3
                AND sized.at >= $6 AND sized.at < $7
            ORDER BY sized.seq LIMIT $4) AS page) AS summed
    WHERE bytes_before < CAST($5 AS bigint))
ORDER BY seq;

-- name: events_between
-- Entries of all plans from `$2` until `$3`, oldest first, after the entry at `$4` of the plan `$5` with
-- the number `$6`. A page of limited size, like `events_page`. No index contains the time, because every
-- commit would write to it: the last entry of each plan decides whether its entries are read.
SELECT events.plan_id AS plan_id, {event} FROM (
    SELECT in_plan, in_seq, sum(size) OVER (ORDER BY in_time, in_plan, in_seq) - size AS bytes_before
    FROM (SELECT sized.plan_id AS in_plan, sized.seq AS in_seq, sized.at AS in_time,
            octet_length(sized.details) AS size
        FROM plans JOIN events AS sized ON sized.tenant_id = $1 AND sized.plan_id = plans.plan_id
        WHERE plans.tenant_id = $1 AND (plans.updated_at >= $2 OR EXISTS (SELECT 1 FROM events AS last
                WHERE last.tenant_id = $1 AND last.plan_id = plans.plan_id AND last.seq = plans.seq
                    AND last.at >= $2))
            AND sized.at >= $2 AND sized.at < $3 AND (sized.at > $4 OR (sized.at = $4
                AND (sized.plan_id > $5 OR (sized.plan_id = $5 AND sized.seq > $6))))
        ORDER BY sized.at, sized.plan_id, sized.seq LIMIT $7) AS page) AS summed
JOIN events ON events.tenant_id = $1 AND events.plan_id = in_plan AND events.seq = in_seq
WHERE bytes_before < CAST($8 AS bigint)
ORDER BY events.at, events.plan_id, events.seq;

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

-- The audit trail, which is append-only.

-- fragment: event
seq, commit_seq, at, actor, session, name, step_id, details

-- name: event_insert (sqlite)
-- Differs because PostgreSQL merges it with other row changes (`row_change.rs`).
INSERT INTO events (tenant_id, plan_id, seq, commit_seq, at, actor, session, name, step_id, details)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: events_after
SELECT {event} FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND seq > $3 ORDER BY seq LIMIT $4;

-- name: trail_of_plan
-- The whole audit trail if it is within the limits, and the due time of the plan. One statement, so
-- that both come from the same snapshot.
SELECT {event}, (SELECT due.at FROM due WHERE due.tenant_id = $1 AND due.plan_id = $2) AS due_at
FROM (SELECT plans.plan_id FROM plans
    WHERE plans.tenant_id = $1 AND plans.plan_id = $2 AND plans.seq <= $3
        AND (SELECT sum(octet_length(weighed.details)) FROM events AS weighed
            WHERE weighed.tenant_id = $1 AND weighed.plan_id = $2) <= $4) AS light
    JOIN events ON events.tenant_id = $1 AND events.plan_id = light.plan_id
ORDER BY seq;

-- name: trail_of_step
-- The same for the plan of a step.
SELECT {event},
    (SELECT due.at FROM due WHERE due.tenant_id = $1 AND due.plan_id = light.plan_id) AS due_at
FROM (SELECT plans.plan_id FROM steps
        JOIN plans ON plans.tenant_id = $1 AND plans.plan_id = steps.plan_id
    WHERE steps.tenant_id = $1 AND steps.step_id = $2 AND plans.seq <= $3
        AND (SELECT sum(octet_length(weighed.details)) FROM events AS weighed
            WHERE weighed.tenant_id = $1 AND weighed.plan_id = plans.plan_id) <= $4) AS light
    JOIN events ON events.tenant_id = $1 AND events.plan_id = light.plan_id
ORDER BY seq;

-- name: events_latest
SELECT {event} FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND seq <= $3 ORDER BY seq DESC LIMIT $4;

-- name: events_latest_named
-- Scans the audit trail of the plan, like `events_of_reviews`.
SELECT {event} FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND seq <= $3 AND name = $5 ORDER BY seq DESC LIMIT $4;

-- name: events_delete (sqlite)
-- Differs because a trigger of SQLite rejects the deletion while the plan exists.
DELETE FROM events WHERE tenant_id = $1 AND plan_id = $2;

-- name: events_delete (postgres)
-- Differs because the role of a transaction may not delete events; the function may, if the plan
-- does not exist.
SELECT onward_delete_events($1, $2) AS deleted;

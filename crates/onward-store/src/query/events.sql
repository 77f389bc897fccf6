-- The audit trail: it is added to, and read.

-- fragment: event
seq, commit_seq, at, actor, session, name, step_id, details

-- name: event_insert
INSERT INTO events (tenant_id, plan_id, seq, commit_seq, at, actor, session, name, step_id, details)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: events_after
SELECT {event} FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND seq > $3 ORDER BY seq LIMIT $4;

-- name: events_latest
SELECT {event} FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND seq <= $3 ORDER BY seq DESC LIMIT $4;

-- name: events_latest_named
-- Looks through the plan's trail, as `events_of_reviews` does.
SELECT {event} FROM events
WHERE tenant_id = $1 AND plan_id = $2 AND seq <= $3 AND name = $5 ORDER BY seq DESC LIMIT $4;

-- name: events_delete
DELETE FROM events WHERE tenant_id = $1 AND plan_id = $2;

-- The log of agents' tool calls, and when the sessions with open calls are due for a check.

-- fragment: call
session_id, agent_id, turn, position, call_id, batch, tool, input_digest, input, status, timeout_ms,
untimed, yields, grace_ms, owner_host, owner_boot, owner_process, owner_started, requested_at, asked_at,
had_begun, started_at, last_progress_at, ended_at, cause, interrupted_at, to_model, to_operator, result, reported

-- fragment: open
-- As in the condition of the index.
(status = 'requested' OR status = 'awaiting_approval' OR status = 'running')

-- name: call_insert
INSERT INTO session_calls (tenant_id, {call}, stale_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32);

-- name: call_update
-- Columns that describe the request do not change.
UPDATE session_calls SET status = $6, asked_at = $7, had_begun = $8, started_at = $9,
    last_progress_at = $10, ended_at = $11, cause = $12, interrupted_at = $13, to_model = $14,
    to_operator = $15, result = $16, reported = $17, stale_at = $18
WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3 AND turn = $4 AND position = $5;

-- name: call
SELECT {call} FROM session_calls
WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3 AND turn = $4 AND position = $5;

-- name: call_last_position
SELECT coalesce(max(position), 0) AS position FROM session_calls
WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3 AND turn = $4;

-- name: calls_open
SELECT {call} FROM session_calls WHERE tenant_id = $1 AND session_id = $2 AND {open}
ORDER BY requested_at, agent_id, turn, position;

-- name: calls_of_sessions
-- Open and interrupted calls of the latest sessions, newest last.
SELECT {call} FROM session_calls
WHERE tenant_id = $1 AND {latest_sessions} AND ({open} OR status = 'interrupted')
ORDER BY requested_at, agent_id, turn, position;

-- name: calls_by_id
-- Latest turn first; in order within a turn.
SELECT {call} FROM session_calls
WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3 AND call_id = $4
ORDER BY turn DESC, position LIMIT $5;

-- name: calls_interrupted_by_input
-- The latest interrupted call of a tool with this input, for agents without call ids.
SELECT {call} FROM session_calls
WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3 AND tool = $4 AND input_digest = $5
    AND status = 'interrupted'
ORDER BY turn DESC, position DESC LIMIT 1;

-- name: calls_unreported
-- Interrupted calls of which the agent was not notified.
SELECT {call} FROM session_calls
WHERE tenant_id = $1 AND session_id = $2 AND status = 'interrupted' AND reported = 0
ORDER BY requested_at, agent_id, turn, position LIMIT $3;

-- name: calls_set_reported
UPDATE session_calls SET reported = 1
WHERE tenant_id = $1 AND session_id = $2 AND status = 'interrupted' AND reported = 0;

-- name: calls_latest
-- The latest calls, in the order of their requests.
SELECT {call} FROM (SELECT {call} FROM session_calls WHERE tenant_id = $1 AND session_id = $2
    ORDER BY requested_at DESC, agent_id DESC, turn DESC, position DESC LIMIT $3) AS latest
ORDER BY requested_at, agent_id, turn, position;

-- name: calls_count
SELECT status, count(*) AS calls FROM session_calls WHERE tenant_id = $1 AND session_id = $2
GROUP BY status ORDER BY status;

-- name: due_calls_clear
DELETE FROM due_calls WHERE tenant_id = $1 AND session_id = $2;

-- name: due_calls_fill
-- One row for each process that runs the session or its calls. A call is stale after the instant,
-- not at it.
INSERT INTO due_calls (tenant_id, session_id, host, boot, process, started, at)
SELECT tenant_id, session_id, host, boot, process, started, min(at)
FROM (SELECT tenant_id, session_id, coalesce(owner_host, '') AS host, coalesce(owner_boot, '') AS boot,
        coalesce(owner_process, -1) AS process, coalesce(owner_started, -1) AS started,
        stale_at + 1 AS at
    FROM session_calls WHERE tenant_id = $1 AND session_id = $2 AND {open}
    UNION ALL
    SELECT tenant_id, session_id, owner_host, coalesce(owner_boot, ''), owner_process,
        coalesce(owner_started, -1), CAST(NULL AS bigint)
    FROM sessions WHERE tenant_id = $1 AND session_id = $2 AND ended_at IS NULL
        AND owner_host IS NOT NULL) AS owners
GROUP BY tenant_id, session_id, host, boot, process, started;

-- name: due_calls_put_off
UPDATE due_calls SET at = $3 WHERE tenant_id = $1 AND session_id = $2 AND at <= $4;

-- name: due_calls_until (sqlite)
-- Differs because there is no row security here.
SELECT DISTINCT tenant_id, session_id FROM due_calls WHERE at <= $1 AND $3 IS NULL LIMIT $2;

-- name: due_calls_until (postgres)
-- Differs because row security allows only a function to read the rows of all tenants.
SELECT tenant_id, session_id FROM onward_due_calls_until($1, $2, $3);

-- name: due_calls_of_host (sqlite)
-- Differs because there is no row security here.
SELECT tenant_id, session_id, host, boot, process, started FROM due_calls
WHERE host = $1 AND $2 IS NULL
ORDER BY tenant_id, session_id;

-- name: due_calls_of_host (postgres)
-- Differs because row security allows only a function to read the rows of all tenants.
SELECT tenant_id, session_id, host, boot, process, started FROM onward_due_calls_of_host($1, $2);

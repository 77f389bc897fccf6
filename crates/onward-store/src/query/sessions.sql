-- Agent sessions, their turns and steps, and the state of the turn detector.

-- fragment: session
session_id, agent, directory, started_at, last_seen_at, ended_at, switched_off, claims

-- fragment: turn
turn, agent_id, turn_key, began_at, progressed_at, ended_at, why_ended, steps, idle_steps, threshold,
verdict, held, nudged, refusals

-- name: session_touch
-- Records activity of a session, and locks it until the commit. Clocks may differ: the latest
-- instant is kept. Activity reopens a session that had ended. A call recorded over HTTP without an
-- agent name has the agent `api`, which does not replace a known name.
INSERT INTO sessions (tenant_id, session_id, agent, directory, started_at, last_seen_at, ended_at,
    switched_off, changed_at, changes)
VALUES ($1, $2, $3, $4, $5, $5, NULL, 0, $5, 1)
ON CONFLICT (tenant_id, session_id) DO UPDATE SET
    agent = CASE WHEN excluded.agent = 'api' THEN sessions.agent ELSE excluded.agent END,
    directory = coalesce(excluded.directory, sessions.directory),
    last_seen_at = CASE WHEN excluded.last_seen_at > sessions.last_seen_at
        THEN excluded.last_seen_at ELSE sessions.last_seen_at END,
    ended_at = NULL, changed_at = excluded.changed_at, changes = sessions.changes + 1;

-- name: session_hold (sqlite)
-- Differs because a write transaction on SQLite locks the whole file.
SELECT {session} FROM sessions WHERE tenant_id = $1 AND session_id = $2;

-- name: session_hold (postgres)
-- Differs because concurrent reports about the session must wait until the commit.
SELECT {session} FROM sessions WHERE tenant_id = $1 AND session_id = $2 FOR UPDATE;

-- name: session_bump
-- Records a change that was not reported by the agent.
UPDATE sessions SET changed_at = $3, changes = changes + 1 WHERE tenant_id = $1 AND session_id = $2;

-- name: sessions_changed
SELECT session_id, changes FROM sessions WHERE tenant_id = $1 AND changed_at >= $2
ORDER BY changed_at DESC, session_id LIMIT $3;

-- name: session_end
UPDATE sessions SET ended_at = $3 WHERE tenant_id = $1 AND session_id = $2;

-- name: session_claims
UPDATE sessions SET claims = $3 WHERE tenant_id = $1 AND session_id = $2;

-- name: session_switch
UPDATE sessions SET switched_off = $3, changed_at = $4, changes = changes + 1
WHERE tenant_id = $1 AND session_id = $2;

-- name: session
SELECT {session} FROM sessions WHERE tenant_id = $1 AND session_id = $2;

-- name: sessions_beginning
-- Two rows are enough to detect that a prefix is ambiguous.
SELECT {session} FROM sessions
WHERE tenant_id = $1 AND session_id >= $2 AND substr(session_id, 1, length($2)) = $2
ORDER BY session_id LIMIT 2;

-- name: sessions_latest
SELECT {session}, (SELECT count(*) FROM turns WHERE turns.tenant_id = $1
    AND turns.session_id = sessions.session_id) AS turns,
  (SELECT count(*) FROM turns WHERE turns.tenant_id = $1
    AND turns.session_id = sessions.session_id AND held IS NOT NULL) AS held
FROM sessions WHERE tenant_id = $1 ORDER BY last_seen_at DESC, session_id DESC LIMIT $2;

-- name: session_agent
SELECT agent_id, turn, state, fingerprint, known_calls, batches FROM session_agents
WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3;

-- name: session_agent_write
INSERT INTO session_agents (tenant_id, session_id, agent_id, turn, state, fingerprint, known_calls,
    batches)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant_id, session_id, agent_id) DO UPDATE SET
    turn = excluded.turn, state = excluded.state, fingerprint = excluded.fingerprint,
    known_calls = excluded.known_calls, batches = excluded.batches;

-- name: turn_last
SELECT {turn} FROM turns WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3
ORDER BY turn DESC LIMIT 1;

-- name: turn_of
SELECT {turn} FROM turns WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3 AND turn = $4;

-- name: turn_write
INSERT INTO turns (tenant_id, session_id, agent_id, turn, turn_key, began_at, progressed_at, ended_at,
    why_ended, steps, idle_steps, threshold, verdict, held, nudged, refusals)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
ON CONFLICT (tenant_id, session_id, agent_id, turn) DO UPDATE SET
    turn_key = excluded.turn_key, progressed_at = excluded.progressed_at,
    ended_at = excluded.ended_at, why_ended = excluded.why_ended,
    steps = excluded.steps, idle_steps = excluded.idle_steps, threshold = excluded.threshold,
    verdict = excluded.verdict, held = excluded.held, nudged = excluded.nudged,
    refusals = excluded.refusals;

-- name: turns_end
UPDATE turns SET ended_at = $3, why_ended = 'session_ended'
WHERE tenant_id = $1 AND session_id = $2 AND ended_at IS NULL;

-- name: turns_of_session
-- The latest turns, in the order in which they began.
SELECT {turn} FROM (SELECT {turn} FROM turns WHERE tenant_id = $1 AND session_id = $2
    ORDER BY began_at DESC, turn DESC, agent_id DESC LIMIT $3) AS latest
ORDER BY began_at, turn, agent_id;

-- name: turn_step_insert
INSERT INTO turn_steps (tenant_id, session_id, agent_id, turn, step, at, verdict, why, idle_steps,
    calls)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: turn_steps_latest
SELECT step, at, verdict, why, idle_steps, calls FROM (SELECT step, at, verdict, why, idle_steps,
    calls FROM turn_steps
    WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3 AND turn = $4
    ORDER BY step DESC LIMIT $5) AS latest
ORDER BY step;

-- name: directory_plan_write
INSERT INTO directory_plans (tenant_id, directory, plan_id, seen_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant_id, directory, plan_id) DO UPDATE SET seen_at = excluded.seen_at;

-- name: directory_plan_open
-- The open plan that was most recently worked on from a directory.
SELECT plans.plan_id AS plan_id FROM directory_plans JOIN plans
    ON plans.tenant_id = directory_plans.tenant_id AND plans.plan_id = directory_plans.plan_id
WHERE directory_plans.tenant_id = $1 AND directory_plans.directory = $2 AND plans.ended_at IS NULL
ORDER BY directory_plans.seen_at DESC, plans.plan_id LIMIT 1;

-- name: directory_plans_delete
DELETE FROM directory_plans WHERE tenant_id = $1 AND plan_id = $2;

-- name: sessions_count_before
SELECT count(*) AS sessions FROM sessions WHERE tenant_id = $1 AND last_seen_at < $2;

-- name: turn_steps_delete_before
DELETE FROM turn_steps WHERE tenant_id = $1 AND session_id IN
    (SELECT session_id FROM sessions WHERE tenant_id = $1 AND last_seen_at < $2);

-- name: session_calls_delete_before
DELETE FROM session_calls WHERE tenant_id = $1 AND session_id IN
    (SELECT session_id FROM sessions WHERE tenant_id = $1 AND last_seen_at < $2);

-- name: due_calls_delete_before
DELETE FROM due_calls WHERE tenant_id = $1 AND session_id IN
    (SELECT session_id FROM sessions WHERE tenant_id = $1 AND last_seen_at < $2);

-- name: turns_delete_before
DELETE FROM turns WHERE tenant_id = $1 AND session_id IN
    (SELECT session_id FROM sessions WHERE tenant_id = $1 AND last_seen_at < $2);

-- name: session_agents_delete_before
DELETE FROM session_agents WHERE tenant_id = $1 AND session_id IN
    (SELECT session_id FROM sessions WHERE tenant_id = $1 AND last_seen_at < $2);

-- name: sessions_delete_before
DELETE FROM sessions WHERE tenant_id = $1 AND last_seen_at < $2;

-- name: directory_plans_delete_before
DELETE FROM directory_plans WHERE tenant_id = $1 AND seen_at < $2;

-- name: plans_of_session
-- Open plans on which the session worked last; there are few open plans.
SELECT plan_id FROM plans WHERE tenant_id = $1 AND last_session = $2
    AND ended_at IS NULL
ORDER BY updated_about DESC, plan_id LIMIT $3;

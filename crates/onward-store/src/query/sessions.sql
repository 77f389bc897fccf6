-- Agent sessions, their turns and steps, and the state of the turn detector.

-- fragment: session
session_id, agent, directory, actor, prompt, started_at, last_seen_at, ended_at, switched_off, claims,
primed_for, primed_at, owner_host, owner_boot, owner_process, owner_started

-- fragment: latest_sessions
session_id IN (SELECT session_id FROM sessions WHERE tenant_id = $1
    ORDER BY last_seen_at DESC, session_id DESC LIMIT $2)

-- fragment: turn
turn, agent_id, turn_key, began_at, progressed_at, ended_at, why_ended, steps, idle_steps, threshold,
verdict, held, nudged, refusals, seen_at, answer

-- name: session_touch
-- Records activity of a session, and locks it until the commit. Clocks may differ: the latest
-- instant is kept. Activity reopens a session that had ended. A call recorded over HTTP without an
-- agent name has the agent `api`, which does not replace a known name.
INSERT INTO sessions (tenant_id, session_id, agent, directory, started_at, last_seen_at, ended_at,
    switched_off, changed_at, changes, actor, prompt, owner_host, owner_boot, owner_process, owner_started)
VALUES ($1, $2, $3, $4, $5, $5, NULL, 0, $5, 1, $6, $7, $8, $9, $10, $11)
ON CONFLICT (tenant_id, session_id) DO UPDATE SET
    agent = CASE WHEN excluded.agent = 'api' THEN sessions.agent ELSE excluded.agent END,
    directory = coalesce(excluded.directory, sessions.directory),
    actor = coalesce(sessions.actor, excluded.actor),
    prompt = coalesce(excluded.prompt, sessions.prompt),
    last_seen_at = CASE WHEN excluded.last_seen_at > sessions.last_seen_at
        THEN excluded.last_seen_at ELSE sessions.last_seen_at END,
    ended_at = NULL, changed_at = excluded.changed_at, changes = sessions.changes + 1,
    owner_host = coalesce(excluded.owner_host, sessions.owner_host),
    owner_boot = CASE WHEN excluded.owner_host IS NULL THEN sessions.owner_boot
        ELSE excluded.owner_boot END,
    owner_process = coalesce(excluded.owner_process, sessions.owner_process),
    owner_started = CASE WHEN excluded.owner_host IS NULL THEN sessions.owner_started
        ELSE excluded.owner_started END;

-- name: session_connect
-- The session of a stdio connection. A session that hooks report keeps its agent and its process.
INSERT INTO sessions (tenant_id, session_id, agent, directory, started_at, last_seen_at, ended_at,
    switched_off, changed_at, changes, actor, owner_host, owner_boot, owner_process, owner_started)
VALUES ($1, $2, $3, $4, $5, $5, NULL, 0, $5, 1, $6, $7, $8, $9, $10)
ON CONFLICT (tenant_id, session_id) DO UPDATE SET
    directory = excluded.directory, ended_at = NULL, changed_at = excluded.changed_at,
    changes = sessions.changes + 1, last_seen_at = CASE
        WHEN excluded.last_seen_at > sessions.last_seen_at THEN excluded.last_seen_at
        ELSE sessions.last_seen_at END,
    owner_host = excluded.owner_host, owner_boot = excluded.owner_boot,
    owner_process = excluded.owner_process, owner_started = excluded.owner_started
WHERE sessions.agent = excluded.agent;

-- name: sessions_of_process
SELECT {session} FROM sessions
WHERE tenant_id = $1 AND owner_host = $2 AND owner_process = $3 AND ended_at IS NULL
ORDER BY last_seen_at DESC, session_id LIMIT $4;

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

-- name: session_primed
UPDATE sessions SET primed_for = $3, primed_at = $4 WHERE tenant_id = $1 AND session_id = $2;

-- name: session_captured
SELECT captured FROM sessions WHERE tenant_id = $1 AND session_id = $2;

-- name: session_captured_write
UPDATE sessions SET captured = $3 WHERE tenant_id = $1 AND session_id = $2;

-- name: session_reminded
SELECT reminded FROM sessions WHERE tenant_id = $1 AND session_id = $2;

-- name: session_reminded_write
UPDATE sessions SET reminded = $3 WHERE tenant_id = $1 AND session_id = $2;

-- name: session_usage
SELECT usage FROM sessions WHERE tenant_id = $1 AND session_id = $2;

-- name: session_usage_write
UPDATE sessions SET usage = $3 WHERE tenant_id = $1 AND session_id = $2;

-- name: session_switch
UPDATE sessions SET switched_off = $3, changed_at = $4, changes = changes + 1
WHERE tenant_id = $1 AND session_id = $2;

-- name: session
SELECT {session} FROM sessions WHERE tenant_id = $1 AND session_id = $2;

-- name: sessions_beginning
SELECT {session} FROM sessions
WHERE tenant_id = $1 AND session_id >= $2 AND substr(session_id, 1, length($2)) = $2
ORDER BY session_id LIMIT $3;

-- name: sessions_latest
SELECT {session}, (SELECT count(*) FROM turns WHERE turns.tenant_id = $1
    AND turns.session_id = sessions.session_id) AS turns,
  (SELECT count(*) FROM turns WHERE turns.tenant_id = $1
    AND turns.session_id = sessions.session_id AND held IS NOT NULL) AS held,
  (SELECT CAST(coalesce(sum(steps), 0) AS bigint) FROM turns WHERE turns.tenant_id = $1
    AND turns.session_id = sessions.session_id) AS responses
FROM sessions WHERE tenant_id = $1 ORDER BY last_seen_at DESC, session_id DESC LIMIT $2;

-- name: turns_last_of_sessions
-- The last turn of the agent itself in each of the latest sessions.
SELECT session_id, {turn} FROM turns AS last
WHERE tenant_id = $1 AND agent_id = '' AND {latest_sessions}
    AND turn = (SELECT max(turn) FROM turns AS other WHERE other.tenant_id = $1
        AND other.session_id = last.session_id AND other.agent_id = '');

-- name: subagents_of_sessions
-- The last turn of each subagent, in those of the latest sessions that have one without an end.
SELECT session_id, {turn} FROM turns AS last
WHERE tenant_id = $1 AND agent_id <> '' AND {latest_sessions}
    AND EXISTS (SELECT 1 FROM turns AS running WHERE running.tenant_id = $1
        AND running.session_id = last.session_id AND running.agent_id <> ''
        AND running.ended_at IS NULL)
    AND turn = (SELECT max(turn) FROM turns AS other WHERE other.tenant_id = $1
        AND other.session_id = last.session_id AND other.agent_id = last.agent_id)
ORDER BY began_at, agent_id;

-- name: subagents_of_session
-- The last turn of each of the latest subagents, in the order in which they began.
SELECT {turn} FROM (SELECT {turn} FROM turns AS last
    WHERE tenant_id = $1 AND session_id = $2 AND agent_id <> ''
        AND turn = (SELECT max(turn) FROM turns AS other WHERE other.tenant_id = $1
            AND other.session_id = $2 AND other.agent_id = last.agent_id)
    ORDER BY began_at DESC, agent_id DESC LIMIT $3) AS latest
ORDER BY began_at, agent_id;

-- name: plans_of_sessions
-- The open plans on which the latest sessions worked last; there are few open plans.
SELECT last_session, plan_id, name FROM plans
WHERE tenant_id = $1 AND ended_at IS NULL AND last_session IN (SELECT session_id FROM sessions
    WHERE tenant_id = $1 ORDER BY last_seen_at DESC, session_id DESC LIMIT $2)
ORDER BY acted_about, plan_id DESC;

-- name: agents_seen
SELECT agent, max(last_seen_at) AS last_seen_at FROM sessions WHERE tenant_id = $1
GROUP BY agent ORDER BY agent;

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
    why_ended, steps, idle_steps, threshold, verdict, held, nudged, refusals, seen_at, answer)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
ON CONFLICT (tenant_id, session_id, agent_id, turn) DO UPDATE SET
    turn_key = excluded.turn_key, progressed_at = excluded.progressed_at,
    ended_at = excluded.ended_at, why_ended = excluded.why_ended,
    steps = excluded.steps, idle_steps = excluded.idle_steps, threshold = excluded.threshold,
    verdict = excluded.verdict, held = excluded.held, nudged = excluded.nudged,
    refusals = excluded.refusals, seen_at = excluded.seen_at, answer = excluded.answer;

-- name: turn_touch
-- Records an event of a subagent. Its silence is judged by this column.
UPDATE turns SET seen_at = $4
WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3 AND ended_at IS NULL;

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
    calls, message)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: turn_steps_latest
SELECT step, at, verdict, why, idle_steps, calls, message FROM (SELECT step, at, verdict, why,
    idle_steps, calls, message FROM turn_steps
    WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3 AND turn = $4
    ORDER BY step DESC LIMIT $5) AS latest
ORDER BY step;

-- name: directory_plan_write
INSERT INTO directory_plans (tenant_id, directory, plan_id, seen_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant_id, directory, plan_id) DO UPDATE SET seen_at = excluded.seen_at;

-- name: directory_plans_open
-- The open plans that were worked on from a directory, most recent first. Captured plans without an
-- action since `$4` are archived.
SELECT plans.plan_id AS plan_id, plans.awaiting_input AS awaiting_input FROM directory_plans JOIN plans
    ON plans.tenant_id = $1 AND plans.plan_id = directory_plans.plan_id
WHERE directory_plans.tenant_id = $1 AND directory_plans.directory = $2 AND plans.ended_at IS NULL
    AND (plans.origin = 'caller' OR plans.acted_at >= $4)
ORDER BY directory_plans.seen_at DESC, plans.plan_id LIMIT $3;

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
ORDER BY acted_about DESC, plan_id LIMIT $3;

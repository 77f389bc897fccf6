-- Agent sessions as reported by hooks: turns, steps, and the state of the turn detector. Differs
-- from PostgreSQL as the first schema does.

CREATE TABLE sessions (
    tenant_id text NOT NULL,
    session_id text NOT NULL CHECK (session_id <> ''),
    agent text NOT NULL,
    directory text,
    started_at integer NOT NULL,
    last_seen_at integer NOT NULL,
    ended_at integer,
    switched_off integer NOT NULL CHECK (switched_off IN (0, 1)),
    PRIMARY KEY (tenant_id, session_id),
    CHECK (last_seen_at >= started_at)
);
CREATE INDEX sessions_by_time ON sessions (tenant_id, last_seen_at, session_id);

-- An agent of a session or one of its subagents, with the detector state of its turn. The id of the
-- agent itself is empty.
CREATE TABLE session_agents (
    tenant_id text NOT NULL,
    session_id text NOT NULL,
    agent_id text NOT NULL,
    turn integer NOT NULL CHECK (turn >= 0),
    state text NOT NULL,
    fingerprint text,
    known_calls text NOT NULL,
    batches integer NOT NULL CHECK (batches IN (0, 1)),
    PRIMARY KEY (tenant_id, session_id, agent_id)
);

CREATE TABLE turns (
    tenant_id text NOT NULL,
    session_id text NOT NULL,
    agent_id text NOT NULL,
    turn integer NOT NULL CHECK (turn >= 1),
    turn_key text,
    began_at integer NOT NULL,
    progressed_at integer,
    ended_at integer,
    why_ended text CHECK (why_ended IN ('answered', 'next_prompt', 'stopped', 'session_ended')),
    steps integer NOT NULL CHECK (steps >= 0),
    idle_steps integer NOT NULL CHECK (idle_steps >= 0),
    threshold integer NOT NULL CHECK (threshold >= 1),
    verdict text CHECK (verdict IN ('progress', 'idle', 'stalled', 'unjudged')),
    held text CHECK (held IN ('stalled', 'max_steps')),
    nudged integer NOT NULL CHECK (nudged IN (0, 1)),
    refusals integer NOT NULL CHECK (refusals >= 0),
    PRIMARY KEY (tenant_id, session_id, agent_id, turn),
    CHECK ((ended_at IS NULL) = (why_ended IS NULL)),
    CHECK ((verdict IS NULL) = (steps = 0))
);

CREATE TABLE turn_steps (
    tenant_id text NOT NULL,
    session_id text NOT NULL,
    agent_id text NOT NULL,
    turn integer NOT NULL,
    step integer NOT NULL CHECK (step >= 1),
    at integer NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('progress', 'idle', 'stalled', 'unjudged')),
    why text,
    idle_steps integer NOT NULL CHECK (idle_steps >= 0),
    calls text NOT NULL,
    PRIMARY KEY (tenant_id, session_id, agent_id, turn, step),
    CHECK (why IS NULL OR verdict = 'progress')
);

-- Plans that were worked on from a directory, so that the next session there can resume them.
CREATE TABLE directory_plans (
    tenant_id text NOT NULL,
    directory text NOT NULL,
    plan_id blob NOT NULL,
    seen_at integer NOT NULL,
    PRIMARY KEY (tenant_id, directory, plan_id)
);
CREATE INDEX directory_plans_of_plan ON directory_plans (tenant_id, plan_id);

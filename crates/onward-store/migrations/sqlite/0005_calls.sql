-- The log of agents' tool calls. A call is recorded before its effect begins, and every change to
-- it is written before it is acknowledged. Differs from PostgreSQL as the first schema does.

-- For subscribers in other processes: which sessions have changed, and how often.
ALTER TABLE sessions ADD COLUMN changed_at integer NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN changes integer NOT NULL DEFAULT 0;
CREATE INDEX sessions_by_change ON sessions (tenant_id, changed_at);

-- A call by its turn and its position: ids come from models, and may repeat. `stale_at` is the last
-- instant at which it counts as alive without further activity; NULL if it has no time limit. The
-- substitute for a missing result remains next to a result that arrives late.
CREATE TABLE session_calls (
    tenant_id text NOT NULL,
    session_id text NOT NULL,
    agent_id text NOT NULL,
    turn integer NOT NULL CHECK (turn >= 1),
    position integer NOT NULL CHECK (position >= 1),
    call_id text,
    batch integer NOT NULL CHECK (batch >= 0),
    tool text NOT NULL,
    input_digest text NOT NULL,
    input text NOT NULL,
    status text NOT NULL CHECK (status IN ('requested', 'awaiting_approval', 'running', 'completed',
        'failed', 'denied', 'cancelled', 'interrupted')),
    timeout_ms integer CHECK (timeout_ms > 0),
    untimed integer NOT NULL CHECK (untimed IN (0, 1)),
    owner_host text CHECK (owner_host <> ''),
    owner_boot text,
    owner_process integer CHECK (owner_process >= 0),
    owner_started integer CHECK (owner_started >= 0),
    requested_at integer NOT NULL,
    asked_at integer,
    had_begun integer NOT NULL CHECK (had_begun IN (0, 1)),
    started_at integer,
    last_progress_at integer,
    stale_at integer,
    ended_at integer,
    cause text CHECK (cause IN ('not_started', 'outcome_unknown', 'timed_out')),
    interrupted_at integer,
    to_model text,
    to_operator text,
    result text,
    told integer NOT NULL CHECK (told IN (0, 1)),
    PRIMARY KEY (tenant_id, session_id, agent_id, turn, position),
    CHECK (untimed = 0 OR timeout_ms IS NULL),
    CHECK ((owner_host IS NULL) = (owner_process IS NULL)),
    CHECK (owner_host IS NOT NULL OR (owner_boot IS NULL AND owner_started IS NULL)),
    CHECK (status <> 'awaiting_approval' OR asked_at IS NOT NULL),
    CHECK (status <> 'running' OR started_at IS NOT NULL),
    CHECK (last_progress_at IS NULL OR started_at IS NOT NULL),
    CHECK (stale_at IS NULL OR status = 'running'),
    CHECK ((ended_at IS NULL) = (status NOT IN ('completed', 'failed', 'denied', 'cancelled'))),
    CHECK ((cause IS NULL) = (interrupted_at IS NULL)),
    CHECK ((cause IS NULL) = (to_model IS NULL)),
    CHECK ((cause IS NULL) = (to_operator IS NULL)),
    CHECK (status <> 'interrupted' OR cause IS NOT NULL),
    CHECK (cause IS NULL OR status IN ('interrupted', 'completed', 'failed')),
    CHECK (result IS NULL OR status IN ('completed', 'failed'))
);
CREATE INDEX session_calls_open ON session_calls (tenant_id, session_id)
    WHERE status IN ('requested', 'awaiting_approval', 'running');
CREATE INDEX session_calls_by_id ON session_calls (tenant_id, session_id, agent_id, call_id);

-- Due calls: when the open calls of a session must be checked, and which process runs them, so that
-- another process on the same host can detect that it has exited. Read across tenants, like `due`.
-- An unknown owner has an empty host.
CREATE TABLE due_calls (
    tenant_id text NOT NULL,
    session_id text NOT NULL,
    host text NOT NULL,
    boot text NOT NULL,
    process integer NOT NULL,
    started integer NOT NULL,
    at integer,
    PRIMARY KEY (tenant_id, session_id, host, boot, process, started)
) WITHOUT ROWID;
CREATE INDEX due_calls_by_time ON due_calls (at);
CREATE INDEX due_calls_by_host ON due_calls (host);

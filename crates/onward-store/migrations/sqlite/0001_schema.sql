-- The SQLite schema. Differs from PostgreSQL in the names of types, and because there is no row
-- security: only the text of a statement restricts it to its tenant. Triggers protect the audit
-- trail and maintain the indexes of words and signs; PostgreSQL has privileges and statements for
-- that.
--
-- Instants and durations are whole milliseconds; ids are 16 bytes; JSON is text, as written. The
-- CHECKs repeat the rules of the states: a row that matches no valid state cannot be written. They
-- and the conditions of indexes use `a OR b OR c` where PostgreSQL uses `IN`, because SQLite builds
-- a table for a list of three with every write.

CREATE TABLE tenants (
    tenant_id text NOT NULL PRIMARY KEY,
    agents_decide_reviews integer NOT NULL CHECK (agents_decide_reviews IN (0, 1)),
    created_at integer NOT NULL,
    -- Last check whether the database accepts writes.
    checked_at integer
) WITHOUT ROWID;

CREATE TABLE plans (
    tenant_id text NOT NULL,
    plan_id blob NOT NULL,
    name text NOT NULL,
    research_question text NOT NULL,
    design_rationale text,
    output_formatting_notes text,
    -- `agent`: mirrors the agent's own plan or task list.
    origin text NOT NULL DEFAULT 'caller' CHECK (origin = 'caller' OR origin = 'agent'),
    stall_threshold_ms integer CHECK (stall_threshold_ms > 0),
    on_stall text NOT NULL CHECK (on_stall = 'mark' OR on_stall = 'requeue' OR on_stall = 'fail'
        OR on_stall = 'ignore'),
    -- Whether later steps wait for dependencies that have failed.
    on_dependency_failure text NOT NULL DEFAULT 'block'
        CHECK (on_dependency_failure = 'block' OR on_dependency_failure = 'continue'),
    status text NOT NULL,
    -- Pending reviews that stop the plan, as JSON.
    open_reviews text,
    marked_at integer,
    ended_at integer,
    failure_kind text,
    failure_words text,
    last_session text,
    pending integer NOT NULL CHECK (pending >= 0),
    in_progress integer NOT NULL CHECK (in_progress >= 0),
    awaiting_input integer NOT NULL CHECK (awaiting_input >= 0),
    completed integer NOT NULL CHECK (completed >= 0),
    skipped integer NOT NULL CHECK (skipped >= 0),
    failed integer NOT NULL CHECK (failed >= 0),
    seq integer NOT NULL CHECK (seq > 0),
    -- Random, and new with every commit. A database that was restored, or that lost commits in a
    -- failover, repeats sequence numbers; it does not repeat the tags of the lost commits.
    version_tag integer NOT NULL DEFAULT 0,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    -- Last action of an agent or a user; the sweep does not count.
    acted_at integer NOT NULL,
    -- Last activity of an agent.
    worked_at integer NOT NULL,
    -- The owner: the author of the first event, and the name, host and directory of the agent.
    created_by text NOT NULL,
    client text,
    host text,
    directory text,
    -- `acted_at` in units of ten seconds; lists are ordered by it first. An index over `acted_at` would
    -- change with every call.
    acted_about integer NOT NULL DEFAULT 0,
    -- Number of steps. Written only when it or the state of the plan changes, because an index over
    -- it counts as changed whenever the column is set.
    steps integer NOT NULL DEFAULT 0,
    -- Steps that were redone. They are not included in the other counts.
    superseded integer NOT NULL DEFAULT 0 CHECK (superseded >= 0),
    -- The plan of which this one is a fork, and the first step whose result was not taken over.
    forked_from blob,
    forked_step integer,
    project_key text,
    -- Sorted, as JSON; empty if there are none.
    labels text NOT NULL DEFAULT '',
    priority integer NOT NULL DEFAULT 5 CHECK (priority >= 0 AND priority <= 9),
    -- The limits of the budget and their use, as JSON.
    budget text,
    -- Sum of the tokens of its steps. Empty if no count is known.
    tokens integer,
    PRIMARY KEY (tenant_id, plan_id),
    CHECK (status = 'planning' OR status = 'executing' OR status = 'awaiting_review'
        OR status = 'stalled' OR status = 'completed' OR status = 'failed'),
    CHECK ((status = 'awaiting_review') = (open_reviews IS NOT NULL)),
    CHECK ((status = 'stalled') = (marked_at IS NOT NULL)),
    CHECK ((status IN ('completed', 'failed')) = (ended_at IS NOT NULL)),
    CHECK ((status = 'failed') = (failure_kind IS NOT NULL)),
    CHECK (status <> 'completed' OR pending + in_progress + awaiting_input = 0)
);
-- For lists by status; counting needs no other index.
CREATE INDEX plans_by_status ON plans (tenant_id, status, acted_about, steps);
-- For counting ended plans by outcome. A change of an open plan does not touch it.
CREATE INDEX plans_ended ON plans (tenant_id, status, failed, failure_kind)
    WHERE ended_at IS NOT NULL;
-- For archived captured plans.
CREATE INDEX plans_captured ON plans (tenant_id, acted_about)
    WHERE origin = 'agent' AND ended_at IS NULL;
CREATE INDEX plans_forks ON plans (tenant_id, forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX plans_of_project ON plans (tenant_id, project_key, status) WHERE project_key IS NOT NULL;

CREATE TABLE steps (
    tenant_id text NOT NULL,
    step_id blob NOT NULL,
    plan_id blob NOT NULL,
    -- Negative only inside the transaction that moves steps.
    step_order integer NOT NULL CHECK (step_order <> 0),
    step_type text NOT NULL CHECK (step_type = 'search' OR step_type = 'extract'
        OR step_type = 'analyze' OR step_type = 'critique' OR step_type = 'synthesize'
        OR step_type = 'checkpoint' OR step_type = 'custom'),
    title text,
    instructions text NOT NULL,
    depends_on text NOT NULL,
    on_dependency_failure text NOT NULL DEFAULT 'block'
        CHECK (on_dependency_failure = 'block' OR on_dependency_failure = 'continue'),
    stall_threshold_ms integer CHECK (stall_threshold_ms > 0),
    max_attempts integer NOT NULL CHECK (max_attempts > 0),
    -- What a result must contain, and who reviews it, as JSON.
    gates text,
    status text NOT NULL,
    attempt integer NOT NULL CHECK (attempt >= 0),
    claim_token text,
    claim_session text,
    started_at integer,
    last_progress_at integer,
    -- 1 if events of the holder's session are recorded as activity.
    monitored integer NOT NULL DEFAULT 0 CHECK (monitored IN (0, 1)),
    stall_marked_at integer,
    -- When the session that holds the step ended.
    orphaned_at integer,
    undelivered integer NOT NULL CHECK (undelivered >= 0 AND undelivered <= 2),
    -- The artifact with the holder's last invalid result.
    kept_artifact_id blob,
    review text,
    ended_at integer,
    -- First event of the commit in which the step ended, so that its response can be repeated.
    ended_commit integer,
    result_summary text,
    result_confidence real,
    result text,
    result_report text,
    result_notes text,
    result_evidence text,
    skipped_by_branch blob,
    skipped_by_review blob,
    failure_kind text,
    failure_words text,
    superseded text NOT NULL,
    updated_at integer NOT NULL,
    -- Derived, so that an index finds the steps that can be assigned and those that have stalled.
    open_dependencies integer NOT NULL CHECK (open_dependencies >= 0),
    stalls_at integer,
    -- The last progress report with a note or a percentage. Outdated if it is older than the claim.
    last_note text,
    last_percent real,
    noted_at integer,
    -- The step that this one redoes, and the step that redoes this one.
    supersedes blob,
    superseded_by blob CHECK (superseded_by IS NULL OR ended_at IS NOT NULL),
    -- Sorted, as JSON; empty if there are none.
    labels text NOT NULL DEFAULT '',
    priority integer NOT NULL DEFAULT 5 CHECK (priority >= 0 AND priority <= 9),
    -- Derived from the plan, for the queue of its project. No project while the plan assigns no step.
    project_key text,
    plan_priority integer,
    plan_created_at integer,
    -- Tokens of the sessions while they held the step. Empty if no count is known.
    tokens integer,
    -- Whether search contains the step since its end.
    indexed integer NOT NULL DEFAULT 0 CHECK (indexed IN (0, 1)),
    PRIMARY KEY (tenant_id, step_id),
    UNIQUE (tenant_id, plan_id, step_order),
    CHECK (status = 'pending' OR status = 'in_progress' OR status = 'awaiting_input'
        OR status = 'completed' OR status = 'skipped' OR status = 'failed'),
    CHECK (status <> 'pending' OR (claim_token IS NULL AND attempt > 0)),
    CHECK ((status <> 'in_progress' AND status <> 'completed')
        OR (claim_token IS NOT NULL AND started_at IS NOT NULL)),
    -- Without a claim, the start of the plan is under review.
    CHECK (status <> 'awaiting_input' OR (claim_token IS NULL) = (started_at IS NULL)),
    CHECK ((status = 'completed' OR status = 'skipped' OR status = 'failed')
        = (ended_at IS NOT NULL)),
    CHECK ((ended_at IS NULL) = (ended_commit IS NULL)),
    CHECK ((status = 'awaiting_input') = (review IS NOT NULL)),
    CHECK ((status = 'completed') = (result_summary IS NOT NULL)),
    CHECK (result_evidence IS NULL OR status = 'completed'),
    -- Neither if a person skipped it.
    CHECK (status = 'skipped' OR (skipped_by_branch IS NULL AND skipped_by_review IS NULL)),
    CHECK ((status = 'failed') = (failure_kind IS NOT NULL)),
    CHECK (undelivered = 0 OR status IN ('in_progress', 'awaiting_input')),
    CHECK (kept_artifact_id IS NULL OR status IN ('in_progress', 'awaiting_input')),
    CHECK (stalls_at IS NULL OR status = 'in_progress')
);
-- Steps that can be assigned and steps in progress: one index, so that assigning a step changes one
-- page instead of two. A pending step has no stall time.
CREATE INDEX steps_open ON steps
    (tenant_id, plan_id, status, stalls_at, open_dependencies, priority DESC, step_order)
    WHERE status = 'pending' OR status = 'in_progress';
-- The steps of a project that can be assigned, in the order of their assignment for each set of labels.
CREATE INDEX steps_queue ON steps (tenant_id, project_key, labels, plan_priority DESC, priority DESC,
    plan_created_at, plan_id, step_order)
    WHERE project_key IS NOT NULL AND status = 'pending' AND open_dependencies = 0;
-- The labelled steps of a plan that can be assigned.
CREATE INDEX steps_labelled ON steps (tenant_id, plan_id, labels, priority DESC, step_order)
    WHERE labels <> '' AND status = 'pending' AND open_dependencies = 0;
CREATE INDEX steps_asking ON steps (tenant_id, plan_id)
    WHERE status = 'awaiting_input';
CREATE INDEX steps_undelivered ON steps (tenant_id, plan_id, step_order)
    WHERE undelivered = 1;
-- Rows that match no state, which the other indexes do not contain. Normally empty: SQLite accepts
-- any type in a column, and a connection can disable the constraints.
CREATE INDEX steps_corrupt ON steps (tenant_id, plan_id, step_order)
    WHERE ((status <> 'pending' AND status <> 'in_progress' AND status <> 'awaiting_input'
        AND status <> 'completed' AND status <> 'skipped' AND status <> 'failed')
        OR (status = 'pending' AND (claim_token IS NOT NULL OR stalls_at IS NOT NULL
            OR typeof(open_dependencies) <> 'integer'))
        OR (status = 'completed' OR status = 'skipped' OR status = 'failed')
            <> (ended_at IS NOT NULL));
CREATE INDEX steps_reviewed ON steps (tenant_id, updated_at)
    WHERE status = 'awaiting_input';
-- Steps that a session holds, for each report of its activity.
CREATE INDEX steps_held ON steps (tenant_id, claim_session, plan_id, step_id)
    WHERE (status = 'in_progress' OR status = 'awaiting_input') AND claim_session IS NOT NULL;

-- Steps of ended sessions, which other sessions can take over.
CREATE INDEX steps_orphaned ON steps (tenant_id, plan_id)
    WHERE orphaned_at IS NOT NULL;

-- Ended steps that search does not contain yet.
CREATE INDEX steps_unindexed ON steps (tenant_id, step_id)
    WHERE ended_at IS NOT NULL AND indexed = 0;

-- `step_id` depends on `needs`.
CREATE TABLE dependencies (
    tenant_id text NOT NULL,
    needs blob NOT NULL,
    step_id blob NOT NULL,
    plan_id blob NOT NULL,
    PRIMARY KEY (tenant_id, needs, step_id)
) WITHOUT ROWID;
CREATE INDEX dependencies_of_step ON dependencies (tenant_id, step_id);
CREATE INDEX dependencies_of_plan ON dependencies (tenant_id, plan_id);

CREATE TABLE branches (
    tenant_id text NOT NULL,
    branch_id blob NOT NULL,
    plan_id blob NOT NULL,
    after_step blob NOT NULL,
    ordinal integer NOT NULL,
    condition text NOT NULL,
    action text NOT NULL CHECK (action = 'continue' OR action = 'skip_to'
        OR action = 'add_steps' OR action = 'fail'),
    params text NOT NULL,
    PRIMARY KEY (tenant_id, branch_id)
) WITHOUT ROWID;
CREATE INDEX branches_after ON branches (tenant_id, after_step, ordinal);
CREATE INDEX branches_of_plan ON branches (tenant_id, plan_id, ordinal);

-- `branch_id` references `step_id`, which therefore cannot be removed.
CREATE TABLE branch_needs (
    tenant_id text NOT NULL,
    step_id blob NOT NULL,
    branch_id blob NOT NULL,
    plan_id blob NOT NULL,
    PRIMARY KEY (tenant_id, step_id, branch_id)
) WITHOUT ROWID;
CREATE INDEX branch_needs_of_plan ON branch_needs (tenant_id, plan_id);

-- The audit trail. Its primary key guards every commit: two commits based on the same version of a
-- plan use the same sequence number, and the second one is rejected.
CREATE TABLE events (
    tenant_id text NOT NULL,
    plan_id blob NOT NULL,
    seq integer NOT NULL CHECK (seq > 0),
    -- Sequence number of the first event of the same commit.
    commit_seq integer NOT NULL CHECK (commit_seq > 0 AND commit_seq <= seq),
    at integer NOT NULL,
    actor text NOT NULL,
    session text,
    name text NOT NULL,
    step_id blob,
    details text NOT NULL,
    PRIMARY KEY (tenant_id, plan_id, seq)
) WITHOUT ROWID;
-- Few entries are reviews, so the index costs the other entries nothing.
CREATE INDEX events_reviews ON events (tenant_id, plan_id, step_id, seq)
    WHERE name = 'user_reviewed';
CREATE TRIGGER events_reject_update BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'the audit trail cannot be updated');
END;
-- `INSERT OR REPLACE` deletes rows without firing the trigger below.
CREATE TRIGGER events_reject_replace BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE tenant_id = NEW.tenant_id AND plan_id = NEW.plan_id
    AND seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'the audit trail already contains this events.seq');
END;
CREATE TRIGGER events_reject_delete BEFORE DELETE ON events
WHEN EXISTS (SELECT 1 FROM plans WHERE tenant_id = OLD.tenant_id AND plan_id = OLD.plan_id)
BEGIN
    SELECT RAISE(ABORT, 'the audit trail of an existing plan cannot be deleted');
END;

CREATE TABLE resumed_sessions (
    tenant_id text NOT NULL,
    plan_id blob NOT NULL,
    session text NOT NULL,
    PRIMARY KEY (tenant_id, plan_id, session)
) WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    tenant_id text NOT NULL,
    idempotency_key text NOT NULL,
    plan_id blob NOT NULL,
    digest text NOT NULL,
    created_at integer NOT NULL,
    PRIMARY KEY (tenant_id, idempotency_key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_of_plan ON idempotency_keys (tenant_id, plan_id);

CREATE TABLE artifacts (
    tenant_id text NOT NULL,
    artifact_id blob NOT NULL,
    plan_id blob,
    step_id blob,
    artifact_type text NOT NULL CHECK (artifact_type IN
        ('note', 'source', 'data', 'finding', 'quote', 'late_result', 'other')),
    title text NOT NULL,
    content text NOT NULL,
    source_url text,
    metadata text NOT NULL,
    created_at integer NOT NULL,
    PRIMARY KEY (tenant_id, artifact_id)
);
CREATE INDEX artifacts_by_time ON artifacts (tenant_id, created_at, artifact_id);
CREATE INDEX artifacts_of_plan ON artifacts (tenant_id, plan_id, created_at)
    WHERE plan_id IS NOT NULL;

-- Actions on a tenant other than changes of its plans: a plan was deleted, a token created.
CREATE TABLE tenant_log (
    tenant_id text NOT NULL,
    entry_id blob NOT NULL,
    at integer NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    details text NOT NULL,
    PRIMARY KEY (tenant_id, entry_id)
) WITHOUT ROWID;
CREATE INDEX tenant_log_by_time ON tenant_log (tenant_id, at, entry_id);

CREATE TABLE tool_calls (
    tenant_id text NOT NULL,
    call_id blob NOT NULL,
    at integer NOT NULL,
    tool text NOT NULL,
    actor text NOT NULL,
    session text,
    request text NOT NULL,
    response text NOT NULL,
    duration_us integer NOT NULL CHECK (duration_us >= 0),
    is_error integer NOT NULL CHECK (is_error IN (0, 1)),
    PRIMARY KEY (tenant_id, at, call_id)
);

CREATE TABLE tokens (
    tenant_id text NOT NULL,
    token_id blob NOT NULL,
    prefix text NOT NULL,
    name text NOT NULL,
    role text NOT NULL CHECK (role = 'owner' OR role = 'admin' OR role = 'member'
        OR role = 'agent' OR role = 'viewer'),
    created_at integer NOT NULL,
    expires_at integer,
    last_used_at integer,
    revoked_at integer,
    PRIMARY KEY (tenant_id, token_id)
) WITHOUT ROWID;

-- Finds the tenant of a token. Read across tenants.
CREATE TABLE token_hashes (
    tenant_id text NOT NULL,
    hash text NOT NULL,
    token_id blob NOT NULL,
    PRIMARY KEY (tenant_id, hash)
) WITHOUT ROWID;
CREATE INDEX token_hashes_by_hash ON token_hashes (hash);

-- Browser sessions that users ended before they expired.
CREATE TABLE sign_outs (
    tenant_id text NOT NULL,
    session_key text NOT NULL,
    expires_at integer NOT NULL,
    PRIMARY KEY (tenant_id, session_key)
) WITHOUT ROWID;

-- Due times: when the sweep must check each plan. A plan may be checked too early, but never too
-- late. Read across tenants.
CREATE TABLE due (
    tenant_id text NOT NULL,
    plan_id blob NOT NULL,
    at integer NOT NULL,
    PRIMARY KEY (tenant_id, plan_id)
) WITHOUT ROWID;
CREATE INDEX due_by_time ON due (at);

-- Skill executions of agents.
CREATE TABLE skill_executions (
    tenant_id text NOT NULL,
    execution_id blob NOT NULL,
    skill_name text NOT NULL,
    status text NOT NULL CHECK (status = 'started' OR status = 'executing'
        OR status = 'completed' OR status = 'failed'),
    session text,
    plan_id blob,
    metadata text NOT NULL,
    error_message text,
    started_at integer NOT NULL,
    updated_at integer NOT NULL,
    ended_at integer,
    PRIMARY KEY (tenant_id, execution_id),
    CHECK ((status IN ('completed', 'failed')) = (ended_at IS NOT NULL)),
    CHECK (error_message IS NULL OR status = 'failed')
);
-- Executions that a new plan may be linked to.
CREATE INDEX skill_executions_started ON skill_executions
    (tenant_id, session, started_at, execution_id)
    WHERE status = 'started';
CREATE INDEX skill_executions_of_plan ON skill_executions
    (tenant_id, plan_id, started_at, execution_id)
    WHERE plan_id IS NOT NULL;
-- For lists and counts of executions.
CREATE INDEX skill_executions_by_time ON skill_executions (tenant_id, started_at, execution_id);
CREATE INDEX skill_executions_by_status ON skill_executions (tenant_id, status, ended_at, started_at);

-- User feedback about plans.
CREATE TABLE feedback (
    tenant_id text NOT NULL,
    feedback_id blob NOT NULL,
    plan_id blob NOT NULL,
    -- The output that the feedback concerns, if any.
    output_id blob,
    rating integer CHECK (rating BETWEEN 1 AND 5),
    comment text,
    actor text NOT NULL,
    created_at integer NOT NULL,
    PRIMARY KEY (tenant_id, feedback_id),
    CHECK (rating IS NOT NULL OR comment IS NOT NULL)
);
CREATE INDEX feedback_of_plan ON feedback (tenant_id, plan_id, created_at, feedback_id);

-- Tool calls that MCP clients follow as tasks. A task without an outcome has a state, from which its
-- tool derives the status, and a task with an outcome does not change.
CREATE TABLE tasks (
    tenant_id text NOT NULL,
    task_id blob NOT NULL,
    actor text NOT NULL,
    tool text NOT NULL,
    plan_id blob,
    state text,
    version integer NOT NULL CHECK (version >= 1),
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    outcome text CHECK (outcome = 'completed' OR outcome = 'failed' OR outcome = 'cancelled'),
    result text,
    PRIMARY KEY (tenant_id, task_id),
    CHECK ((outcome IS NULL) = (state IS NOT NULL)),
    CHECK ((result IS NOT NULL) = (outcome IS NOT NULL AND outcome <> 'cancelled'))
);
CREATE INDEX tasks_of_plan ON tasks (tenant_id, plan_id) WHERE plan_id IS NOT NULL;
-- Tasks without a plan are found only by their age.
CREATE INDEX tasks_without_plan ON tasks (tenant_id, created_at) WHERE plan_id IS NULL;

-- Agent sessions as reported by hooks: turns, steps, and the state of the turn detector.
CREATE TABLE sessions (
    tenant_id text NOT NULL,
    session_id text NOT NULL CHECK (session_id <> ''),
    agent text NOT NULL,
    directory text,
    -- Who runs the agent: the first caller that reported the session.
    actor text,
    -- The beginning of the last prompt, without secrets. It names a captured plan.
    prompt text,
    started_at integer NOT NULL,
    last_seen_at integer NOT NULL,
    ended_at integer,
    switched_off integer NOT NULL CHECK (switched_off IN (0, 1)),
    -- Claims in the results of its calls: a list of steps and tokens.
    claims text NOT NULL DEFAULT '[]',
    -- The last summary of the project that the agent received: the event that requested it, and when.
    -- The event `due` is a compaction whose own event carries no text.
    primed_for text,
    primed_at integer,
    -- The agent's own task list, and the plan that mirrors it.
    captured text,
    -- The claims that the agent was reminded of when it stopped.
    reminded text,
    -- Its tokens, their source, and the positions in its transcripts, as JSON.
    usage text,
    -- For subscribers in other processes: when it changed last, and how often.
    changed_at integer NOT NULL DEFAULT 0,
    changes integer NOT NULL DEFAULT 0,
    -- The process whose exit ends the session: the agent, or the server of a stdio connection.
    owner_host text CHECK (owner_host <> ''),
    owner_boot text,
    owner_process integer CHECK (owner_process >= 0),
    owner_started integer CHECK (owner_started >= 0),
    PRIMARY KEY (tenant_id, session_id),
    CHECK ((owner_host IS NULL) = (owner_process IS NULL)),
    CHECK (owner_host IS NOT NULL OR (owner_boot IS NULL AND owner_started IS NULL)),
    CHECK (last_seen_at >= started_at),
    CHECK ((primed_for IS NULL) = (primed_at IS NULL))
);
CREATE INDEX sessions_by_time ON sessions (tenant_id, last_seen_at, session_id);
CREATE INDEX sessions_by_change ON sessions (tenant_id, changed_at);
CREATE INDEX sessions_of_process ON sessions (tenant_id, owner_host, owner_process)
    WHERE owner_host IS NOT NULL AND ended_at IS NULL;

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
    why_ended text CHECK (why_ended = 'answered' OR why_ended = 'next_prompt'
        OR why_ended = 'stopped' OR why_ended = 'session_ended'),
    steps integer NOT NULL CHECK (steps >= 0),
    idle_steps integer NOT NULL CHECK (idle_steps >= 0),
    threshold integer NOT NULL CHECK (threshold >= 1),
    verdict text CHECK (verdict = 'progress' OR verdict = 'idle' OR verdict = 'stalled'
        OR verdict = 'unjudged'),
    held text CHECK (held IN ('stalled', 'max_steps')),
    nudged integer NOT NULL CHECK (nudged IN (0, 1)),
    refusals integer NOT NULL CHECK (refusals >= 0),
    -- The last event of a subagent. Those of the agent itself are in `sessions.last_seen_at`.
    seen_at integer NOT NULL,
    -- The beginning of a subagent's answer, without secrets.
    answer text,
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
    verdict text NOT NULL CHECK (verdict = 'progress' OR verdict = 'idle'
        OR verdict = 'stalled' OR verdict = 'unjudged'),
    why text,
    idle_steps integer NOT NULL CHECK (idle_steps >= 0),
    calls text NOT NULL,
    -- Sent to the model after the step: a nudge or a reminder.
    message text,
    PRIMARY KEY (tenant_id, session_id, agent_id, turn, step),
    CHECK (why IS NULL OR verdict <> 'unjudged')
);

-- Plans that were worked on from a directory, so that the next session there can resume them. The
-- directory is the project of the session: all worktrees and subdirectories of a repository are one.
CREATE TABLE directory_plans (
    tenant_id text NOT NULL,
    directory text NOT NULL,
    plan_id blob NOT NULL,
    seen_at integer NOT NULL,
    PRIMARY KEY (tenant_id, directory, plan_id)
);
CREATE INDEX directory_plans_of_plan ON directory_plans (tenant_id, plan_id);

-- The log of agents' tool calls. A call is recorded before its effect begins, and every change to it
-- is written before it is acknowledged.
--
-- A call is found by its turn and its position: ids come from models, and may repeat. `stale_at` is
-- the last instant at which it counts as alive without further activity; NULL if it has no time
-- limit. `yields`: after `timeout_ms` the agent has answered the model, and the tool continues in the
-- background. A synthetic result remains next to the real result if that arrives late.
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
    status text NOT NULL CHECK (status = 'requested' OR status = 'awaiting_approval'
        OR status = 'running' OR status = 'completed' OR status = 'failed'
        OR status = 'denied' OR status = 'cancelled' OR status = 'interrupted'),
    timeout_ms integer CHECK (timeout_ms > 0),
    untimed integer NOT NULL CHECK (untimed IN (0, 1)),
    yields integer NOT NULL CHECK (yields IN (0, 1)),
    grace_ms integer CHECK (grace_ms >= 0),
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
    cause text CHECK (cause = 'not_started' OR cause = 'outcome_unknown' OR cause = 'timed_out'),
    interrupted_at integer,
    to_model text,
    to_operator text,
    result text,
    reported integer NOT NULL CHECK (reported IN (0, 1)),
    PRIMARY KEY (tenant_id, session_id, agent_id, turn, position),
    CHECK (untimed = 0 OR timeout_ms IS NULL),
    CHECK (yields = 0 OR timeout_ms IS NOT NULL),
    CHECK ((owner_host IS NULL) = (owner_process IS NULL)),
    CHECK (owner_host IS NOT NULL OR (owner_boot IS NULL AND owner_started IS NULL)),
    CHECK (status <> 'awaiting_approval' OR asked_at IS NOT NULL),
    CHECK (status <> 'running' OR started_at IS NOT NULL),
    CHECK (last_progress_at IS NULL OR started_at IS NOT NULL),
    CHECK (stale_at IS NULL OR status = 'running'),
    CHECK ((ended_at IS NULL) = (status <> 'completed' AND status <> 'failed'
        AND status <> 'denied' AND status <> 'cancelled')),
    CHECK ((cause IS NULL) = (interrupted_at IS NULL)),
    CHECK ((cause IS NULL) = (to_model IS NULL)),
    CHECK ((cause IS NULL) = (to_operator IS NULL)),
    CHECK (status <> 'interrupted' OR cause IS NOT NULL),
    CHECK (cause IS NULL OR status = 'interrupted' OR status = 'completed' OR status = 'failed'),
    CHECK (result IS NULL OR status IN ('completed', 'failed'))
);
CREATE INDEX session_calls_open ON session_calls (tenant_id, session_id)
    WHERE status = 'requested' OR status = 'awaiting_approval' OR status = 'running';
CREATE INDEX session_calls_interrupted ON session_calls (tenant_id, session_id)
    WHERE status = 'interrupted';
CREATE INDEX session_calls_by_id ON session_calls (tenant_id, session_id, agent_id, call_id);

-- Due calls: when the open calls of a session must be checked, and which processes run them and the
-- session, so that another process on the same host can detect that one of them has exited. Read across tenants, like `due`.
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

-- Outputs of plans.
CREATE TABLE outputs (
    tenant_id text NOT NULL,
    output_id blob NOT NULL,
    plan_id blob NOT NULL,
    title text NOT NULL,
    version integer NOT NULL CHECK (version > 0),
    media_type text NOT NULL,
    content text NOT NULL,
    actor text NOT NULL,
    created_at integer NOT NULL,
    PRIMARY KEY (tenant_id, output_id),
    UNIQUE (tenant_id, plan_id, title, version)
);
CREATE INDEX outputs_by_time ON outputs (tenant_id, created_at, output_id);

-- The texts of ended steps, for search: the result or the reason of the failure, and the reviews. Written
-- by the first search after the end of the step, so that the result itself costs nothing.
CREATE TABLE results (
    tenant_id text NOT NULL,
    step_id blob NOT NULL,
    plan_id blob NOT NULL,
    title text NOT NULL,
    content text NOT NULL,
    created_at integer NOT NULL,
    PRIMARY KEY (tenant_id, step_id)
);
CREATE INDEX results_by_time ON results (tenant_id, created_at, step_id);
CREATE INDEX results_of_plan ON results (tenant_id, plan_id);

-- A chunk of the content of an artifact, output or result, in characters.
CREATE TABLE chunks (
    chunk_no integer PRIMARY KEY,
    tenant_id text NOT NULL,
    source_id blob NOT NULL,
    ordinal integer NOT NULL CHECK (ordinal >= 0),
    starts_at integer NOT NULL CHECK (starts_at >= 0),
    characters integer NOT NULL CHECK (characters > 0),
    UNIQUE (tenant_id, source_id, ordinal)
);

-- Words as normalized by the core, so SQLite does not fold them. The index contains no texts: those
-- are stored with the artifact, output or result.
CREATE VIRTUAL TABLE chunk_words USING fts5(title, body, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'");

-- Inserts both, so that no chunk is without its words.
CREATE VIEW indexed_chunks AS
    SELECT tenant_id, source_id, ordinal, starts_at, characters, '' AS title_words, '' AS words
    FROM chunks;
CREATE TRIGGER indexed_chunks_insert INSTEAD OF INSERT ON indexed_chunks
BEGIN
    INSERT INTO chunks (tenant_id, source_id, ordinal, starts_at, characters)
    VALUES (NEW.tenant_id, NEW.source_id, NEW.ordinal, NEW.starts_at, NEW.characters);
    INSERT INTO chunk_words (rowid, title, body)
    VALUES (last_insert_rowid(), NEW.title_words, NEW.words);
END;
CREATE TRIGGER chunks_delete_words AFTER DELETE ON chunks
BEGIN
    DELETE FROM chunk_words WHERE rowid = OLD.chunk_no;
END;

-- One row for every chunk: the model that embedded it, and the sign bit of each dimension. Narrow,
-- because a search scans all rows of a tenant. A chunk that no model has embedded has an empty
-- `model`; one that its model rejected has an empty sign.
CREATE TABLE chunk_signs (
    tenant_id text NOT NULL,
    source_id blob NOT NULL,
    ordinal integer NOT NULL CHECK (ordinal >= 0),
    model text NOT NULL DEFAULT '',
    sign blob NOT NULL DEFAULT x'',
    CHECK (model <> '' OR length(sign) = 0),
    PRIMARY KEY (tenant_id, source_id, ordinal)
) WITHOUT ROWID;
-- The embedding queue: chunks that the current model has not embedded.
CREATE INDEX chunk_signs_by_model ON chunk_signs (tenant_id, model);

-- The complete vectors, read for the few chunks with near signs.
CREATE TABLE vectors (
    tenant_id text NOT NULL,
    source_id blob NOT NULL,
    ordinal integer NOT NULL,
    vector blob NOT NULL CHECK (length(vector) > 0),
    PRIMARY KEY (tenant_id, source_id, ordinal)
);

CREATE TRIGGER chunks_insert_sign AFTER INSERT ON chunks
BEGIN
    INSERT INTO chunk_signs (tenant_id, source_id, ordinal)
    VALUES (NEW.tenant_id, NEW.source_id, NEW.ordinal);
END;
CREATE TRIGGER chunks_delete_sign AFTER DELETE ON chunks
BEGIN
    DELETE FROM chunk_signs
    WHERE tenant_id = OLD.tenant_id AND source_id = OLD.source_id AND ordinal = OLD.ordinal;
    DELETE FROM vectors
    WHERE tenant_id = OLD.tenant_id AND source_id = OLD.source_id AND ordinal = OLD.ordinal;
END;

-- Number of changes to the signs of a tenant, which validates the sign-bit cache of a process.
CREATE TABLE sign_changes (
    tenant_id text NOT NULL,
    changes integer NOT NULL CHECK (changes > 0),
    PRIMARY KEY (tenant_id)
) WITHOUT ROWID;

-- A chunk that no model has embedded has no sign, and does not change the count.
CREATE TRIGGER chunk_signs_count_insert AFTER INSERT ON chunk_signs WHEN NEW.model <> ''
BEGIN
    INSERT INTO sign_changes (tenant_id, changes) VALUES (NEW.tenant_id, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER chunk_signs_count_update AFTER UPDATE ON chunk_signs
BEGIN
    INSERT INTO sign_changes (tenant_id, changes) VALUES (NEW.tenant_id, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER chunk_signs_count_delete AFTER DELETE ON chunk_signs WHEN OLD.model <> ''
BEGIN
    INSERT INTO sign_changes (tenant_id, changes) VALUES (OLD.tenant_id, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET changes = changes + 1;
END;

-- Data that a model extracted from a text according to a schema. It belongs to the plan of its
-- artifact.
CREATE TABLE extractions (
    tenant_id text NOT NULL,
    extraction_id blob NOT NULL,
    artifact_id blob,
    schema text NOT NULL,
    instructions text,
    data text NOT NULL,
    valid integer NOT NULL CHECK (valid IN (0, 1)),
    issues text NOT NULL,
    model text NOT NULL,
    actor text NOT NULL,
    created_at integer NOT NULL,
    CHECK (valid = 0 OR issues = '[]'),
    PRIMARY KEY (tenant_id, extraction_id)
);
CREATE INDEX extractions_by_artifact ON extractions (tenant_id, artifact_id)
WHERE artifact_id IS NOT NULL;
-- Extractions without an artifact are found only by their age.
CREATE INDEX extractions_without_artifact ON extractions (tenant_id, created_at)
WHERE artifact_id IS NULL;

-- Notifications and their delivery state.
CREATE TABLE notices (
    tenant_id text NOT NULL,
    plan_id blob NOT NULL,
    -- Identifies the finding within the plan, so that it is reported once, whichever process found
    -- it.
    finding text NOT NULL CHECK (finding <> ''),
    kind text NOT NULL CHECK (kind = 'stall' OR kind = 'review' OR kind = 'failure'
        OR kind = 'no_agent' OR kind = 'budget' OR kind = 'blocked'),
    step_id blob,
    attempt integer CHECK (attempt >= 1),
    since_at integer NOT NULL,
    note text,
    found_at integer NOT NULL,
    delivery text NOT NULL CHECK (delivery = 'waiting' OR delivery = 'sent'
        OR delivery = 'given_up' OR delivery = 'unwanted'),
    tries integer NOT NULL CHECK (tries >= 0),
    -- Time of the next attempt; no process tries before.
    next_at integer,
    ended_at integer,
    last_error text,
    PRIMARY KEY (tenant_id, plan_id, finding),
    CHECK ((delivery = 'waiting') = (next_at IS NOT NULL)),
    CHECK ((delivery = 'waiting') = (ended_at IS NULL))
);
CREATE INDEX notices_waiting ON notices (tenant_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX notices_by_time ON notices (tenant_id, found_at);

-- Words of the name and question of a plan, for full-text search; written once, with the plan.
CREATE TABLE plan_words (
    words_no integer PRIMARY KEY,
    tenant_id text NOT NULL,
    plan_id blob NOT NULL,
    UNIQUE (tenant_id, plan_id)
);
CREATE VIRTUAL TABLE plan_word_index USING fts5(words, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'");

-- Inserts both, so that no plan is without its words.
CREATE VIEW indexed_plans AS SELECT tenant_id, plan_id, '' AS words FROM plan_words;
CREATE TRIGGER indexed_plans_insert INSTEAD OF INSERT ON indexed_plans
BEGIN
    INSERT INTO plan_words (tenant_id, plan_id) VALUES (NEW.tenant_id, NEW.plan_id);
    INSERT INTO plan_word_index (rowid, words) VALUES (last_insert_rowid(), NEW.words);
END;
CREATE TRIGGER plan_words_delete_index AFTER DELETE ON plan_words
BEGIN
    DELETE FROM plan_word_index WHERE rowid = OLD.words_no;
END;

-- Planner statistics that SQLite cannot collect from an empty file: almost all rows of a table
-- belong to one tenant, and few of them to a step or a plan. Without them, it scanned all branches
-- of a tenant for every result, because the table is cheaper to read than its index.

-- Creates the statistics table; its content is replaced.
ANALYZE branches;
DELETE FROM sqlite_stat1 WHERE tbl = 'branches';
-- The number of rows, then the number of rows with equal first column, first two columns, and so
-- on.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('branches', 'branches', '100000 100000 1'),
    ('branches', 'branches_after', '100000 100000 2 1'),
    ('branches', 'branches_of_plan', '100000 100000 5 1'),
    ('branch_needs', 'branch_needs', '100000 100000 2 1'),
    ('branch_needs', 'branch_needs_of_plan', '100000 100000 5'),
    ('dependencies', 'dependencies', '100000 100000 2 1'),
    ('dependencies', 'dependencies_of_step', '100000 100000 2'),
    ('dependencies', 'dependencies_of_plan', '100000 100000 10'),
    ('idempotency_keys', 'idempotency_keys', '100000 100000 1'),
    ('idempotency_keys', 'idempotency_keys_of_plan', '100000 100000 1');
-- Makes the new statistics effective without reopening the file.
ANALYZE sqlite_schema;

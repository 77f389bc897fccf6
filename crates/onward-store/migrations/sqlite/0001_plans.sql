-- The first schema. Differs from PostgreSQL in the names of types, and because only the text of a
-- statement binds it to its tenant here: there is no row security.
--
-- Instants and durations are whole milliseconds; ids are 16 bytes; JSON is text, as written. The
-- CHECKs repeat the rules of the states: a row that matches no valid state cannot be written. They
-- use `a OR b OR c` where PostgreSQL uses `IN`, because SQLite builds a table for a list of three
-- each time.

CREATE TABLE tenants (
    tenant_id text NOT NULL PRIMARY KEY,
    agents_decide_reviews integer NOT NULL CHECK (agents_decide_reviews IN (0, 1)),
    created_at integer NOT NULL
) WITHOUT ROWID;

CREATE TABLE plans (
    tenant_id text NOT NULL,
    plan_id blob NOT NULL,
    name text NOT NULL,
    research_question text NOT NULL,
    design_rationale text,
    output_formatting_notes text,
    stall_threshold_ms integer CHECK (stall_threshold_ms > 0),
    on_stall text NOT NULL CHECK (on_stall = 'mark' OR on_stall = 'requeue' OR on_stall = 'fail'
        OR on_stall = 'ignore'),
    status text NOT NULL,
    review_step blob,
    review_id blob,
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
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    -- In units of ten seconds; lists are ordered by it first. An index over `updated_at` would
    -- change with every call.
    updated_about integer NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, plan_id),
    CHECK (status = 'planning' OR status = 'executing' OR status = 'awaiting_review'
        OR status = 'stalled' OR status = 'completed' OR status = 'failed'),
    CHECK ((status = 'awaiting_review') = (review_step IS NOT NULL)),
    CHECK ((status = 'awaiting_review') = (review_id IS NOT NULL)),
    CHECK ((status = 'stalled') = (marked_at IS NOT NULL)),
    CHECK ((status IN ('completed', 'failed')) = (ended_at IS NOT NULL)),
    CHECK ((status = 'failed') = (failure_kind IS NOT NULL)),
    CHECK (status <> 'completed' OR pending + in_progress + awaiting_input = 0)
);
CREATE INDEX plans_active ON plans (tenant_id, updated_about)
    WHERE ended_at IS NULL;
CREATE INDEX plans_finished ON plans (tenant_id, updated_about)
    WHERE ended_at IS NOT NULL;

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
    stall_threshold_ms integer CHECK (stall_threshold_ms > 0),
    max_attempts integer NOT NULL CHECK (max_attempts > 0),
    status text NOT NULL,
    attempt integer NOT NULL CHECK (attempt >= 0),
    claim_token text,
    claim_session text,
    started_at integer,
    last_progress_at integer,
    stall_marked_at integer,
    undelivered integer NOT NULL CHECK (undelivered IN (0, 1)),
    review text,
    ended_at integer,
    -- First event of the commit in which the step ended, so that its response can be repeated.
    ended_commit integer,
    result_summary text,
    result_confidence real,
    result text,
    result_report text,
    result_notes text,
    skipped_by_branch blob,
    skipped_by_review blob,
    failure_kind text,
    failure_words text,
    superseded text NOT NULL,
    updated_at integer NOT NULL,
    -- Derived, so that an index finds the steps that can be assigned and those that have stalled.
    open_dependencies integer NOT NULL CHECK (open_dependencies >= 0),
    stalls_at integer,
    PRIMARY KEY (tenant_id, step_id),
    UNIQUE (tenant_id, plan_id, step_order),
    CHECK (status = 'pending' OR status = 'in_progress' OR status = 'awaiting_input'
        OR status = 'completed' OR status = 'skipped' OR status = 'failed'),
    CHECK (status <> 'pending' OR (claim_token IS NULL AND attempt > 0)),
    CHECK ((status <> 'in_progress' AND status <> 'awaiting_input' AND status <> 'completed')
        OR (claim_token IS NOT NULL AND started_at IS NOT NULL)),
    CHECK ((status = 'completed' OR status = 'skipped' OR status = 'failed')
        = (ended_at IS NOT NULL)),
    CHECK ((ended_at IS NULL) = (ended_commit IS NULL)),
    CHECK ((status = 'awaiting_input') = (review IS NOT NULL)),
    CHECK ((status = 'completed') = (result_summary IS NOT NULL)),
    CHECK ((status = 'skipped') = (skipped_by_branch IS NOT NULL OR skipped_by_review IS NOT NULL)),
    CHECK ((status = 'failed') = (failure_kind IS NOT NULL)),
    CHECK (undelivered = 0 OR status IN ('in_progress', 'awaiting_input')),
    CHECK (stalls_at IS NULL OR status = 'in_progress')
);
-- Steps that can be assigned and steps in progress: one index, so that assigning a step changes one
-- page instead of two. A pending step has no stall time.
CREATE INDEX steps_open ON steps
    (tenant_id, plan_id, status, stalls_at, open_dependencies, step_order)
    WHERE status = 'pending' OR status = 'in_progress';
CREATE INDEX steps_asking ON steps (tenant_id, plan_id)
    WHERE status = 'awaiting_input';
CREATE INDEX steps_undelivered ON steps (tenant_id, plan_id, step_order)
    WHERE undelivered = 1;
CREATE INDEX steps_reviewed ON steps (tenant_id, updated_at)
    WHERE status = 'awaiting_input';

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
    action text NOT NULL CHECK (action IN ('continue', 'skip_to', 'add_steps', 'fail')),
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
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'the audit trail takes no update');
END;
-- `INSERT OR REPLACE` deletes rows without firing the trigger below.
CREATE TRIGGER events_are_not_replaced BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE tenant_id = NEW.tenant_id AND plan_id = NEW.plan_id
    AND seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'the audit trail has this events.seq already');
END;
CREATE TRIGGER events_go_with_their_plan BEFORE DELETE ON events
WHEN EXISTS (SELECT 1 FROM plans WHERE tenant_id = OLD.tenant_id AND plan_id = OLD.plan_id)
BEGIN
    SELECT RAISE(ABORT, 'the audit trail of a plan that exists takes no delete');
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
    PRIMARY KEY (tenant_id, call_id)
) WITHOUT ROWID;
CREATE INDEX tool_calls_by_time ON tool_calls (tenant_id, at, call_id);

CREATE TABLE tokens (
    tenant_id text NOT NULL,
    token_id blob NOT NULL,
    prefix text NOT NULL,
    name text NOT NULL,
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'agent', 'viewer')),
    created_at integer NOT NULL,
    expires_at integer,
    last_used_at integer,
    revoked_at integer,
    PRIMARY KEY (tenant_id, token_id)
) WITHOUT ROWID;

-- The first of the two tables that are read across tenants: finds the tenant of a token.
CREATE TABLE token_hashes (
    hash text NOT NULL PRIMARY KEY,
    tenant_id text NOT NULL,
    token_id blob NOT NULL
) WITHOUT ROWID;

-- The second one: when the sweep must check which plan. A plan may be checked too early, but never
-- too late.
CREATE TABLE due (
    tenant_id text NOT NULL,
    plan_id blob NOT NULL,
    at integer NOT NULL,
    PRIMARY KEY (tenant_id, plan_id)
) WITHOUT ROWID;
CREATE INDEX due_by_time ON due (at);

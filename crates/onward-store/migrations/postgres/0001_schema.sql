-- The PostgreSQL schema. Differs from SQLite in the names of types, and because every table has row
-- security in addition to the tenant in each statement, which needs a role and functions.
--
-- Instants and durations are whole milliseconds; JSON is text, as written; flags are 0 and 1. The
-- CHECKs repeat the rules of the states: a row that matches no valid state cannot be written.
-- Everything is created in the first schema of the search path.
--
-- The schema can be distributed by `tenant_id` (`onward migrate --distribute`, docs/scaling.md).
-- Therefore every key begins with `tenant_id`, and no table has a trigger, a CHECK over a whole row
-- or an SQL-language function. A test over the catalog enforces this.

-- The role that every transaction assumes: it cannot bypass row security, regardless of the login.
-- Roles belong to the whole cluster, so servers that start concurrently on two of its databases
-- create it concurrently; the lock around a migration does not serialize them.
DO $$
DECLARE
    -- From PostgreSQL 16 on, membership is not enough to assume a role.
    needed text := CASE WHEN current_setting('server_version_num')::int >= 160000
        THEN 'SET' ELSE 'MEMBER' END;
    grants text := format('GRANT onward_tenant TO %I', CURRENT_USER);
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'onward_tenant') THEN
        BEGIN
            CREATE ROLE onward_tenant NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'the role `%` may not create the role `onward_tenant`', CURRENT_USER
                    USING ERRCODE = 'insufficient_privilege', HINT = format(
                        'ask an administrator to run: CREATE ROLE onward_tenant NOLOGIN; %s', grants);
        END;
    END IF;
    IF NOT pg_has_role(CURRENT_USER, 'onward_tenant', needed) THEN
        BEGIN
            EXECUTE grants;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'the role `%` may not assume the role `onward_tenant`', CURRENT_USER
                    USING ERRCODE = 'insufficient_privilege',
                        HINT = format('ask an administrator to run: %s', grants);
        END;
    END IF;
    IF NOT has_schema_privilege('onward_tenant', current_schema(), 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO onward_tenant', current_schema());
    END IF;
END;
$$;

-- Abort a statement that affected another number of rows than required (ONW01), or that was based
-- on an outdated version of a plan (ONW02). They are called inside the statement, so that the
-- transaction is aborted before a COMMIT in the same pipeline runs.
CREATE FUNCTION onward_wrong_count(statement text, affected bigint, expected bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '`%` affected % rows, expected %', statement,
        coalesce(affected::text, 'another number of'), expected USING ERRCODE = 'ONW01';
END;
$$;
CREATE FUNCTION onward_outdated(statement text) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '`%` was based on an outdated version', statement USING ERRCODE = 'ONW02';
END;
$$;

CREATE TABLE tenants (
    tenant_id text NOT NULL PRIMARY KEY,
    agents_decide_reviews bigint NOT NULL CHECK (agents_decide_reviews IN (0, 1)),
    created_at bigint NOT NULL,
    -- Last check whether the database accepts writes.
    checked_at bigint
);

-- `plans` and `steps` change with every call. With every statement, PostgreSQL parses the text of each
-- CHECK of a table again, about a microsecond for each column in it; it caches domains and functions.
-- So rules for single columns that seldom change are domains, and the other rules are one function
-- per table. It takes columns, because a shard cannot have a CHECK over its whole row. The most
-- frequent states come first. A comparison with NULL counts as invalid.
CREATE DOMAIN onward_count AS bigint CHECK (VALUE >= 0);
CREATE DOMAIN onward_positive AS bigint CHECK (VALUE > 0);
CREATE DOMAIN onward_flag AS bigint CHECK (VALUE IN (0, 1));
CREATE DOMAIN onward_order AS bigint CHECK (VALUE <> 0);
CREATE DOMAIN onward_priority AS bigint CHECK (VALUE BETWEEN 0 AND 9);
CREATE DOMAIN onward_origin AS text CHECK (VALUE IN ('caller', 'agent'));
CREATE DOMAIN onward_on_stall AS text CHECK (VALUE IN ('mark', 'requeue', 'fail', 'ignore'));
CREATE DOMAIN onward_on_dependency_failure AS text CHECK (VALUE IN ('block', 'continue'));
CREATE DOMAIN onward_step_type AS text CHECK (VALUE IN ('search', 'extract', 'analyze', 'critique',
    'synthesize', 'checkpoint', 'custom'));

CREATE FUNCTION onward_plan_is_valid(status text, pending bigint, in_progress bigint,
    awaiting_input bigint, completed bigint, skipped bigint, failed bigint, seq bigint,
    open_reviews text, marked_at bigint, ended_at bigint, failure_kind text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF (least(pending, in_progress, awaiting_input, completed, skipped, failed, seq - 1) >= 0)
        IS NOT TRUE THEN
        RETURN false;
    END IF;
    IF status IN ('planning', 'executing') THEN
        RETURN num_nonnulls(open_reviews, marked_at, ended_at, failure_kind) = 0;
    ELSIF status = 'completed' THEN
        RETURN ended_at IS NOT NULL
            AND num_nonnulls(open_reviews, marked_at, failure_kind) = 0
            AND pending + in_progress + awaiting_input = 0;
    ELSIF status = 'awaiting_review' THEN
        RETURN open_reviews IS NOT NULL
            AND num_nonnulls(marked_at, ended_at, failure_kind) = 0;
    ELSIF status = 'stalled' THEN
        RETURN marked_at IS NOT NULL
            AND num_nonnulls(open_reviews, ended_at, failure_kind) = 0;
    ELSIF status = 'failed' THEN
        RETURN num_nonnulls(ended_at, failure_kind) = 2
            AND num_nonnulls(open_reviews, marked_at) = 0;
    END IF;
    RETURN false;
END;
$$;

CREATE TABLE plans (
    tenant_id text NOT NULL,
    plan_id uuid NOT NULL,
    name text NOT NULL,
    research_question text NOT NULL,
    design_rationale text,
    output_formatting_notes text,
    -- `agent`: mirrors the agent's own plan or task list.
    origin onward_origin NOT NULL DEFAULT 'caller',
    stall_threshold_ms onward_positive,
    on_stall onward_on_stall NOT NULL,
    -- Whether later steps wait for dependencies that have failed.
    on_dependency_failure onward_on_dependency_failure NOT NULL DEFAULT 'block',
    status text NOT NULL,
    -- Pending reviews that stop the plan, as JSON.
    open_reviews text,
    marked_at bigint,
    ended_at bigint,
    failure_kind text,
    failure_words text,
    last_session text,
    pending bigint NOT NULL,
    in_progress bigint NOT NULL,
    awaiting_input bigint NOT NULL,
    completed bigint NOT NULL,
    skipped bigint NOT NULL,
    failed bigint NOT NULL,
    seq bigint NOT NULL,
    -- Random, and new with every commit. A database that was restored, or that lost commits in a
    -- failover, repeats sequence numbers; it does not repeat the tags of the lost commits.
    version_tag bigint NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    -- Last action of an agent or a user; the sweep does not count.
    acted_at bigint NOT NULL,
    -- Last activity of an agent.
    worked_at bigint NOT NULL,
    -- The owner: the author of the first event, and the name, host and directory of the agent.
    created_by text NOT NULL,
    client text,
    host text,
    directory text,
    -- `acted_at` in units of ten seconds; lists are ordered by it first. A row whose indexed columns keep
    -- their values can be updated in place (HOT), which an index over `acted_at` would prevent.
    acted_about bigint NOT NULL DEFAULT 0,
    -- Number of steps. It seldom changes, and so do the indexes over it.
    steps bigint NOT NULL DEFAULT 0,
    -- Steps that were redone. They are not included in the other counts.
    superseded onward_count NOT NULL DEFAULT 0,
    -- The plan of which this one is a fork, and the first step whose result was not taken over.
    forked_from uuid,
    forked_step bigint,
    project_key text COLLATE "C",
    -- Sorted, as JSON; empty if there are none.
    labels text COLLATE "C" NOT NULL DEFAULT '',
    priority onward_priority NOT NULL DEFAULT 5,
    -- The limits of the budget and their use, as JSON.
    budget text,
    -- Sum of the tokens of its steps. Empty if no count is known.
    tokens bigint,
    PRIMARY KEY (tenant_id, plan_id),
    CONSTRAINT plans_state CHECK (onward_plan_is_valid(status, pending, in_progress, awaiting_input,
        completed, skipped, failed, seq, open_reviews, marked_at, ended_at, failure_kind))
) WITH (fillfactor = 75);
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

CREATE FUNCTION onward_step_is_valid(status text, attempt bigint, undelivered bigint,
    stalls_at bigint, claim_token text, started_at bigint, ended_at bigint, ended_commit bigint,
    review text, result_summary text, skipped_by_branch uuid, skipped_by_review uuid,
    failure_kind text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF (attempt >= 0 AND undelivered IN (0, 1, 2)) IS NOT TRUE THEN
        RETURN false;
    END IF;
    IF status = 'in_progress' THEN
        RETURN num_nonnulls(claim_token, started_at) = 2
            AND num_nonnulls(ended_at, ended_commit, review, result_summary, skipped_by_branch,
                skipped_by_review, failure_kind) = 0;
    ELSIF undelivered <> 0 AND status <> 'awaiting_input' OR stalls_at IS NOT NULL THEN
        RETURN false;
    ELSIF status = 'completed' THEN
        RETURN num_nonnulls(claim_token, started_at, ended_at, ended_commit, result_summary) = 5
            AND num_nonnulls(review, skipped_by_branch, skipped_by_review, failure_kind) = 0;
    ELSIF status = 'pending' THEN
        RETURN attempt > 0
            AND num_nonnulls(claim_token, started_at, ended_at, ended_commit, review, result_summary,
                skipped_by_branch, skipped_by_review, failure_kind) = 0;
    ELSIF status = 'awaiting_input' THEN
        -- Without a claim, the start of the plan is under review.
        RETURN review IS NOT NULL AND num_nonnulls(claim_token, started_at) <> 1
            AND num_nonnulls(ended_at, ended_commit, result_summary, skipped_by_branch,
                skipped_by_review, failure_kind) = 0;
    ELSIF status = 'skipped' THEN
        RETURN num_nonnulls(ended_at, ended_commit) = 2
            AND num_nonnulls(skipped_by_branch, skipped_by_review) <= 1
            AND num_nonnulls(started_at, review, result_summary, failure_kind) = 0;
    ELSIF status = 'failed' THEN
        RETURN num_nonnulls(ended_at, ended_commit, failure_kind) = 3
            AND num_nonnulls(started_at, review, result_summary, skipped_by_branch,
                skipped_by_review) = 0;
    END IF;
    RETURN false;
END;
$$;

CREATE TABLE steps (
    tenant_id text NOT NULL,
    step_id uuid NOT NULL,
    plan_id uuid NOT NULL,
    -- Negative only inside the transaction that moves steps.
    step_order onward_order NOT NULL,
    step_type onward_step_type NOT NULL,
    title text,
    instructions text NOT NULL,
    depends_on text NOT NULL,
    on_dependency_failure onward_on_dependency_failure NOT NULL DEFAULT 'block',
    stall_threshold_ms onward_positive,
    max_attempts onward_positive NOT NULL,
    -- What a result must contain, and who reviews it, as JSON.
    gates text,
    status text NOT NULL,
    attempt bigint NOT NULL,
    claim_token text,
    claim_session text,
    started_at bigint,
    last_progress_at bigint,
    -- 1 if events of the holder's session are recorded as activity.
    monitored onward_flag NOT NULL DEFAULT 0,
    stall_marked_at bigint,
    -- When the session that holds the step ended.
    orphaned_at bigint,
    undelivered bigint NOT NULL,
    -- The artifact with the holder's last invalid result.
    kept_artifact_id uuid,
    review text,
    ended_at bigint,
    -- First event of the commit in which the step ended, so that its response can be repeated.
    ended_commit bigint,
    result_summary text,
    result_confidence double precision,
    result text,
    result_report text,
    result_notes text,
    result_evidence text,
    skipped_by_branch uuid,
    skipped_by_review uuid,
    failure_kind text,
    failure_words text,
    superseded text NOT NULL,
    updated_at bigint NOT NULL,
    -- Derived, so that an index finds the steps that can be assigned and those that have stalled.
    open_dependencies onward_count NOT NULL,
    stalls_at bigint,
    -- The last progress report with a note or a percentage. Outdated if it is older than the claim.
    last_note text,
    last_percent double precision,
    noted_at bigint,
    -- The step that this one redoes, and the step that redoes this one.
    supersedes uuid,
    superseded_by uuid,
    -- Sorted, as JSON; empty if there are none.
    labels text COLLATE "C" NOT NULL DEFAULT '',
    priority onward_priority NOT NULL DEFAULT 5,
    -- Derived from the plan, for the queue of its project. No project while the plan assigns no step.
    project_key text COLLATE "C",
    plan_priority bigint,
    plan_created_at bigint,
    -- Tokens of the sessions while they held the step. Empty if no count is known.
    tokens bigint,
    -- Whether search contains the step since its end.
    indexed onward_flag NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, step_id),
    UNIQUE (tenant_id, plan_id, step_order),
    CONSTRAINT steps_state CHECK (onward_step_is_valid(status, attempt, undelivered, stalls_at,
        claim_token, started_at, ended_at, ended_commit, review, result_summary, skipped_by_branch,
        skipped_by_review, failure_kind))
) WITH (fillfactor = 85);
-- A change of the status cannot be HOT, because the indexes depend on it. Activity of a step in
-- progress can: no index contains `last_progress_at`, `stalls_at` or `updated_at`. A plan has few steps
-- in progress, and a tenant few pending reviews, so these are filtered and sorted.
CREATE INDEX steps_ready ON steps (tenant_id, plan_id, priority DESC, step_order)
    WHERE status = 'pending' AND open_dependencies = 0;
-- The steps of a project that can be assigned, in the order of their assignment for each set of labels.
CREATE INDEX steps_queue ON steps (tenant_id, project_key, labels, plan_priority DESC, priority DESC,
    plan_created_at, plan_id, step_order)
    WHERE project_key IS NOT NULL AND status = 'pending' AND open_dependencies = 0;
-- The labelled steps of a plan that can be assigned.
CREATE INDEX steps_labelled ON steps (tenant_id, plan_id, labels, priority DESC, step_order)
    WHERE labels <> '' AND status = 'pending' AND open_dependencies = 0;
CREATE INDEX steps_working ON steps (tenant_id, plan_id)
    WHERE status = 'in_progress';
CREATE INDEX steps_asking ON steps (tenant_id, plan_id)
    WHERE status = 'awaiting_input';
CREATE INDEX steps_undelivered ON steps (tenant_id, plan_id, step_order)
    WHERE undelivered = 1;
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
    needs uuid NOT NULL,
    step_id uuid NOT NULL,
    plan_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, needs, step_id)
);
CREATE INDEX dependencies_of_step ON dependencies (tenant_id, step_id);
CREATE INDEX dependencies_of_plan ON dependencies (tenant_id, plan_id);

CREATE TABLE branches (
    tenant_id text NOT NULL,
    branch_id uuid NOT NULL,
    plan_id uuid NOT NULL,
    after_step uuid NOT NULL,
    ordinal bigint NOT NULL,
    condition text NOT NULL,
    action text NOT NULL CHECK (action IN ('continue', 'skip_to', 'add_steps', 'fail')),
    params text NOT NULL,
    PRIMARY KEY (tenant_id, branch_id)
);
CREATE INDEX branches_after ON branches (tenant_id, after_step, ordinal);
CREATE INDEX branches_of_plan ON branches (tenant_id, plan_id, ordinal);

-- `branch_id` references `step_id`, which therefore cannot be removed.
CREATE TABLE branch_needs (
    tenant_id text NOT NULL,
    step_id uuid NOT NULL,
    branch_id uuid NOT NULL,
    plan_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, step_id, branch_id)
);
CREATE INDEX branch_needs_of_plan ON branch_needs (tenant_id, plan_id);

-- The audit trail. Its primary key guards every commit: two commits based on the same version of a
-- plan use the same sequence number, and the second one is rejected. The role of transactions may
-- neither update nor delete its rows; `onward_delete_events` deletes those of a deleted plan.
CREATE TABLE events (
    tenant_id text NOT NULL,
    plan_id uuid NOT NULL,
    seq bigint NOT NULL,
    -- Sequence number of the first event of the same commit.
    commit_seq bigint NOT NULL CHECK (commit_seq BETWEEN 1 AND seq),
    at bigint NOT NULL,
    actor text NOT NULL,
    session text,
    name text NOT NULL,
    step_id uuid,
    details text NOT NULL,
    PRIMARY KEY (tenant_id, plan_id, seq)
);
-- Few entries are reviews, so the index costs the other entries nothing.
CREATE INDEX events_reviews ON events (tenant_id, plan_id, step_id, seq)
    WHERE name = 'user_reviewed';

CREATE TABLE resumed_sessions (
    tenant_id text NOT NULL,
    plan_id uuid NOT NULL,
    session text NOT NULL,
    PRIMARY KEY (tenant_id, plan_id, session)
);

CREATE TABLE idempotency_keys (
    tenant_id text NOT NULL,
    idempotency_key text NOT NULL,
    plan_id uuid NOT NULL,
    digest text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, idempotency_key)
);
CREATE INDEX idempotency_keys_of_plan ON idempotency_keys (tenant_id, plan_id);

CREATE TABLE artifacts (
    tenant_id text NOT NULL,
    artifact_id uuid NOT NULL,
    plan_id uuid,
    step_id uuid,
    artifact_type text NOT NULL CHECK (artifact_type IN
        ('note', 'source', 'data', 'finding', 'quote', 'late_result', 'other')),
    title text NOT NULL,
    content text NOT NULL,
    source_url text,
    metadata text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, artifact_id)
);
CREATE INDEX artifacts_by_time ON artifacts (tenant_id, created_at, artifact_id);
CREATE INDEX artifacts_of_plan ON artifacts (tenant_id, plan_id, created_at)
    WHERE plan_id IS NOT NULL;

-- Actions on a tenant other than changes of its plans: a plan was deleted, a token created.
CREATE TABLE tenant_log (
    tenant_id text NOT NULL,
    entry_id uuid NOT NULL,
    at bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    details text NOT NULL,
    PRIMARY KEY (tenant_id, entry_id)
);
CREATE INDEX tenant_log_by_time ON tenant_log (tenant_id, at, entry_id);

CREATE TABLE tool_calls (
    tenant_id text NOT NULL,
    call_id uuid NOT NULL,
    at bigint NOT NULL,
    tool text NOT NULL,
    actor text NOT NULL,
    session text,
    request text NOT NULL,
    response text NOT NULL,
    duration_us bigint NOT NULL CHECK (duration_us >= 0),
    is_error bigint NOT NULL CHECK (is_error IN (0, 1)),
    PRIMARY KEY (tenant_id, at, call_id)
);

CREATE TABLE tokens (
    tenant_id text NOT NULL,
    token_id uuid NOT NULL,
    prefix text NOT NULL,
    name text NOT NULL,
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'agent', 'viewer')),
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used_at bigint,
    revoked_at bigint,
    PRIMARY KEY (tenant_id, token_id)
);

-- Finds the tenant of a token. Read across tenants, by `onward_token_of_hash`.
CREATE TABLE token_hashes (
    tenant_id text NOT NULL,
    hash text NOT NULL,
    token_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, hash)
);
CREATE INDEX token_hashes_by_hash ON token_hashes (hash);

-- Browser sessions that users ended before they expired.
CREATE TABLE sign_outs (
    tenant_id text NOT NULL,
    session_key text NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, session_key)
);

-- Due times: when the sweep must check each plan. A plan may be checked too early, but never too
-- late. Read across tenants, by `onward_due_between`.
CREATE TABLE due (
    tenant_id text NOT NULL,
    plan_id uuid NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (tenant_id, plan_id)
);
CREATE INDEX due_by_time ON due (at);

-- Duties that one server performs for all: the holder renews its lease before it expires. The table
-- has no tenant and is not distributed.
CREATE TABLE leases (
    duty text NOT NULL PRIMARY KEY,
    holder text NOT NULL,
    expires_at bigint NOT NULL
);
GRANT SELECT, INSERT, UPDATE, DELETE ON leases TO onward_tenant;

-- Skill executions of agents.
CREATE TABLE skill_executions (
    tenant_id text NOT NULL,
    execution_id uuid NOT NULL,
    skill_name text NOT NULL,
    status text NOT NULL CHECK (status IN ('started', 'executing', 'completed', 'failed')),
    session text,
    plan_id uuid,
    metadata text NOT NULL,
    error_message text,
    started_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    ended_at bigint,
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
    feedback_id uuid NOT NULL,
    plan_id uuid NOT NULL,
    -- The output that the feedback concerns, if any.
    output_id uuid,
    rating bigint CHECK (rating BETWEEN 1 AND 5),
    comment text,
    actor text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, feedback_id),
    CHECK (rating IS NOT NULL OR comment IS NOT NULL)
);
CREATE INDEX feedback_of_plan ON feedback (tenant_id, plan_id, created_at, feedback_id);

-- Tool calls that MCP clients follow as tasks. A task without an outcome has a state, from which its
-- tool derives the status, and a task with an outcome does not change.
CREATE TABLE tasks (
    tenant_id text NOT NULL,
    task_id uuid NOT NULL,
    actor text NOT NULL,
    tool text NOT NULL,
    plan_id uuid,
    state text,
    version bigint NOT NULL CHECK (version >= 1),
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    outcome text CHECK (outcome IN ('completed', 'failed', 'cancelled')),
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
    started_at bigint NOT NULL,
    last_seen_at bigint NOT NULL,
    ended_at bigint,
    switched_off bigint NOT NULL CHECK (switched_off IN (0, 1)),
    -- Claims in the results of its calls: a list of steps and tokens.
    claims text NOT NULL DEFAULT '[]',
    -- The last summary of the project that the agent received: the event that requested it, and when.
    -- The event `due` is a compaction whose own event carries no text.
    primed_for text,
    primed_at bigint,
    -- The agent's own task list, and the plan that mirrors it.
    captured text,
    -- The claims that the agent was reminded of when it stopped.
    reminded text,
    -- Its tokens, their source, and the positions in its transcripts, as JSON.
    usage text,
    -- For subscribers in other processes: when it changed last, and how often.
    changed_at bigint NOT NULL DEFAULT 0,
    changes bigint NOT NULL DEFAULT 0,
    -- The process whose exit ends the session: the agent, or the server of a stdio connection.
    owner_host text CHECK (owner_host <> ''),
    owner_boot text,
    owner_process bigint CHECK (owner_process >= 0),
    owner_started bigint CHECK (owner_started >= 0),
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
    turn bigint NOT NULL CHECK (turn >= 0),
    state text NOT NULL,
    fingerprint text,
    known_calls text NOT NULL,
    batches bigint NOT NULL CHECK (batches IN (0, 1)),
    PRIMARY KEY (tenant_id, session_id, agent_id)
);

CREATE TABLE turns (
    tenant_id text NOT NULL,
    session_id text NOT NULL,
    agent_id text NOT NULL,
    turn bigint NOT NULL CHECK (turn >= 1),
    turn_key text,
    began_at bigint NOT NULL,
    progressed_at bigint,
    ended_at bigint,
    why_ended text CHECK (why_ended IN ('answered', 'next_prompt', 'stopped', 'session_ended')),
    steps bigint NOT NULL CHECK (steps >= 0),
    idle_steps bigint NOT NULL CHECK (idle_steps >= 0),
    threshold bigint NOT NULL CHECK (threshold >= 1),
    verdict text CHECK (verdict IN ('progress', 'idle', 'stalled', 'unjudged')),
    held text CHECK (held IN ('stalled', 'max_steps')),
    nudged bigint NOT NULL CHECK (nudged IN (0, 1)),
    refusals bigint NOT NULL CHECK (refusals >= 0),
    -- The last event of a subagent. Those of the agent itself are in `sessions.last_seen_at`.
    seen_at bigint NOT NULL,
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
    turn bigint NOT NULL,
    step bigint NOT NULL CHECK (step >= 1),
    at bigint NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('progress', 'idle', 'stalled', 'unjudged')),
    why text,
    idle_steps bigint NOT NULL CHECK (idle_steps >= 0),
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
    plan_id uuid NOT NULL,
    seen_at bigint NOT NULL,
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
    turn bigint NOT NULL CHECK (turn >= 1),
    position bigint NOT NULL CHECK (position >= 1),
    call_id text,
    batch bigint NOT NULL CHECK (batch >= 0),
    tool text NOT NULL,
    input_digest text NOT NULL,
    input text NOT NULL,
    status text NOT NULL CHECK (status IN ('requested', 'awaiting_approval', 'running', 'completed',
        'failed', 'denied', 'cancelled', 'interrupted')),
    timeout_ms bigint CHECK (timeout_ms > 0),
    untimed bigint NOT NULL CHECK (untimed IN (0, 1)),
    yields bigint NOT NULL CHECK (yields IN (0, 1)),
    grace_ms bigint CHECK (grace_ms >= 0),
    owner_host text CHECK (owner_host <> ''),
    owner_boot text,
    owner_process bigint CHECK (owner_process >= 0),
    owner_started bigint CHECK (owner_started >= 0),
    requested_at bigint NOT NULL,
    asked_at bigint,
    had_begun bigint NOT NULL CHECK (had_begun IN (0, 1)),
    started_at bigint,
    last_progress_at bigint,
    stale_at bigint,
    ended_at bigint,
    cause text CHECK (cause IN ('not_started', 'outcome_unknown', 'timed_out')),
    interrupted_at bigint,
    to_model text,
    to_operator text,
    result text,
    reported bigint NOT NULL CHECK (reported IN (0, 1)),
    PRIMARY KEY (tenant_id, session_id, agent_id, turn, position),
    CHECK (untimed = 0 OR timeout_ms IS NULL),
    CHECK (yields = 0 OR timeout_ms IS NOT NULL),
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
CREATE INDEX session_calls_interrupted ON session_calls (tenant_id, session_id)
    WHERE status = 'interrupted';
CREATE INDEX session_calls_by_id ON session_calls (tenant_id, session_id, agent_id, call_id);

-- Due calls: when the open calls of a session must be checked, and which processes run them and the
-- session, so that another process on the same host can detect that one of them has exited. Read across tenants, like `due`. An
-- unknown owner has an empty host.
CREATE TABLE due_calls (
    tenant_id text NOT NULL,
    session_id text NOT NULL,
    host text NOT NULL,
    boot text NOT NULL,
    process bigint NOT NULL,
    started bigint NOT NULL,
    at bigint,
    PRIMARY KEY (tenant_id, session_id, host, boot, process, started)
);
CREATE INDEX due_calls_by_time ON due_calls (at);
CREATE INDEX due_calls_by_host ON due_calls (host);

-- Outputs of plans.
CREATE TABLE outputs (
    tenant_id text NOT NULL,
    output_id uuid NOT NULL,
    plan_id uuid NOT NULL,
    title text NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    media_type text NOT NULL,
    content text NOT NULL,
    actor text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, output_id),
    UNIQUE (tenant_id, plan_id, title, version)
);
CREATE INDEX outputs_by_time ON outputs (tenant_id, created_at, output_id);

-- The texts of ended steps, for search: the result or the reason of the failure, and the reviews. Written
-- by the first search after the end of the step, so that the result itself costs nothing.
CREATE TABLE results (
    tenant_id text NOT NULL,
    step_id uuid NOT NULL,
    plan_id uuid NOT NULL,
    title text NOT NULL,
    content text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, step_id)
);
CREATE INDEX results_by_time ON results (tenant_id, created_at, step_id);
CREATE INDEX results_of_plan ON results (tenant_id, plan_id);

-- A chunk of the content of an artifact, output or result, in characters, and its words as normalized by
-- the core: the dictionary `simple` leaves them unchanged.
CREATE TABLE chunks (
    tenant_id text NOT NULL,
    source_id uuid NOT NULL,
    ordinal bigint NOT NULL CHECK (ordinal >= 0),
    starts_at bigint NOT NULL CHECK (starts_at >= 0),
    characters bigint NOT NULL CHECK (characters > 0),
    words tsvector NOT NULL,
    PRIMARY KEY (tenant_id, source_id, ordinal)
);
-- It does not begin with the tenant: a GIN index cannot, without an extension that not every server
-- has.
CREATE INDEX chunks_by_word ON chunks USING gin (words);

-- One row for every chunk, written and deleted in the same statement as the chunk: the model that
-- embedded it, and the sign bit of each dimension. Narrow, because a search scans all rows of a
-- tenant. A chunk that no model has embedded has an empty `model`; one that its model rejected has
-- an empty sign.
CREATE TABLE chunk_signs (
    tenant_id text NOT NULL,
    source_id uuid NOT NULL,
    ordinal bigint NOT NULL CHECK (ordinal >= 0),
    model text NOT NULL DEFAULT '',
    sign bit varying NOT NULL DEFAULT B'',
    CHECK (model <> '' OR length(sign) = 0),
    PRIMARY KEY (tenant_id, source_id, ordinal)
);
-- The embedding queue: chunks that the current model has not embedded.
CREATE INDEX chunk_signs_by_model ON chunk_signs (tenant_id, model);

-- The complete vectors, read for the few chunks with near signs.
CREATE TABLE vectors (
    tenant_id text NOT NULL,
    source_id uuid NOT NULL,
    ordinal bigint NOT NULL,
    vector bytea NOT NULL CHECK (length(vector) > 0),
    PRIMARY KEY (tenant_id, source_id, ordinal)
);
-- Vectors are close to random: compressing them takes time and saves nothing.
ALTER TABLE vectors ALTER COLUMN vector SET STORAGE EXTERNAL;

-- Data that a model extracted from a text according to a schema. It belongs to the plan of its
-- artifact.
CREATE TABLE extractions (
    tenant_id text NOT NULL,
    extraction_id uuid NOT NULL,
    artifact_id uuid,
    schema text NOT NULL,
    instructions text,
    data text NOT NULL,
    valid bigint NOT NULL CHECK (valid IN (0, 1)),
    issues text NOT NULL,
    model text NOT NULL,
    actor text NOT NULL,
    created_at bigint NOT NULL,
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
    plan_id uuid NOT NULL,
    -- Identifies the finding within the plan, so that it is reported once, whichever process found
    -- it.
    finding text NOT NULL CHECK (finding <> ''),
    kind text NOT NULL CHECK (kind IN ('stall', 'review', 'failure', 'no_agent', 'budget', 'blocked')),
    step_id uuid,
    attempt bigint CHECK (attempt >= 1),
    since_at bigint NOT NULL,
    note text,
    found_at bigint NOT NULL,
    delivery text NOT NULL CHECK (delivery IN ('waiting', 'sent', 'given_up', 'unwanted')),
    tries bigint NOT NULL CHECK (tries >= 0),
    -- Time of the next attempt; no process tries before.
    next_at bigint,
    ended_at bigint,
    last_error text,
    PRIMARY KEY (tenant_id, plan_id, finding),
    CHECK ((delivery = 'waiting') = (next_at IS NOT NULL)),
    CHECK ((delivery = 'waiting') = (ended_at IS NULL))
);
CREATE INDEX notices_waiting ON notices (tenant_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX notices_by_time ON notices (tenant_id, found_at);

-- Words of the name and question of a plan, for full-text search; written once, with the plan. A
-- separate table, because the row of a plan is rewritten with every call.
CREATE TABLE plan_words (
    tenant_id text NOT NULL,
    plan_id uuid NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (tenant_id, plan_id)
);
CREATE INDEX plan_words_by_word ON plan_words USING gin (words);

-- A transaction reads and writes the rows of the tenant that it has set, and no rows without one.
-- After an earlier transaction the setting is an empty text, which is not a tenant. FORCE applies
-- the policy to the owner of the tables too.
--
-- Functions that read across tenants, and those that use a full-text index, run as the owner, who
-- may read all rows of the tables they need. Row security is checked before any function that might
-- leak data from a row, so a query under row security never uses a full-text index.
DO $$
DECLARE
    name text;
    own text := $own$tenant_id = NULLIF(current_setting('onward.tenant', true), '')$own$;
BEGIN
    FOREACH name IN ARRAY ARRAY['tenants', 'plans', 'steps', 'dependencies', 'branches',
        'branch_needs', 'events', 'resumed_sessions', 'idempotency_keys', 'artifacts', 'tenant_log',
        'tool_calls', 'tokens', 'token_hashes', 'sign_outs', 'due', 'skill_executions', 'feedback',
        'tasks', 'sessions', 'session_agents', 'turns', 'turn_steps', 'directory_plans', 'session_calls', 'due_calls',
        'outputs', 'results', 'chunks', 'chunk_signs', 'vectors', 'extractions', 'notices', 'plan_words']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_tenant ON %I USING (%s) WITH CHECK (%s)', name, own, own);
        EXECUTE format('GRANT SELECT, INSERT ON %I TO onward_tenant', name);
        IF name <> 'events' THEN
            EXECUTE format('GRANT UPDATE, DELETE ON %I TO onward_tenant', name);
        END IF;
    END LOOP;
    FOREACH name IN ARRAY ARRAY['tenants', 'token_hashes', 'plans', 'steps', 'due', 'due_calls',
        'chunks', 'plan_words', 'tool_calls', 'extractions', 'tasks', 'sessions', 'directory_plans']
    LOOP
        EXECUTE format('CREATE POLICY owner_reads ON %I FOR SELECT TO %I USING (true)', name,
            CURRENT_USER);
    END LOOP;
END;
$$;

-- `onward_tenants`, `onward_due_*`, `onward_plan_groups` and `onward_tenants_expired` read rows of all
-- tenants. They return nothing in a transaction
-- that has set a tenant. `onward_token_of_hash` does not check this: it runs before the tenant is
-- known.

-- The tenant and the id of a token.
CREATE FUNCTION onward_token_of_hash(asked text)
RETURNS TABLE (hash text, tenant_id text, token_id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT hash, tenant_id, token_id FROM token_hashes WHERE hash = asked;
END;
$$;

-- The rows that a query returns on one node of a distributed database, as JSON. The query reads the
-- shards of these tables there. A query of all nodes fails if one of them does not respond. Only the
-- functions below call it: the role of a transaction may not.
CREATE FUNCTION onward_rows_on_node(node bigint, question text, tables text[]) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    host text;
    port int;
    shards text;
    is_answered boolean;
    answer text;
BEGIN
    EXECUTE 'SELECT nodename, nodeport FROM pg_dist_node WHERE nodeid = $1' INTO host, port USING node;
    EXECUTE 'SELECT string_agg(format(''%I AS (%s)'', name, parts), '', '') FROM (SELECT name, '
        'string_agg(format(''SELECT * FROM %I.%I'', current_schema(), name || ''_'' || shardid), '
        ''' UNION ALL '') AS parts FROM unnest($1) AS name '
        'JOIN pg_dist_shard ON logicalrelid = to_regclass(name) '
        'JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node USING (groupid) '
        'WHERE nodeid = $2 AND noderole = ''primary'' GROUP BY name) AS shards'
        INTO shards USING tables, node;
    IF shards IS NULL THEN
        RETURN '[]';
    END IF;
    EXECUTE 'SELECT success, result FROM master_run_on_worker(ARRAY[$1], ARRAY[$2], ARRAY[$3], false)'
        INTO is_answered, answer USING host, port, format(
            'WITH %s SELECT coalesce(jsonb_agg(answer), ''[]'') FROM (%s) AS answer', shards, question);
    IF NOT is_answered THEN
        RAISE EXCEPTION 'node `%:%`: %', host, port, answer USING ERRCODE = 'system_error';
    END IF;
    RETURN answer::jsonb;
END;
$$;

-- The functions with the parameter `node` read all nodes, or only this one.

-- All tenants, for an operator.
CREATE FUNCTION onward_tenants(node bigint DEFAULT NULL)
RETURNS TABLE (tenant_id text, agents_decide_reviews bigint, created_at bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    question text := 'SELECT tenant_id, agents_decide_reviews, created_at FROM tenants ORDER BY tenant_id';
BEGIN
    IF coalesce(current_setting('onward.tenant', true), '') <> '' THEN
        RETURN;
    END IF;
    IF node IS NULL THEN
        RETURN QUERY EXECUTE question;
    ELSE
        RETURN QUERY SELECT * FROM jsonb_to_recordset(onward_rows_on_node(node, question,
            ARRAY['tenants'])) AS answer (tenant_id text, agents_decide_reviews bigint, created_at bigint);
    END IF;
END;
$$;

-- The first time at which a plan or a session with open calls must be checked.
CREATE FUNCTION onward_due_first(node bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    question text := 'SELECT min(at) AS at FROM (SELECT tenant_id, at FROM due '
        'UNION ALL SELECT tenant_id, at FROM due_calls) AS firsts';
    first bigint;
BEGIN
    IF coalesce(current_setting('onward.tenant', true), '') <> '' THEN
        RETURN NULL;
    END IF;
    IF node IS NULL THEN
        EXECUTE question INTO first;
    ELSE
        first := onward_rows_on_node(node, question, ARRAY['due', 'due_calls']) -> 0 ->> 'at';
    END IF;
    RETURN first;
END;
$$;

-- The plans that must be checked.
CREATE FUNCTION onward_due_between(after bigint, until bigint, direction bigint, most bigint, node bigint)
RETURNS TABLE (tenant_id text, plan_id uuid, at bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    question text := format('SELECT tenant_id, plan_id, at FROM (SELECT tenant_id, plan_id, at, '
        'row_number() OVER (PARTITION BY tenant_id ORDER BY at * %1$s) AS turn '
        'FROM due WHERE at > %2$L::bigint AND at <= %3$L::bigint) AS queued '
        'ORDER BY turn, at * %1$s LIMIT %4$s', direction, after, until, most);
BEGIN
    IF coalesce(current_setting('onward.tenant', true), '') <> '' THEN
        RETURN;
    END IF;
    IF node IS NULL THEN
        RETURN QUERY EXECUTE question;
    ELSE
        RETURN QUERY SELECT * FROM jsonb_to_recordset(onward_rows_on_node(node, question,
            ARRAY['due'])) AS answer (tenant_id text, plan_id uuid, at bigint);
    END IF;
END;
$$;

-- Why a write may wait although the server responds: tables that another session has locked against
-- writes, and a synchronous standby that is not connected.
CREATE FUNCTION onward_obstacles() RETURNS TABLE (obstacle text, detail text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN QUERY SELECT DISTINCT 'table_locked', pg_class.relname::text
        FROM pg_locks JOIN pg_class ON pg_class.oid = pg_locks.relation
        WHERE pg_locks.database = (SELECT pg_database.oid FROM pg_database
                WHERE pg_database.datname = current_database())
            AND pg_locks.granted AND pg_locks.pid <> pg_backend_pid()
            AND pg_locks.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                'AccessExclusiveLock')
            AND pg_class.relkind = 'r' AND pg_class.relnamespace = current_schema()::regnamespace;
    -- A role without the right to see it reads NULL.
    IF current_setting('synchronous_standby_names') <> ''
        AND current_setting('synchronous_commit') NOT IN ('off', 'local')
        AND NOT EXISTS (SELECT 1 FROM pg_stat_replication
            WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum')) THEN
        RETURN QUERY SELECT 'standby_missing', current_setting('synchronous_standby_names');
    END IF;
END;
$$;

-- The plans that would be checked after a step stalls, or that have a step with a time after
-- `latest`: a wrong clock has written these times.
CREATE FUNCTION onward_due_late(now bigint, latest bigint, node bigint)
RETURNS TABLE (tenant_id text, plan_id uuid, at bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    question text := format('SELECT due.tenant_id, due.plan_id, due.at FROM due '
        'WHERE due.at > %1$L::bigint AND EXISTS (SELECT 1 FROM steps '
            'WHERE steps.tenant_id = due.tenant_id AND steps.plan_id = due.plan_id '
            'AND steps.status = ''in_progress'' AND (steps.stalls_at + 1 < due.at '
                'OR steps.started_at > %2$L::bigint OR steps.last_progress_at > %2$L::bigint))',
        now, latest);
BEGIN
    IF coalesce(current_setting('onward.tenant', true), '') <> '' THEN
        RETURN;
    END IF;
    IF node IS NULL THEN
        RETURN QUERY EXECUTE question;
    ELSE
        RETURN QUERY SELECT * FROM jsonb_to_recordset(onward_rows_on_node(node, question,
            ARRAY['due', 'steps'])) AS answer (tenant_id text, plan_id uuid, at bigint);
    END IF;
END;
$$;

-- The sessions whose open calls must be checked.
CREATE FUNCTION onward_due_calls_until(until bigint, most bigint, node bigint)
RETURNS TABLE (tenant_id text, session_id text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    question text := format('SELECT DISTINCT tenant_id, session_id FROM due_calls '
        'WHERE at <= %L::bigint LIMIT %s', until, most);
BEGIN
    IF coalesce(current_setting('onward.tenant', true), '') <> '' THEN
        RETURN;
    END IF;
    IF node IS NULL THEN
        RETURN QUERY EXECUTE question;
    ELSE
        RETURN QUERY SELECT * FROM jsonb_to_recordset(onward_rows_on_node(node, question,
            ARRAY['due_calls'])) AS answer (tenant_id text, session_id text);
    END IF;
END;
$$;

-- The processes of a host that run calls.
CREATE FUNCTION onward_due_calls_of_host(asked text, node bigint)
RETURNS TABLE (tenant_id text, session_id text, host text, boot text, process bigint, started bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    question text := format('SELECT tenant_id, session_id, host, boot, process, started FROM due_calls '
        'WHERE host = %L ORDER BY tenant_id, session_id', asked);
BEGIN
    IF coalesce(current_setting('onward.tenant', true), '') <> '' THEN
        RETURN;
    END IF;
    IF node IS NULL THEN
        RETURN QUERY EXECUTE question;
    ELSE
        RETURN QUERY SELECT * FROM jsonb_to_recordset(onward_rows_on_node(node, question,
            ARRAY['due_calls'])) AS answer (tenant_id text, session_id text, host text, boot text,
                process bigint, started bigint);
    END IF;
END;
$$;

-- The plans of all tenants, grouped by the facts for their attention, for metrics.
CREATE FUNCTION onward_plan_groups(now bigint, idle_before bigint, archived_before bigint)
RETURNS TABLE (status text, failure_kind text, failed bigint, origin text, archived bigint,
    budget text, pending bigint, in_progress bigint, awaiting_input bigint, idle bigint, stuck bigint,
    orphaned bigint, ready bigint, plans bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    IF coalesce(current_setting('onward.tenant', true), '') <> '' THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT status, failure_kind, failed, origin, archived, budget, pending, in_progress,
            awaiting_input, idle, stuck, orphaned, ready, count(*) AS plans
        FROM (SELECT CAST(plans.status AS text) AS status, CAST(plans.failure_kind AS text) AS failure_kind,
                CASE WHEN plans.failed > 0 THEN CAST(1 AS bigint) ELSE 0 END AS failed,
                CAST(plans.origin AS text) AS origin,
                CASE WHEN plans.ended_at IS NULL AND plans.origin = 'agent' AND plans.acted_at < archived_before
                    THEN CAST(1 AS bigint) ELSE 0 END AS archived,
                CASE WHEN plans.ended_at IS NULL THEN CAST(plans.budget AS text) END AS budget,
                CASE WHEN plans.ended_at IS NULL AND plans.pending > 0
                    THEN CAST(1 AS bigint) ELSE 0 END AS pending,
                CASE WHEN plans.ended_at IS NULL AND plans.in_progress > 0
                    THEN CAST(1 AS bigint) ELSE 0 END AS in_progress,
                CASE WHEN plans.ended_at IS NULL AND plans.awaiting_input > 0
                    THEN CAST(1 AS bigint) ELSE 0 END AS awaiting_input,
                CASE WHEN plans.ended_at IS NULL AND plans.worked_at < idle_before
                    THEN CAST(1 AS bigint) ELSE 0 END AS idle,
                CASE WHEN plans.ended_at IS NULL THEN coalesce(open_steps.stuck, 0) ELSE 0 END AS stuck,
                CASE WHEN plans.ended_at IS NULL THEN coalesce(open_steps.orphaned, 0) ELSE 0 END AS orphaned,
                CASE WHEN plans.ended_at IS NULL THEN coalesce(open_steps.ready, 0) ELSE 0 END AS ready
            FROM plans LEFT JOIN (SELECT steps.tenant_id AS tenant_id, steps.plan_id AS plan_id,
                    max(CASE WHEN steps.status = 'in_progress' AND steps.stalls_at < now
                        THEN CAST(1 AS bigint) ELSE 0 END) AS stuck,
                    min(CASE WHEN steps.status = 'pending' THEN NULL WHEN steps.orphaned_at IS NULL
                        THEN CAST(0 AS bigint) ELSE 1 END) AS orphaned,
                    max(CASE WHEN steps.status = 'pending' THEN CAST(1 AS bigint) ELSE 0 END) AS ready
                FROM steps WHERE steps.status = 'in_progress' OR (steps.status = 'pending'
                    AND steps.stalls_at IS NULL AND steps.open_dependencies = 0)
                GROUP BY steps.tenant_id, steps.plan_id) AS open_steps
            ON open_steps.tenant_id = plans.tenant_id AND open_steps.plan_id = plans.plan_id) AS facts
        GROUP BY status, failure_kind, failed, origin, archived, budget, pending, in_progress,
            awaiting_input, idle, stuck, orphaned, ready;
END;
$$;

-- The size of all tables with their indexes; of a distributed database, on all nodes.
CREATE FUNCTION onward_total_bytes() RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    bytes bigint;
BEGIN
    IF to_regproc('pg_catalog.citus_total_relation_size') IS NULL THEN
        SELECT sum(pg_total_relation_size(pg_class.oid)) INTO bytes FROM pg_class
            WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace;
    ELSE
        EXECUTE 'SELECT sum(CASE WHEN EXISTS (SELECT 1 FROM pg_dist_partition '
            'WHERE logicalrelid = pg_class.oid) THEN citus_total_relation_size(pg_class.oid) '
            'ELSE pg_total_relation_size(pg_class.oid) END) FROM pg_class '
            'WHERE relkind = ''r'' AND relnamespace = current_schema()::regnamespace' INTO bytes;
    END IF;
    RETURN bytes;
END;
$$;

-- The tenants with data that retention deletes: ended plans, calls with extractions and tasks, and
-- sessions before these times. A union, because each part is one join of distributed tables.
CREATE FUNCTION onward_tenants_expired(before_plans bigint, before_calls bigint,
    before_sessions bigint)
RETURNS TABLE (tenant_id text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    IF coalesce(current_setting('onward.tenant', true), '') <> '' THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM plans AS expired
            WHERE expired.tenant_id = tenants.tenant_id AND expired.status IN ('completed', 'failed')
                AND expired.acted_about <= before_plans / 10000 AND expired.updated_at < before_plans)
        UNION SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM tool_calls AS expired
            WHERE expired.tenant_id = tenants.tenant_id AND expired.at < before_calls)
        UNION SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM extractions AS expired
            WHERE expired.tenant_id = tenants.tenant_id AND expired.artifact_id IS NULL AND expired.created_at < before_calls)
        UNION SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM tasks AS expired
            WHERE expired.tenant_id = tenants.tenant_id AND expired.plan_id IS NULL AND expired.created_at < before_calls)
        UNION SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM sessions AS expired
            WHERE expired.tenant_id = tenants.tenant_id AND expired.last_seen_at < before_sessions)
        UNION SELECT tenants.tenant_id AS tenant_id FROM tenants WHERE EXISTS (SELECT 1 FROM directory_plans AS expired
            WHERE expired.tenant_id = tenants.tenant_id AND expired.seen_at < before_sessions);
END;
$$;

-- Deletes the audit trail of a plan that the same transaction has deleted; returns the number of
-- deleted rows.
CREATE FUNCTION onward_delete_events(of_tenant text, of_plan uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    deleted bigint;
BEGIN
    IF of_tenant IS DISTINCT FROM NULLIF(current_setting('onward.tenant', true), '') THEN
        RETURN 0;
    END IF;
    IF EXISTS (SELECT 1 FROM plans WHERE tenant_id = of_tenant AND plan_id = of_plan) THEN
        RAISE EXCEPTION 'the audit trail of an existing plan cannot be deleted'
            USING ERRCODE = 'restrict_violation';
    END IF;
    DELETE FROM events WHERE tenant_id = of_tenant AND plan_id = of_plan;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END;
$$;

-- Number of chunks that contain the words, counted up to `most`.
CREATE FUNCTION onward_word_count(of_tenant text, asked text, most bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF of_tenant IS DISTINCT FROM NULLIF(current_setting('onward.tenant', true), '') THEN
        RETURN 0;
    END IF;
    RETURN (SELECT count(*) FROM (
        SELECT ordinal FROM chunks
        WHERE tenant_id = of_tenant AND words @@ to_tsquery('simple', asked) LIMIT most) AS found);
END;
$$;

-- Of the `most` best chunks, the best one of each matching artifact, output and result.
CREATE FUNCTION onward_search(of_tenant text, asked text, most bigint, of_plan uuid, of_type text,
    since bigint, until bigint, page bigint)
RETURNS TABLE (source_id uuid, source bigint, starts_at bigint, characters bigint, title text,
    artifact_type text, plan_id uuid, source_url text, rank double precision, created_at bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    IF of_tenant IS DISTINCT FROM NULLIF(current_setting('onward.tenant', true), '') THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH hits AS MATERIALIZED (
        SELECT source_id, starts_at, characters,
            -ts_rank(words, to_tsquery('simple', asked), 1)::double precision AS rank
        FROM chunks
        WHERE tenant_id = of_tenant AND words @@ to_tsquery('simple', asked)
        ORDER BY rank LIMIT most),
    best AS MATERIALIZED (
        SELECT DISTINCT ON (source_id) source_id, starts_at, characters, rank
        FROM hits ORDER BY source_id, rank)
    SELECT best.source_id, 0::bigint, best.starts_at, best.characters, found.title,
        found.artifact_type, found.plan_id, found.source_url, best.rank, found.created_at
    FROM best JOIN artifacts AS found
        ON found.tenant_id = of_tenant AND found.artifact_id = best.source_id
    WHERE (of_plan IS NULL OR found.plan_id = of_plan)
        AND (of_type IS NULL OR found.artifact_type = of_type)
        AND (since IS NULL OR found.created_at >= since)
        AND (until IS NULL OR found.created_at < until)
    UNION ALL
    SELECT best.source_id, 1::bigint, best.starts_at, best.characters, found.title, NULL,
        found.plan_id, NULL, best.rank, found.created_at
    FROM best JOIN outputs AS found
        ON found.tenant_id = of_tenant AND found.output_id = best.source_id
    WHERE (of_plan IS NULL OR found.plan_id = of_plan) AND of_type IS NULL
        AND (since IS NULL OR found.created_at >= since)
        AND (until IS NULL OR found.created_at < until)
    UNION ALL
    SELECT best.source_id, 2::bigint, best.starts_at, best.characters, found.title, 'result',
        found.plan_id, NULL, best.rank, found.created_at
    FROM best JOIN results AS found
        ON found.tenant_id = of_tenant AND found.step_id = best.source_id
    WHERE (of_plan IS NULL OR found.plan_id = of_plan) AND (of_type IS NULL OR of_type = 'result')
        AND (since IS NULL OR found.created_at >= since)
        AND (until IS NULL OR found.created_at < until)
    ORDER BY 9, 10 DESC, 1 LIMIT page;
END;
$$;

-- Number of plans that contain the words, counted up to `most`.
CREATE FUNCTION onward_plan_word_count(of_tenant text, asked text, most bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF of_tenant IS DISTINCT FROM NULLIF(current_setting('onward.tenant', true), '') THEN
        RETURN 0;
    END IF;
    RETURN (SELECT count(*) FROM (
        SELECT plan_id FROM plan_words
        WHERE tenant_id = of_tenant AND words @@ to_tsquery('simple', asked) LIMIT most) AS found);
END;
$$;

-- Plans that contain the words and are in one of these statuses, most recent change first;
-- `before_at` and `before_plan` are the end of the previous page.
CREATE FUNCTION onward_plans_found(of_tenant text, asked text, statuses text, before_at bigint,
    before_plan uuid, page bigint) RETURNS SETOF uuid
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF of_tenant IS DISTINCT FROM NULLIF(current_setting('onward.tenant', true), '') THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT plans.plan_id FROM plan_words
        JOIN plans ON plans.tenant_id = of_tenant AND plans.plan_id = plan_words.plan_id
    WHERE plan_words.tenant_id = of_tenant AND plan_words.words @@ to_tsquery('simple', asked)
        AND statuses LIKE '%' || plans.status || '%'
        AND (plans.acted_at < before_at
            OR (plans.acted_at = before_at AND plans.plan_id < before_plan))
    ORDER BY plans.acted_at DESC, plans.plan_id DESC LIMIT page;
END;
$$;

-- Nearest-neighbour search by an index, on servers with pgvector. Nothing here requires the
-- extension: without it, these functions find no index.

-- Name of the index over the signs of one tenant and one model, of this many bits. Indexes are
-- created and dropped while servers run, and only for tenants with many chunks.
CREATE FUNCTION onward_near_index(tenant text, of_model text, width bigint) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN 'chunk_signs_near_'
        || to_hex(hashtextextended(format('%L %L %s', tenant, of_model, width), 0));
END;
$$;

-- The chunks with the nearest signs, by that index, with their vectors; none if it does not exist or
-- is not valid. Tenant, model and width are literals in the query, because otherwise the planner
-- would not recognise that the partial index applies. It runs as the owner of the tables, to whom
-- row security applies as well: the operator `<~>` may be in a schema that the role of a tenant may
-- not use.
CREATE FUNCTION onward_near(of_tenant text, of_model text, asked text, most bigint)
RETURNS TABLE (source_id uuid, ordinal bigint, vector bytea)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1000 SET search_path FROM CURRENT SET enable_sort = off AS $$
DECLARE
    width bigint := length(asked);
    extension_schema text;
BEGIN
    SELECT nspname INTO extension_schema
    FROM pg_index, pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
    WHERE indexrelid = to_regclass(onward_near_index(of_tenant, of_model, width)) AND indisvalid
        AND extname = 'vector'
        AND of_tenant = NULLIF(current_setting('onward.tenant', true), '');
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- Scan as many entries as requested, and more if some of them are dead.
    PERFORM set_config('hnsw.ef_search', greatest(1, least(most, 1000))::text, true),
        set_config('hnsw.iterative_scan', 'strict_order', true);
    RETURN QUERY EXECUTE format(
        'SELECT near.source_id, near.ordinal, vectors.vector FROM (SELECT source_id, ordinal '
            'FROM chunk_signs WHERE tenant_id = %L AND model = %L AND length(sign) = %s '
            'ORDER BY sign::bit(%s) OPERATOR(%I.<~>) %L::bit(%s) LIMIT %s) AS near '
            'JOIN vectors ON vectors.tenant_id = %L AND vectors.source_id = near.source_id '
            'AND vectors.ordinal = near.ordinal',
        of_tenant, of_model, width, width, extension_schema, asked, width, most, of_tenant);
END;
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['onward_tenants', 'onward_obstacles', 'onward_token_of_hash', 'onward_due_first',
        'onward_due_between', 'onward_due_late', 'onward_due_calls_until', 'onward_due_calls_of_host',
        'onward_plan_groups', 'onward_total_bytes', 'onward_tenants_expired',
        'onward_delete_events',
        'onward_word_count', 'onward_search', 'onward_plan_word_count', 'onward_plans_found',
        'onward_near']
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %I FROM PUBLIC', name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %I TO onward_tenant', name);
    END LOOP;
    REVOKE EXECUTE ON FUNCTION onward_near_index FROM PUBLIC;
    REVOKE EXECUTE ON FUNCTION onward_rows_on_node FROM PUBLIC;
    FOREACH name IN ARRAY ARRAY['onward_wrong_count', 'onward_outdated', 'onward_plan_is_valid',
        'onward_step_is_valid']
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %I TO onward_tenant', name);
    END LOOP;
END;
$$;

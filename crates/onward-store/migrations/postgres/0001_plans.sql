-- Differs because the types have other names, every table has row security in addition to the
-- tenant in each statement, and a role and two functions are needed for that.
--
-- Instants and durations are whole milliseconds; JSON is text, as written; flags are 0 and 1. The
-- CHECKs repeat the rules of the states: a row that matches no valid state cannot be written. For
-- rows that change with every call, the rule is a function of the row: PostgreSQL parses the text
-- of a CHECK again with every statement, and caches a function between calls. Everything is created
-- in the first schema of the search path.

-- The role that every transaction assumes: it cannot log in and cannot bypass row security,
-- whatever the login is. Roles belong to the whole cluster, so servers that start concurrently on
-- two of its databases create it concurrently; the lock around a migration does not serialize them.
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
                        'let an administrator run: CREATE ROLE onward_tenant NOLOGIN; %s', grants);
        END;
    END IF;
    IF NOT pg_has_role(CURRENT_USER, 'onward_tenant', needed) THEN
        BEGIN
            EXECUTE grants;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'the role `%` may not take the role `onward_tenant`', CURRENT_USER
                    USING ERRCODE = 'insufficient_privilege',
                        HINT = format('let an administrator run: %s', grants);
        END;
    END IF;
    IF NOT has_schema_privilege('onward_tenant', current_schema(), 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO onward_tenant', current_schema());
    END IF;
END;
$$;

-- Aborts a transaction whose statement affected another number of rows than required. It is called
-- only in that case, inside the statement, so that a COMMIT sent with it comes too late.
CREATE FUNCTION onward_miscounted(statement text, touched bigint, expected bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '`%` touched % rows, expected %', statement, touched, expected
        USING ERRCODE = 'ONW01';
END;
$$;

CREATE TABLE tenants (
    tenant_id text NOT NULL PRIMARY KEY,
    agents_decide_reviews bigint NOT NULL CHECK (agents_decide_reviews IN (0, 1)),
    created_at bigint NOT NULL
);

CREATE TABLE plans (
    tenant_id text NOT NULL,
    plan_id uuid NOT NULL,
    name text NOT NULL,
    research_question text NOT NULL,
    design_rationale text,
    output_formatting_notes text,
    stall_threshold_ms bigint,
    on_stall text NOT NULL,
    status text NOT NULL,
    review_step uuid,
    review_id uuid,
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
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    -- In units of ten seconds; lists are ordered by it first. A row whose indexed columns keep
    -- their values can be updated in place (HOT), which an index over `updated_at` would prevent.
    updated_about bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, plan_id)
) WITH (fillfactor = 75);
-- The most frequent states come first. A comparison with NULL counts as invalid.
CREATE FUNCTION onward_plan_is_lawful(plan plans) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF (plan.on_stall IN ('mark', 'requeue', 'fail', 'ignore')
        AND least(plan.pending, plan.in_progress, plan.awaiting_input, plan.completed, plan.skipped,
            plan.failed, plan.seq - 1, plan.stall_threshold_ms - 1) >= 0) IS NOT TRUE THEN
        RETURN false;
    END IF;
    IF plan.status IN ('planning', 'executing') THEN
        RETURN num_nonnulls(plan.review_step, plan.review_id, plan.marked_at, plan.ended_at,
            plan.failure_kind) = 0;
    ELSIF plan.status = 'completed' THEN
        RETURN plan.ended_at IS NOT NULL
            AND num_nonnulls(plan.review_step, plan.review_id, plan.marked_at, plan.failure_kind) = 0
            AND plan.pending + plan.in_progress + plan.awaiting_input = 0;
    ELSIF plan.status = 'awaiting_review' THEN
        RETURN num_nonnulls(plan.review_step, plan.review_id) = 2
            AND num_nonnulls(plan.marked_at, plan.ended_at, plan.failure_kind) = 0;
    ELSIF plan.status = 'stalled' THEN
        RETURN plan.marked_at IS NOT NULL
            AND num_nonnulls(plan.review_step, plan.review_id, plan.ended_at, plan.failure_kind) = 0;
    ELSIF plan.status = 'failed' THEN
        RETURN num_nonnulls(plan.ended_at, plan.failure_kind) = 2
            AND num_nonnulls(plan.review_step, plan.review_id, plan.marked_at) = 0;
    END IF;
    RETURN false;
END;
$$;
ALTER TABLE plans ADD CONSTRAINT plans_are_lawful CHECK (onward_plan_is_lawful(plans));
CREATE INDEX plans_active ON plans (tenant_id, updated_about)
    WHERE ended_at IS NULL;
CREATE INDEX plans_finished ON plans (tenant_id, updated_about)
    WHERE ended_at IS NOT NULL;

CREATE TABLE steps (
    tenant_id text NOT NULL,
    step_id uuid NOT NULL,
    plan_id uuid NOT NULL,
    -- Negative only inside the transaction that moves steps.
    step_order bigint NOT NULL,
    step_type text NOT NULL,
    title text,
    instructions text NOT NULL,
    depends_on text NOT NULL,
    stall_threshold_ms bigint,
    max_attempts bigint NOT NULL,
    status text NOT NULL,
    attempt bigint NOT NULL,
    claim_token text,
    claim_session text,
    started_at bigint,
    last_progress_at bigint,
    stall_marked_at bigint,
    undelivered bigint NOT NULL,
    review text,
    ended_at bigint,
    -- First event of the commit in which the step ended, so that its response can be repeated.
    ended_commit bigint,
    result_summary text,
    result_confidence double precision,
    result text,
    result_report text,
    result_notes text,
    skipped_by_branch uuid,
    skipped_by_review uuid,
    failure_kind text,
    failure_words text,
    superseded text NOT NULL,
    updated_at bigint NOT NULL,
    -- Derived, so that an index finds the steps that can be assigned and those that have stalled.
    open_dependencies bigint NOT NULL,
    stalls_at bigint,
    PRIMARY KEY (tenant_id, step_id),
    UNIQUE (tenant_id, plan_id, step_order)
);
CREATE FUNCTION onward_step_is_lawful(step steps) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF (step.step_order <> 0
        AND step.step_type IN ('search', 'extract', 'analyze', 'critique', 'synthesize',
            'checkpoint', 'custom')
        AND least(step.attempt, step.open_dependencies, step.max_attempts - 1,
            step.stall_threshold_ms - 1) >= 0) IS NOT TRUE THEN
        RETURN false;
    END IF;
    IF step.status = 'in_progress' THEN
        RETURN num_nonnulls(step.claim_token, step.started_at) = 2 AND step.undelivered IN (0, 1)
            AND num_nonnulls(step.ended_at, step.ended_commit, step.review, step.result_summary,
                step.skipped_by_branch, step.skipped_by_review, step.failure_kind) = 0;
    ELSIF step.undelivered <> 0 AND step.status <> 'awaiting_input' OR step.stalls_at IS NOT NULL THEN
        RETURN false;
    ELSIF step.status = 'completed' THEN
        RETURN num_nonnulls(step.claim_token, step.started_at, step.ended_at, step.ended_commit,
                step.result_summary) = 5
            AND num_nonnulls(step.review, step.skipped_by_branch, step.skipped_by_review,
                step.failure_kind) = 0;
    ELSIF step.status = 'pending' THEN
        RETURN step.attempt > 0
            AND num_nonnulls(step.claim_token, step.started_at, step.ended_at, step.ended_commit,
                step.review, step.result_summary, step.skipped_by_branch, step.skipped_by_review,
                step.failure_kind) = 0;
    ELSIF step.status = 'awaiting_input' THEN
        RETURN num_nonnulls(step.claim_token, step.started_at, step.review) = 3
            AND step.undelivered IN (0, 1)
            AND num_nonnulls(step.ended_at, step.ended_commit, step.result_summary,
                step.skipped_by_branch, step.skipped_by_review, step.failure_kind) = 0;
    ELSIF step.status = 'skipped' THEN
        RETURN num_nonnulls(step.ended_at, step.ended_commit) = 2
            AND num_nonnulls(step.skipped_by_branch, step.skipped_by_review) = 1
            AND num_nonnulls(step.started_at, step.review, step.result_summary, step.failure_kind) = 0;
    ELSIF step.status = 'failed' THEN
        RETURN num_nonnulls(step.ended_at, step.ended_commit, step.failure_kind) = 3
            AND num_nonnulls(step.started_at, step.review, step.result_summary,
                step.skipped_by_branch, step.skipped_by_review) = 0;
    END IF;
    RETURN false;
END;
$$;
ALTER TABLE steps ADD CONSTRAINT steps_are_lawful CHECK (onward_step_is_lawful(steps));
CREATE INDEX steps_ready ON steps (tenant_id, plan_id, step_order)
    WHERE status = 'pending' AND open_dependencies = 0;
CREATE INDEX steps_working ON steps (tenant_id, plan_id, stalls_at)
    WHERE status = 'in_progress';
CREATE INDEX steps_asking ON steps (tenant_id, plan_id)
    WHERE status = 'awaiting_input';
CREATE INDEX steps_undelivered ON steps (tenant_id, plan_id, step_order)
    WHERE undelivered = 1;
CREATE INDEX steps_reviewed ON steps (tenant_id, updated_at)
    WHERE status = 'awaiting_input';

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
-- plan use the same sequence number, and the second one is rejected.
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
CREATE FUNCTION onward_events_are_not_changed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'the audit trail takes no truncate' USING ERRCODE = 'restrict_violation';
    END IF;
    RAISE EXCEPTION 'the audit trail takes no update' USING ERRCODE = 'restrict_violation';
END;
$$;
CREATE FUNCTION onward_events_go_with_their_plan() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM plans WHERE tenant_id = OLD.tenant_id AND plan_id = OLD.plan_id) THEN
        RAISE EXCEPTION 'the audit trail of a plan that exists takes no delete'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
END;
$$;
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
    FOR EACH ROW EXECUTE FUNCTION onward_events_are_not_changed();
CREATE TRIGGER events_are_not_emptied BEFORE TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION onward_events_are_not_changed();
CREATE TRIGGER events_go_with_their_plan BEFORE DELETE ON events
    FOR EACH ROW EXECUTE FUNCTION onward_events_go_with_their_plan();

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
    PRIMARY KEY (tenant_id, call_id)
);
CREATE INDEX tool_calls_by_time ON tool_calls (tenant_id, at, call_id);

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

-- The first of the two tables outside row security: finds the tenant of a token.
CREATE TABLE token_hashes (
    hash text NOT NULL PRIMARY KEY,
    tenant_id text NOT NULL,
    token_id uuid NOT NULL
);

-- The second one: when the sweep must check which plan. A plan may be checked too early, but never
-- too late.
CREATE TABLE due (
    tenant_id text NOT NULL,
    plan_id uuid NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (tenant_id, plan_id)
);
CREATE INDEX due_by_time ON due (at);

-- A transaction reads and writes the rows of the tenant that it has set, and no rows without one.
-- After an earlier transaction the setting is an empty text, which is not a tenant. FORCE applies
-- the policy to the owner of the tables too.
DO $$
DECLARE
    guarded text;
    own text := $own$tenant_id = NULLIF(current_setting('onward.tenant', true), '')$own$;
BEGIN
    FOREACH guarded IN ARRAY ARRAY['tenants', 'plans', 'steps', 'dependencies', 'branches',
        'branch_needs', 'events', 'resumed_sessions', 'idempotency_keys', 'artifacts',
        'tenant_log', 'tool_calls', 'tokens']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', guarded);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format('CREATE POLICY own_tenant ON %I USING (%s) WITH CHECK (%s)',
            guarded, own, own);
    END LOOP;
END;
$$;
CREATE POLICY operators_see_all ON tenants FOR SELECT
    USING (current_setting('onward.operator', true) = 'on');

GRANT SELECT, INSERT, UPDATE, DELETE ON tenants, plans, steps, dependencies, branches,
    branch_needs, events, resumed_sessions, idempotency_keys, artifacts, tenant_log, tool_calls,
    tokens, token_hashes, due TO onward_tenant;
GRANT EXECUTE ON FUNCTION onward_miscounted(text, bigint, bigint), onward_plan_is_lawful(plans),
    onward_step_is_lawful(steps) TO onward_tenant;

-- Skill executions of agents, and user feedback about plans. Differs from SQLite as the first
-- schema does.

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
CREATE INDEX skill_executions_free ON skill_executions
    (tenant_id, session, started_at, execution_id)
    WHERE status = 'started' AND plan_id IS NULL;
CREATE INDEX skill_executions_of_plan ON skill_executions
    (tenant_id, plan_id, started_at, execution_id)
    WHERE plan_id IS NOT NULL;

CREATE TABLE feedback (
    tenant_id text NOT NULL,
    feedback_id uuid NOT NULL,
    plan_id uuid NOT NULL,
    rating bigint CHECK (rating BETWEEN 1 AND 5),
    comment text,
    actor text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, feedback_id),
    CHECK (rating IS NOT NULL OR comment IS NOT NULL)
);
CREATE INDEX feedback_of_plan ON feedback (tenant_id, plan_id, created_at, feedback_id);

-- As for the tables of the first schema: each tenant reads and writes only its own rows.
DO $$
DECLARE
    guarded text;
    own text := $own$tenant_id = NULLIF(current_setting('onward.tenant', true), '')$own$;
BEGIN
    FOREACH guarded IN ARRAY ARRAY['skill_executions', 'feedback']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', guarded);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format('CREATE POLICY own_tenant ON %I USING (%s) WITH CHECK (%s)',
            guarded, own, own);
    END LOOP;
END;
$$;

GRANT SELECT, INSERT, UPDATE, DELETE ON skill_executions, feedback TO onward_tenant;

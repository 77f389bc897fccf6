-- Skill executions of agents, and user feedback about plans. Differs from PostgreSQL as the first
-- schema does.

CREATE TABLE skill_executions (
    tenant_id text NOT NULL,
    execution_id blob NOT NULL,
    skill_name text NOT NULL,
    status text NOT NULL CHECK (status IN ('started', 'executing', 'completed', 'failed')),
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
CREATE INDEX skill_executions_free ON skill_executions
    (tenant_id, session, started_at, execution_id)
    WHERE status = 'started' AND plan_id IS NULL;
CREATE INDEX skill_executions_of_plan ON skill_executions
    (tenant_id, plan_id, started_at, execution_id)
    WHERE plan_id IS NOT NULL;

CREATE TABLE feedback (
    tenant_id text NOT NULL,
    feedback_id blob NOT NULL,
    plan_id blob NOT NULL,
    rating integer CHECK (rating BETWEEN 1 AND 5),
    comment text,
    actor text NOT NULL,
    created_at integer NOT NULL,
    PRIMARY KEY (tenant_id, feedback_id),
    CHECK (rating IS NOT NULL OR comment IS NOT NULL)
);
CREATE INDEX feedback_of_plan ON feedback (tenant_id, plan_id, created_at, feedback_id);

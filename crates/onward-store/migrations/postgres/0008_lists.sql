-- Lists of plans by status and by full-text search, and lists of skill executions, without reading
-- all rows. Differs from SQLite as the first schema does, and because the words are a column here:
-- of a separate table, because the row of a plan is rewritten with every call.

-- No tenant is set here, and the owner of the tables must see all plans.
ALTER TABLE plans NO FORCE ROW LEVEL SECURITY;

-- Number of steps of a plan. It seldom changes, and so do the indexes over it.
ALTER TABLE plans ADD COLUMN steps bigint NOT NULL DEFAULT 0;
UPDATE plans SET steps = pending + in_progress + awaiting_input + completed + skipped + failed;

-- These replace the two indexes that distinguished only open and ended plans. Counting needs no
-- others.
DROP INDEX plans_active;
DROP INDEX plans_finished;
CREATE INDEX plans_by_status ON plans (tenant_id, status, updated_about, steps);

-- Skill executions, as listed and as counted.
CREATE INDEX skill_executions_by_time ON skill_executions (tenant_id, started_at, execution_id);
CREATE INDEX skill_executions_by_status ON skill_executions (tenant_id, status, ended_at, started_at);

-- Words of the name and question of a plan, for full-text search; written once, with the plan.
CREATE TABLE plan_words (
    tenant_id text NOT NULL,
    plan_id uuid NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (tenant_id, plan_id)
);
-- It does not begin with the tenant: a GIN index cannot, without an extension that not every server
-- has.
CREATE INDEX plan_words_by_word ON plan_words USING gin (words);

-- Existing plans: words as split by the database.
INSERT INTO plan_words (tenant_id, plan_id, words)
SELECT tenant_id, plan_id, to_tsvector('simple', name || ' ' || research_question) FROM plans;
ALTER TABLE plans FORCE ROW LEVEL SECURITY;

-- As for the tables of the first schema: each tenant reads and writes only its own rows.
ALTER TABLE plan_words ENABLE ROW LEVEL SECURITY;
ALTER TABLE plan_words FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON plan_words
    USING (tenant_id = NULLIF(current_setting('onward.tenant', true), ''))
    WITH CHECK (tenant_id = NULLIF(current_setting('onward.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON plan_words TO onward_tenant;

-- As for chunks: a query under row security never uses a full-text index, so a function does, as
-- the owner of the table, and filters by tenant itself. Its result is joined with a table under row
-- security.
DO $$
BEGIN
    EXECUTE format('CREATE POLICY owner_searches ON plan_words FOR SELECT TO %I USING (true)',
        CURRENT_USER);
END;
$$;
CREATE FUNCTION onward_plans_with(asked text, most bigint) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT plan_id FROM plan_words
    WHERE tenant_id = NULLIF(current_setting('onward.tenant', true), '')
        AND words @@ to_tsquery('simple', asked)
    LIMIT most
$$;
REVOKE EXECUTE ON FUNCTION onward_plans_with(text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION onward_plans_with(text, bigint) TO onward_tenant;

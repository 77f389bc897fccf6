-- Lists of plans by status and by words, and of skills, without reading all of them. Differs from SQLite's as the first
-- schema does, and because the words are a column here: of a table of their own, for a plan's row is
-- written anew with every call.

-- No tenant is set here, and the owner of the tables must see all plans.
ALTER TABLE plans NO FORCE ROW LEVEL SECURITY;

-- How many steps a plan has. It changes seldom, and so do the indexes over it.
ALTER TABLE plans ADD COLUMN steps bigint NOT NULL DEFAULT 0;
UPDATE plans SET steps = pending + in_progress + awaiting_input + completed + skipped + failed;

-- In place of the two that told only what is over from what is not. Counting needs nothing else.
DROP INDEX plans_active;
DROP INDEX plans_finished;
CREATE INDEX plans_by_status ON plans (tenant_id, status, updated_about, steps);

-- Executions of skills as they are listed, and as they are counted.
CREATE INDEX skill_executions_by_time ON skill_executions (tenant_id, started_at, execution_id);
CREATE INDEX skill_executions_by_status ON skill_executions (tenant_id, status, ended_at, started_at);

-- The words of a plan's name and question, by which it is found: written once, with the plan.
CREATE TABLE plan_words (
    tenant_id text NOT NULL,
    plan_id uuid NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (tenant_id, plan_id)
);
-- It does not begin with the tenant: an index of words cannot, without an extension that not every
-- server has.
CREATE INDEX plan_words_by_word ON plan_words USING gin (words);

-- Plans that are there already: their words as the database sees them.
INSERT INTO plan_words (tenant_id, plan_id, words)
SELECT tenant_id, plan_id, to_tsvector('simple', name || ' ' || research_question) FROM plans;
ALTER TABLE plans FORCE ROW LEVEL SECURITY;

-- As for the tables of the first schema: each tenant sees and writes its own rows.
ALTER TABLE plan_words ENABLE ROW LEVEL SECURITY;
ALTER TABLE plan_words FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON plan_words
    USING (tenant_id = NULLIF(current_setting('onward.tenant', true), ''))
    WITH CHECK (tenant_id = NULLIF(current_setting('onward.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON plan_words TO onward_tenant;

-- As for chunks: row security would never look into an index of words, so a function does, as the owner
-- of the table, and says the tenant itself. What it finds is looked up in a table that is guarded.
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

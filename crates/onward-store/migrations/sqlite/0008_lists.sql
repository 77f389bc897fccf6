-- Lists of plans by status and by full-text search, and lists of skill executions, without reading
-- all rows. Differs from PostgreSQL as the first schema does, and because the words are in a
-- separate index here, which triggers maintain.

-- Number of steps of a plan. Written only when it or the state of the plan changes, because an
-- index over it counts as changed whenever the column is set.
ALTER TABLE plans ADD COLUMN steps integer NOT NULL DEFAULT 0;
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
    words_no integer PRIMARY KEY,
    tenant_id text NOT NULL,
    plan_id blob NOT NULL,
    UNIQUE (tenant_id, plan_id)
);
CREATE VIRTUAL TABLE plan_word_index USING fts5(words, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'");

-- Inserts both, so that no plan is without its words.
CREATE VIEW spelled_plans AS SELECT tenant_id, plan_id, '' AS words FROM plan_words;
CREATE TRIGGER plans_are_spelled INSTEAD OF INSERT ON spelled_plans
BEGIN
    INSERT INTO plan_words (tenant_id, plan_id) VALUES (NEW.tenant_id, NEW.plan_id);
    INSERT INTO plan_word_index (rowid, words) VALUES (last_insert_rowid(), NEW.words);
END;
CREATE TRIGGER words_go_with_their_plan AFTER DELETE ON plan_words
BEGIN
    DELETE FROM plan_word_index WHERE rowid = OLD.words_no;
END;

-- Existing plans: words as split by the database.
INSERT INTO spelled_plans (tenant_id, plan_id, words)
SELECT tenant_id, plan_id, name || ' ' || research_question FROM plans;

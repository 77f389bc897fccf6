-- Lists of plans by status and by words, and of skills, without reading all of them. Differs from PostgreSQL's as the
-- first schema does, and because the words stand in an index of their own here, which triggers keep.

-- How many steps a plan has. It is written when that or the plan's state changes, and at no other time:
-- an index over it counts as changed whenever the column is set.
ALTER TABLE plans ADD COLUMN steps integer NOT NULL DEFAULT 0;
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
    words_no integer PRIMARY KEY,
    tenant_id text NOT NULL,
    plan_id blob NOT NULL,
    UNIQUE (tenant_id, plan_id)
);
CREATE VIRTUAL TABLE plan_word_index USING fts5(words, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'");

-- Both at once, so that no plan is without its words.
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

-- Plans that are there already: their words as the database sees them.
INSERT INTO spelled_plans (tenant_id, plan_id, words)
SELECT tenant_id, plan_id, name || ' ' || research_question FROM plans;

-- Outputs of plans, and the full-text index of outputs and artifacts. Differs from PostgreSQL as
-- the first schema does, and because the words of a chunk are in a separate index here, which
-- triggers maintain.

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

-- The output that the feedback concerns, if any.
ALTER TABLE feedback ADD COLUMN output_id blob;

-- A chunk of the content of an artifact or output, in characters.
CREATE TABLE chunks (
    chunk_no integer PRIMARY KEY,
    tenant_id text NOT NULL,
    source_id blob NOT NULL,
    ordinal integer NOT NULL CHECK (ordinal >= 0),
    starts_at integer NOT NULL CHECK (starts_at >= 0),
    characters integer NOT NULL CHECK (characters > 0),
    UNIQUE (tenant_id, source_id, ordinal)
);

-- Words as normalized by the core, so there is nothing left to fold. The index contains no texts:
-- those are stored with the artifact or output.
CREATE VIRTUAL TABLE chunk_words USING fts5(title, body, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'");

-- Inserts both, so that no chunk is without its words.
CREATE VIEW spelled_chunks AS
    SELECT tenant_id, source_id, ordinal, starts_at, characters, '' AS title_words, '' AS words
    FROM chunks;
CREATE TRIGGER chunks_are_spelled INSTEAD OF INSERT ON spelled_chunks
BEGIN
    INSERT INTO chunks (tenant_id, source_id, ordinal, starts_at, characters)
    VALUES (NEW.tenant_id, NEW.source_id, NEW.ordinal, NEW.starts_at, NEW.characters);
    INSERT INTO chunk_words (rowid, title, body)
    VALUES (last_insert_rowid(), NEW.title_words, NEW.words);
END;
CREATE TRIGGER words_go_with_their_chunk AFTER DELETE ON chunks
BEGIN
    DELETE FROM chunk_words WHERE rowid = OLD.chunk_no;
END;

-- Artifacts stored before the index existed: one chunk each, with words as split by the database.
INSERT INTO spelled_chunks (tenant_id, source_id, ordinal, starts_at, characters, title_words, words)
SELECT tenant_id, artifact_id, 0, 0, min(length(content), 100000), title, substr(content, 1, 100000)
FROM artifacts WHERE length(content) > 0;

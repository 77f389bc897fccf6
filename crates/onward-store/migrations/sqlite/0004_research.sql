-- What plans deliver, and the words by which it and what was found or made are found again. Differs
-- from PostgreSQL's as the first schema does, and because the words of a chunk stand in an index of
-- their own here, which triggers keep as the chunks are.

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

-- Which output it was about, where it was about one.
ALTER TABLE feedback ADD COLUMN output_id blob;

-- A piece of an artifact's or an output's content, in characters.
CREATE TABLE chunks (
    chunk_no integer PRIMARY KEY,
    tenant_id text NOT NULL,
    source_id blob NOT NULL,
    ordinal integer NOT NULL CHECK (ordinal >= 0),
    starts_at integer NOT NULL CHECK (starts_at >= 0),
    characters integer NOT NULL CHECK (characters > 0),
    UNIQUE (tenant_id, source_id, ordinal)
);

-- The words as the core spells them, so there is nothing left to fold. It holds no texts: those
-- stand with the artifact or the output.
CREATE VIRTUAL TABLE chunk_words USING fts5(title, body, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'");

-- Both at once, so that no chunk is without its words.
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

-- What was kept before there was an index: a chunk each, of words as the database sees them.
INSERT INTO spelled_chunks (tenant_id, source_id, ordinal, starts_at, characters, title_words, words)
SELECT tenant_id, artifact_id, 0, 0, min(length(content), 100000), title, substr(content, 1, 100000)
FROM artifacts WHERE length(content) > 0;

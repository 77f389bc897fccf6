-- Outputs of plans, and the full-text index of outputs and artifacts. Differs from SQLite as the
-- first schema does, and because the words of a chunk are a column here.

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

-- The output that the feedback concerns, if any.
ALTER TABLE feedback ADD COLUMN output_id uuid;

-- A chunk of the content of an artifact or output, in characters, and its words as normalized by
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
-- The only index that does not begin with the tenant: a GIN index cannot, without an extension that
-- not every server has.
CREATE INDEX chunks_by_word ON chunks USING gin (words);

-- Artifacts stored before the index existed: one chunk each, with words as split by the database.
-- No tenant is set here, and the owner of the tables must see all rows.
ALTER TABLE artifacts NO FORCE ROW LEVEL SECURITY;
INSERT INTO chunks (tenant_id, source_id, ordinal, starts_at, characters, words)
SELECT tenant_id, artifact_id, 0, 0, least(length(content), 100000),
    setweight(to_tsvector('simple', title), 'A')
        || to_tsvector('simple', substr(content, 1, 100000))
FROM artifacts WHERE length(content) > 0;
ALTER TABLE artifacts FORCE ROW LEVEL SECURITY;

-- As for the tables of the first schema: each tenant reads and writes only its own rows.
DO $$
DECLARE
    guarded text;
    own text := $own$tenant_id = NULLIF(current_setting('onward.tenant', true), '')$own$;
BEGIN
    FOREACH guarded IN ARRAY ARRAY['outputs', 'chunks']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', guarded);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format('CREATE POLICY own_tenant ON %I USING (%s) WITH CHECK (%s)',
            guarded, own, own);
    END LOOP;
END;
$$;

GRANT SELECT, INSERT, UPDATE, DELETE ON outputs, chunks TO onward_tenant;

-- Row security is checked for each row before any function that might leak data from the row, so a
-- query under row security never uses a full-text index. Hence these two functions: they run as the
-- owner of the tables, who is exempted by a policy (and could disable row security anyway), and
-- filter by tenant themselves. Their results are joined with tables under row security.
DO $$
BEGIN
    EXECUTE format('CREATE POLICY owner_searches ON chunks FOR SELECT TO %I USING (true)', CURRENT_USER);
END;
$$;
CREATE FUNCTION onward_search(asked text, most bigint)
RETURNS TABLE (source_id uuid, starts_at bigint, characters bigint, rank double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT source_id, starts_at, characters,
        -ts_rank(words, to_tsquery('simple', asked), 1)::double precision AS rank
    FROM chunks
    WHERE tenant_id = NULLIF(current_setting('onward.tenant', true), '')
        AND words @@ to_tsquery('simple', asked)
    ORDER BY rank LIMIT most
$$;
CREATE FUNCTION onward_word_count(asked text, most bigint) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT count(*) FROM (
        SELECT ordinal FROM chunks
        WHERE tenant_id = NULLIF(current_setting('onward.tenant', true), '')
            AND words @@ to_tsquery('simple', asked)
        LIMIT most) AS holding
$$;
REVOKE EXECUTE ON FUNCTION onward_search(text, bigint), onward_word_count(text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION onward_search(text, bigint), onward_word_count(text, bigint)
    TO onward_tenant;

-- What plans deliver, and the words by which it and what was found or made are found again. Differs
-- from SQLite's as the first schema does, and because the words of a chunk are a column here.

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

-- Which output it was about, where it was about one.
ALTER TABLE feedback ADD COLUMN output_id uuid;

-- A piece of an artifact's or an output's content, in characters, and the words as the core spells
-- them: the dictionary `simple` leaves them as they are.
CREATE TABLE chunks (
    tenant_id text NOT NULL,
    source_id uuid NOT NULL,
    ordinal bigint NOT NULL CHECK (ordinal >= 0),
    starts_at bigint NOT NULL CHECK (starts_at >= 0),
    characters bigint NOT NULL CHECK (characters > 0),
    words tsvector NOT NULL,
    PRIMARY KEY (tenant_id, source_id, ordinal)
);
-- The only index that does not begin with the tenant: an index of words cannot, without an extension
-- that not every server has.
CREATE INDEX chunks_by_word ON chunks USING gin (words);

-- What was kept before there was an index: a chunk each, of words as the database sees them. No tenant
-- is set here, and the owner of the tables must see them all.
ALTER TABLE artifacts NO FORCE ROW LEVEL SECURITY;
INSERT INTO chunks (tenant_id, source_id, ordinal, starts_at, characters, words)
SELECT tenant_id, artifact_id, 0, 0, least(length(content), 100000),
    setweight(to_tsvector('simple', title), 'A')
        || to_tsvector('simple', substr(content, 1, 100000))
FROM artifacts WHERE length(content) > 0;
ALTER TABLE artifacts FORCE ROW LEVEL SECURITY;

-- As for the tables of the first schema: each tenant sees and writes its own rows.
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

-- Row security asks each row before it asks anything that might tell of the row, and so it would never
-- look into an index of words. Hence these two: they run as the owner of the tables, who is let
-- through (and could lift the guard anyway), and say the tenant themselves. What they find is looked
-- up in tables that are guarded.
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

-- Embeddings of chunks, and data that models extracted from texts. Differs from SQLite as the first
-- schema does, and because signs are bits here, which the server can compare.

-- One row for every chunk: the model that embedded it, and the sign bit of each dimension. Narrow,
-- because a search scans all rows of a tenant. A chunk that no model has embedded has an empty
-- `model`; one that its model rejected has an empty sign.
CREATE TABLE chunk_signs (
    tenant_id text NOT NULL,
    source_id uuid NOT NULL,
    ordinal bigint NOT NULL CHECK (ordinal >= 0),
    model text NOT NULL DEFAULT '',
    sign bit varying NOT NULL DEFAULT B'',
    CHECK (model <> '' OR length(sign) = 0),
    PRIMARY KEY (tenant_id, source_id, ordinal)
);
-- The embedding queue: chunks that the current model has not embedded.
CREATE INDEX chunk_signs_by_model ON chunk_signs (tenant_id, model);

-- The complete vectors, read for the few chunks with near signs.
CREATE TABLE vectors (
    tenant_id text NOT NULL,
    source_id uuid NOT NULL,
    ordinal bigint NOT NULL,
    vector bytea NOT NULL CHECK (length(vector) > 0),
    PRIMARY KEY (tenant_id, source_id, ordinal)
);
-- Vectors are close to random: compressing them takes time and saves nothing.
ALTER TABLE vectors ALTER COLUMN vector SET STORAGE EXTERNAL;

-- No tenant is set here, and the owner of the tables must see all rows.
ALTER TABLE chunks NO FORCE ROW LEVEL SECURITY;
INSERT INTO chunk_signs (tenant_id, source_id, ordinal)
SELECT tenant_id, source_id, ordinal FROM chunks;
ALTER TABLE chunks FORCE ROW LEVEL SECURITY;

-- They run with the rights of the caller that changes the chunks, and so for one tenant.
CREATE FUNCTION onward_chunk_waits() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO chunk_signs (tenant_id, source_id, ordinal)
    VALUES (NEW.tenant_id, NEW.source_id, NEW.ordinal);
    RETURN NULL;
END;
$$;
CREATE FUNCTION onward_chunk_goes() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM chunk_signs
    WHERE tenant_id = OLD.tenant_id AND source_id = OLD.source_id AND ordinal = OLD.ordinal;
    DELETE FROM vectors
    WHERE tenant_id = OLD.tenant_id AND source_id = OLD.source_id AND ordinal = OLD.ordinal;
    RETURN NULL;
END;
$$;
CREATE TRIGGER chunks_wait_for_a_model AFTER INSERT ON chunks
FOR EACH ROW EXECUTE FUNCTION onward_chunk_waits();
CREATE TRIGGER meaning_goes_with_its_chunk AFTER DELETE ON chunks
FOR EACH ROW EXECUTE FUNCTION onward_chunk_goes();

-- Data that a model extracted from a text according to a schema. It belongs to the plan of its
-- artifact.
CREATE TABLE extractions (
    tenant_id text NOT NULL,
    extraction_id uuid NOT NULL,
    artifact_id uuid,
    schema text NOT NULL,
    instructions text,
    data text NOT NULL,
    valid bigint NOT NULL CHECK (valid IN (0, 1)),
    issues text NOT NULL,
    model text NOT NULL,
    actor text NOT NULL,
    created_at bigint NOT NULL,
    CHECK (valid = 0 OR issues = '[]'),
    PRIMARY KEY (tenant_id, extraction_id)
);
CREATE INDEX extractions_by_artifact ON extractions (tenant_id, artifact_id)
WHERE artifact_id IS NOT NULL;

-- As for the tables of the first schema: each tenant reads and writes only its own rows.
DO $$
DECLARE
    guarded text;
    own text := $own$tenant_id = NULLIF(current_setting('onward.tenant', true), '')$own$;
BEGIN
    FOREACH guarded IN ARRAY ARRAY['chunk_signs', 'vectors', 'extractions']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', guarded);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format('CREATE POLICY own_tenant ON %I USING (%s) WITH CHECK (%s)',
            guarded, own, own);
    END LOOP;
END;
$$;

GRANT SELECT, INSERT, UPDATE, DELETE ON chunk_signs, vectors, extractions TO onward_tenant;

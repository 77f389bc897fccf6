-- Embeddings of chunks, and data that models extracted from texts. Differs from PostgreSQL as the
-- first schema does, and because signs are bytes here.

-- One row for every chunk: the model that embedded it, and the sign bit of each dimension. Narrow,
-- because a search scans all rows of a tenant. A chunk that no model has embedded has an empty
-- `model`; one that its model rejected has an empty sign.
CREATE TABLE chunk_signs (
    tenant_id text NOT NULL,
    source_id blob NOT NULL,
    ordinal integer NOT NULL CHECK (ordinal >= 0),
    model text NOT NULL DEFAULT '',
    sign blob NOT NULL DEFAULT x'',
    CHECK (model <> '' OR length(sign) = 0),
    PRIMARY KEY (tenant_id, source_id, ordinal)
) WITHOUT ROWID;
-- The embedding queue: chunks that the current model has not embedded.
CREATE INDEX chunk_signs_by_model ON chunk_signs (tenant_id, model);

-- The complete vectors, read for the few chunks with near signs.
CREATE TABLE vectors (
    tenant_id text NOT NULL,
    source_id blob NOT NULL,
    ordinal integer NOT NULL,
    vector blob NOT NULL CHECK (length(vector) > 0),
    PRIMARY KEY (tenant_id, source_id, ordinal)
);

CREATE TRIGGER chunks_wait_for_a_model AFTER INSERT ON chunks
BEGIN
    INSERT INTO chunk_signs (tenant_id, source_id, ordinal)
    VALUES (NEW.tenant_id, NEW.source_id, NEW.ordinal);
END;
CREATE TRIGGER meaning_goes_with_its_chunk AFTER DELETE ON chunks
BEGIN
    DELETE FROM chunk_signs
    WHERE tenant_id = OLD.tenant_id AND source_id = OLD.source_id AND ordinal = OLD.ordinal;
    DELETE FROM vectors
    WHERE tenant_id = OLD.tenant_id AND source_id = OLD.source_id AND ordinal = OLD.ordinal;
END;

INSERT INTO chunk_signs (tenant_id, source_id, ordinal)
SELECT tenant_id, source_id, ordinal FROM chunks;

-- Data that a model extracted from a text according to a schema. It belongs to the plan of its
-- artifact.
CREATE TABLE extractions (
    tenant_id text NOT NULL,
    extraction_id blob NOT NULL,
    artifact_id blob,
    schema text NOT NULL,
    instructions text,
    data text NOT NULL,
    valid integer NOT NULL CHECK (valid IN (0, 1)),
    issues text NOT NULL,
    model text NOT NULL,
    actor text NOT NULL,
    created_at integer NOT NULL,
    CHECK (valid = 0 OR issues = '[]'),
    PRIMARY KEY (tenant_id, extraction_id)
);
CREATE INDEX extractions_by_artifact ON extractions (tenant_id, artifact_id)
WHERE artifact_id IS NOT NULL;

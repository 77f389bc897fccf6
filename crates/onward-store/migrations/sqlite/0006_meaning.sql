-- What chunks mean, as a model sees it, and what models took out of texts. Differs from PostgreSQL's as
-- the first schema does, and because signs are bytes here.

-- One row for every chunk: which model has seen it, and on which side of zero each of its numbers lies.
-- Narrow, because all of a tenant's are looked through by a search. A chunk that no model has seen has
-- an empty `model`; one that its model refused has an empty sign.
CREATE TABLE chunk_signs (
    tenant_id text NOT NULL,
    source_id blob NOT NULL,
    ordinal integer NOT NULL CHECK (ordinal >= 0),
    model text NOT NULL DEFAULT '',
    sign blob NOT NULL DEFAULT x'',
    CHECK (model <> '' OR length(sign) = 0),
    PRIMARY KEY (tenant_id, source_id, ordinal)
) WITHOUT ROWID;
-- What waits: whatever the model of today has not seen.
CREATE INDEX chunk_signs_by_model ON chunk_signs (tenant_id, model);

-- All of its numbers, for the few chunks whose signs are near.
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

-- What a model took out of a text, as a schema asks for it. It belongs to a plan where its artifact does.
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

-- By what whoever holds signs in memory knows that they are still those of the file, and a way to the
-- extractions that nothing but their age leads to. Differs from PostgreSQL's because the server holds its
-- own pages.

-- How often the signs of a tenant have changed.
CREATE TABLE sign_changes (
    tenant_id text NOT NULL,
    changes integer NOT NULL CHECK (changes > 0),
    PRIMARY KEY (tenant_id)
) WITHOUT ROWID;
INSERT INTO sign_changes (tenant_id, changes) SELECT DISTINCT tenant_id, 1 FROM chunk_signs;

-- A chunk that no model has seen has no sign, and changes none.
CREATE TRIGGER sign_is_there AFTER INSERT ON chunk_signs WHEN NEW.model <> ''
BEGIN
    INSERT INTO sign_changes (tenant_id, changes) VALUES (NEW.tenant_id, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER sign_is_another AFTER UPDATE ON chunk_signs
BEGIN
    INSERT INTO sign_changes (tenant_id, changes) VALUES (NEW.tenant_id, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER sign_is_gone AFTER DELETE ON chunk_signs WHEN OLD.model <> ''
BEGIN
    INSERT INTO sign_changes (tenant_id, changes) VALUES (OLD.tenant_id, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET changes = changes + 1;
END;

CREATE INDEX extractions_without_artifact ON extractions (tenant_id, created_at)
WHERE artifact_id IS NULL;

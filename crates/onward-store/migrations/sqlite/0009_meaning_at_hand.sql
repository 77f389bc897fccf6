-- Change counts that validate the sign-bit cache of a process, and an index for extractions that
-- are found only by their age. Differs from PostgreSQL because a server caches its own pages.

-- Number of changes to the signs of a tenant.
CREATE TABLE sign_changes (
    tenant_id text NOT NULL,
    changes integer NOT NULL CHECK (changes > 0),
    PRIMARY KEY (tenant_id)
) WITHOUT ROWID;
INSERT INTO sign_changes (tenant_id, changes) SELECT DISTINCT tenant_id, 1 FROM chunk_signs;

-- A chunk that no model has embedded has no sign, and does not change the count.
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

-- A way to the extractions that nothing but their age leads to. Differs from SQLite's because nothing of
-- the index is held in this program's memory here.

CREATE INDEX extractions_without_artifact ON extractions (tenant_id, created_at)
WHERE artifact_id IS NULL;

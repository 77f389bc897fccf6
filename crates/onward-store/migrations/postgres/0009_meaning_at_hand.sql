-- An index for extractions that are found only by their age. Differs from SQLite because this
-- program has no sign-bit cache here.

CREATE INDEX extractions_without_artifact ON extractions (tenant_id, created_at)
WHERE artifact_id IS NULL;

-- Data that models extracted from texts.

-- fragment: extraction
extractions.extraction_id, extractions.artifact_id, extractions.schema, extractions.instructions,
extractions.data, extractions.valid, extractions.issues, extractions.model, extractions.actor,
extractions.created_at

-- name: extraction_insert
INSERT INTO extractions (tenant_id, extraction_id, artifact_id, schema, instructions, data, valid,
    issues, model, actor, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: extraction
SELECT {extraction} FROM extractions WHERE tenant_id = $1 AND extraction_id = $2;

-- name: extractions_page
SELECT {extraction}, CAST(CASE WHEN artifact_id IS NULL OR EXISTS (
        SELECT 1 FROM artifacts
        WHERE artifacts.tenant_id = $1 AND artifacts.artifact_id = extractions.artifact_id)
    THEN 0 ELSE 1 END AS bigint) AS lost
FROM extractions WHERE tenant_id = $1 AND extraction_id > $2 ORDER BY extraction_id LIMIT $3;

-- name: extractions_count_before
-- Extractions from text that came with the call: nothing else references them.
SELECT CAST(count(*) AS bigint) AS extractions FROM extractions
WHERE tenant_id = $1 AND artifact_id IS NULL AND created_at < $2;

-- name: extractions_delete_before
DELETE FROM extractions WHERE tenant_id = $1 AND artifact_id IS NULL AND created_at < $2;

-- name: extractions_of_plan
-- Extractions from the artifacts of a plan, oldest first.
SELECT {extraction} FROM artifacts
    JOIN extractions ON extractions.tenant_id = $1 AND extractions.artifact_id = artifacts.artifact_id
WHERE artifacts.tenant_id = $1 AND artifacts.plan_id = $2
ORDER BY extractions.created_at, extractions.extraction_id LIMIT $3 OFFSET $4;

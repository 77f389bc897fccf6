-- What models took out of texts.

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

-- name: extractions_of_plan
-- Those from artifacts that belong to it, the oldest first.
SELECT {extraction} FROM artifacts
    JOIN extractions ON extractions.tenant_id = $1 AND extractions.artifact_id = artifacts.artifact_id
WHERE artifacts.tenant_id = $1 AND artifacts.plan_id = $2
ORDER BY extractions.created_at, extractions.extraction_id LIMIT $3;

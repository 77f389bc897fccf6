-- Artifacts.

-- fragment: artifact
artifact_id, plan_id, step_id, artifact_type, title, content, source_url, metadata, created_at

-- name: artifact
SELECT {artifact} FROM artifacts WHERE tenant_id = $1 AND artifact_id = $2;

-- name: artifact_text
-- `$3` is the position of the first character, from 1; `$4` the number of characters.
SELECT title, substr(content, CAST(CAST($3 AS bigint) AS integer),
    CAST(CAST($4 AS bigint) AS integer)) AS content, CAST(length(content) AS bigint) AS characters
FROM artifacts WHERE tenant_id = $1 AND artifact_id = $2;

-- name: artifacts_of_plan
SELECT {artifact} FROM artifacts
WHERE tenant_id = $1 AND plan_id = $2 ORDER BY created_at, artifact_id LIMIT $3 OFFSET $4;

-- name: artifacts_page
SELECT {artifact} FROM artifacts
WHERE tenant_id = $1 AND artifact_id > $2 ORDER BY artifact_id LIMIT $3;

-- name: artifact_adopt
-- Attaches an artifact that outlived its plan to that plan again.
UPDATE artifacts SET plan_id = $3, step_id = $4
WHERE tenant_id = $1 AND artifact_id = $2 AND plan_id IS NULL;

-- name: artifact_insert
INSERT INTO artifacts (tenant_id, artifact_id, plan_id, step_id, artifact_type, title, content,
    source_url, metadata, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: artifact_delete
DELETE FROM artifacts WHERE tenant_id = $1 AND artifact_id = $2;

-- name: artifacts_orphan
-- Artifacts remain when their plan is deleted.
UPDATE artifacts SET plan_id = NULL, step_id = NULL WHERE tenant_id = $1 AND plan_id = $2;

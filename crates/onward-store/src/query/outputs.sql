-- Outputs of plans, in versions.

-- fragment: output
output_id, plan_id, title, version, media_type, content, actor, created_at

-- name: output_insert
INSERT INTO outputs (tenant_id, output_id, plan_id, title, version, media_type, content, actor,
    created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: output_plan
SELECT output_id, plan_id FROM outputs WHERE tenant_id = $1 AND output_id = $2;

-- name: output
SELECT {output} FROM outputs WHERE tenant_id = $1 AND output_id = $2;

-- name: output_text
-- Like `artifact_text`.
SELECT title, substr(content, CAST(CAST($3 AS bigint) AS integer),
    CAST(CAST($4 AS bigint) AS integer)) AS content, CAST(length(content) AS bigint) AS characters
FROM outputs WHERE tenant_id = $1 AND output_id = $2;

-- name: output_last_version
SELECT CAST(coalesce(max(version), 0) AS bigint) AS version FROM outputs
WHERE tenant_id = $1 AND plan_id = $2 AND title = $3;

-- name: output_versions
-- All versions of an output, newest first, without their contents.
SELECT output_id, version, actor, created_at FROM outputs
WHERE tenant_id = $1 AND plan_id = $2 AND title = $3 ORDER BY version DESC LIMIT $4;

-- name: outputs_of_plan
SELECT {output} FROM outputs
WHERE tenant_id = $1 AND plan_id = $2 ORDER BY created_at, title, version LIMIT $3 OFFSET $4;

-- name: outputs_page
SELECT {output} FROM outputs
WHERE tenant_id = $1 AND output_id > $2 ORDER BY output_id LIMIT $3;

-- name: outputs_delete
DELETE FROM outputs WHERE tenant_id = $1 AND plan_id = $2;

-- name: output_excerpts
-- The last version of each output, newest first. The rows are selected before any content is read.
SELECT output_id, title, version, media_type, substr(content, 1, 500) AS excerpt,
    CAST(octet_length(content) AS bigint) AS content_bytes, created_at
FROM outputs
WHERE tenant_id = $1 AND output_id IN (
    SELECT output_id FROM outputs AS last WHERE tenant_id = $1 AND plan_id = $2 AND version = (
        SELECT max(version) FROM outputs AS other
        WHERE other.tenant_id = $1 AND other.plan_id = $2 AND other.title = last.title)
    ORDER BY created_at DESC, output_id DESC LIMIT $3)
ORDER BY created_at DESC, output_id DESC;

-- name: outputs_latest
-- The last version of each output of all plans, newest first. The rows are selected before any
-- content is read.
SELECT plan_id, output_id, title, version, media_type, substr(content, 1, 500) AS excerpt,
    CAST(octet_length(content) AS bigint) AS content_bytes, created_at
FROM outputs
WHERE tenant_id = $1 AND output_id IN (
    SELECT output_id FROM outputs AS last WHERE tenant_id = $1 AND version = (
        SELECT max(version) FROM outputs AS other WHERE other.tenant_id = $1
            AND other.plan_id = last.plan_id AND other.title = last.title)
    ORDER BY created_at DESC, output_id DESC LIMIT $2)
ORDER BY created_at DESC, output_id DESC;

-- Embeddings: sign bits of all chunks, and the vectors of the nearest ones.

-- name: near (sqlite)
-- Differs because this program compares the signs here. The signs of a model for the matching
-- chunks; `$3` and `$4` are used on PostgreSQL only. The plus prevents the use of the queue's
-- index, because almost all rows are needed.
SELECT source_id, ordinal, sign FROM chunk_signs
WHERE tenant_id = $1 AND +model = $2 AND ($5 = 0 OR source_id IN (
    SELECT artifact_id FROM artifacts WHERE tenant_id = $1
        AND ($6 IS NULL OR plan_id = $6) AND ($7 IS NULL OR artifact_type = $7)
        AND ($8 IS NULL OR created_at >= $8) AND ($9 IS NULL OR created_at < $9)
    UNION ALL
    SELECT output_id FROM outputs WHERE tenant_id = $1
        AND ($6 IS NULL OR plan_id = $6) AND $7 IS NULL
        AND ($8 IS NULL OR created_at >= $8) AND ($9 IS NULL OR created_at < $9)
    UNION ALL
    SELECT step_id FROM results WHERE tenant_id = $1
        AND ($6 IS NULL OR plan_id = $6) AND ($7 IS NULL OR $7 = 'result')
        AND ($8 IS NULL OR created_at >= $8) AND ($9 IS NULL OR created_at < $9)));

-- name: sign_changes (sqlite)
-- Differs because only SQLite has a sign-bit cache in this program. Validates that cache.
SELECT changes FROM sign_changes WHERE tenant_id = $1;

-- name: near (postgres)
-- Differs because the server compares the signs here. The vectors of the `$4` matching chunks whose
-- signs are nearest to `$3`.
WITH near AS MATERIALIZED (
    SELECT source_id, ordinal FROM chunk_signs
    WHERE tenant_id = $1 AND model = $2
        AND length(sign) = length(CAST(CAST($3 AS text) AS bit varying))
        AND ($5::bigint = 0 OR source_id IN (
            SELECT artifact_id FROM artifacts WHERE tenant_id = $1
                AND ($6::uuid IS NULL OR plan_id = $6) AND ($7::text IS NULL OR artifact_type = $7)
                AND ($8::bigint IS NULL OR created_at >= $8)
                AND ($9::bigint IS NULL OR created_at < $9)
            UNION ALL
            SELECT output_id FROM outputs WHERE tenant_id = $1
                AND ($6::uuid IS NULL OR plan_id = $6) AND $7::text IS NULL
                AND ($8::bigint IS NULL OR created_at >= $8)
                AND ($9::bigint IS NULL OR created_at < $9)
            UNION ALL
            SELECT step_id FROM results WHERE tenant_id = $1
                AND ($6::uuid IS NULL OR plan_id = $6) AND ($7::text IS NULL OR $7 = 'result')
                AND ($8::bigint IS NULL OR created_at >= $8)
                AND ($9::bigint IS NULL OR created_at < $9)))
    ORDER BY bit_count(sign # CAST(CAST($3 AS text) AS bit varying)), source_id, ordinal LIMIT $4)
SELECT near.source_id, near.ordinal, vectors.vector
FROM near JOIN vectors ON vectors.tenant_id = $1 AND vectors.source_id = near.source_id
    AND vectors.ordinal = near.ordinal;

-- name: near_by_index (postgres)
-- Differs because only a server can have a sign-bit index. The same for all chunks of a tenant, by
-- that index; no rows if there is none.
SELECT source_id, ordinal, vector FROM onward_near($1, $2, $3, $4);

-- name: many_signs (postgres)
-- Differs because only a server can have a sign-bit index. Length of the signs of a model for the
-- chunks of a tenant, and their number, counted up to `$3`.
SELECT CAST(length(sign) AS bigint) AS width, CAST(count(*) AS bigint) AS chunks FROM (
    SELECT sign FROM chunk_signs WHERE tenant_id = $1 AND model = $2 AND length(sign) > 0
    LIMIT $3) AS counted
GROUP BY 1 ORDER BY 2 DESC LIMIT 1;

-- name: vector
SELECT vector FROM vectors WHERE tenant_id = $1 AND source_id = $2 AND ordinal = $3;

-- name: near_hit
-- The artifact, output or result of a chunk.
SELECT chunks.source_id AS source_id, CAST(0 AS bigint) AS source,
    chunks.starts_at AS starts_at, chunks.characters AS characters, found.title AS title,
    found.artifact_type AS artifact_type, found.plan_id AS plan_id, found.source_url AS source_url, CAST(NULL AS double precision) AS rank,
    found.created_at AS created_at
FROM chunks JOIN artifacts AS found ON found.tenant_id = $1 AND found.artifact_id = chunks.source_id
WHERE chunks.tenant_id = $1 AND chunks.source_id = $2 AND chunks.ordinal = $3
UNION ALL
SELECT chunks.source_id, CAST(1 AS bigint), chunks.starts_at, chunks.characters, found.title, NULL, found.plan_id,
    NULL, NULL, found.created_at
FROM chunks JOIN outputs AS found ON found.tenant_id = $1 AND found.output_id = chunks.source_id
WHERE chunks.tenant_id = $1 AND chunks.source_id = $2 AND chunks.ordinal = $3
UNION ALL
SELECT chunks.source_id, CAST(2 AS bigint), chunks.starts_at, chunks.characters, found.title, 'result',
    found.plan_id, NULL, NULL, found.created_at
FROM chunks JOIN results AS found ON found.tenant_id = $1 AND found.step_id = chunks.source_id
WHERE chunks.tenant_id = $1 AND chunks.source_id = $2 AND chunks.ordinal = $3;

-- name: chunks_waiting
-- Chunks that this model has not embedded, with their texts.
WITH waiting AS (
    SELECT source_id, ordinal FROM (
        SELECT source_id, ordinal FROM chunk_signs
        WHERE tenant_id = $1 AND model < $2 LIMIT $3) AS others
    UNION ALL
    SELECT source_id, ordinal FROM (
        SELECT source_id, ordinal FROM chunk_signs
        WHERE tenant_id = $1 AND model > $2 LIMIT $3) AS others)
SELECT waiting.source_id AS source_id, waiting.ordinal AS ordinal,
    coalesce(artifacts.title, outputs.title, results.title) AS title,
    substr(coalesce(artifacts.content, outputs.content, results.content), CAST(chunks.starts_at + 1 AS integer),
        CAST(chunks.characters AS integer)) AS piece
FROM waiting
    JOIN chunks ON chunks.tenant_id = $1 AND chunks.source_id = waiting.source_id
        AND chunks.ordinal = waiting.ordinal
    LEFT JOIN artifacts ON artifacts.tenant_id = $1 AND artifacts.artifact_id = waiting.source_id
    LEFT JOIN outputs ON outputs.tenant_id = $1 AND outputs.output_id = waiting.source_id
    LEFT JOIN results ON results.tenant_id = $1 AND results.step_id = waiting.source_id
LIMIT $3;

-- name: sign_set (sqlite)
-- Differs because signs are bytes here.
UPDATE chunk_signs SET model = $4, sign = $5
WHERE tenant_id = $1 AND source_id = $2 AND ordinal = $3;

-- name: sign_set (postgres)
-- Differs because signs are bits here.
UPDATE chunk_signs SET model = $4, sign = CAST(CAST($5 AS text) AS bit varying)
WHERE tenant_id = $1 AND source_id = $2 AND ordinal = $3;

-- name: vector_put
-- Only if the chunk still exists.
INSERT INTO vectors (tenant_id, source_id, ordinal, vector)
SELECT tenant_id, source_id, ordinal, $4 FROM chunk_signs
WHERE tenant_id = $1 AND source_id = $2 AND ordinal = $3
ON CONFLICT (tenant_id, source_id, ordinal) DO UPDATE SET vector = excluded.vector;

-- name: vector_drop
DELETE FROM vectors WHERE tenant_id = $1 AND source_id = $2 AND ordinal = $3;

-- name: chunks_by_model
-- Number of chunks embedded by each model, and how many of them it rejected.
SELECT model, CAST(count(*) AS bigint) AS chunks,
    CAST(sum(CASE WHEN model <> '' AND length(sign) = 0 THEN 1 ELSE 0 END) AS bigint) AS refused
FROM chunk_signs WHERE tenant_id = $1 GROUP BY model ORDER BY model;

-- name: chunks_delete_lost
-- Chunks whose artifact, output or result is missing.
DELETE FROM chunks WHERE tenant_id = $1 AND NOT EXISTS (
        SELECT 1 FROM artifacts
        WHERE artifacts.tenant_id = $1 AND artifacts.artifact_id = chunks.source_id)
    AND NOT EXISTS (
        SELECT 1 FROM outputs WHERE outputs.tenant_id = $1 AND outputs.output_id = chunks.source_id)
    AND NOT EXISTS (
        SELECT 1 FROM results WHERE results.tenant_id = $1 AND results.step_id = chunks.source_id);

-- name: signs_delete_lost
DELETE FROM chunk_signs WHERE tenant_id = $1 AND NOT EXISTS (
    SELECT 1 FROM chunks WHERE chunks.tenant_id = $1
        AND chunks.source_id = chunk_signs.source_id AND chunks.ordinal = chunk_signs.ordinal);

-- name: vectors_delete_lost
DELETE FROM vectors WHERE tenant_id = $1 AND NOT EXISTS (
    SELECT 1 FROM chunks WHERE chunks.tenant_id = $1
        AND chunks.source_id = vectors.source_id AND chunks.ordinal = vectors.ordinal);

-- name: chunks_delete_of_source (sqlite)
-- Differs because a trigger of SQLite deletes signs and vectors.
DELETE FROM chunks WHERE tenant_id = $1 AND source_id = $2;

-- name: chunks_delete_of_source (postgres)
-- Differs because a table without triggers can be distributed.
WITH chunk AS (DELETE FROM chunks WHERE tenant_id = $1 AND source_id = $2),
sign AS (DELETE FROM chunk_signs WHERE tenant_id = $1 AND source_id = $2)
DELETE FROM vectors WHERE tenant_id = $1 AND source_id = $2;

-- name: sources_page
-- Everything that is indexed: artifacts, the last version of each output, and results.
SELECT artifact_id AS source_id, title, content FROM artifacts
WHERE tenant_id = $1 AND artifact_id > $2
UNION ALL
SELECT output_id, title, content FROM outputs
WHERE tenant_id = $1 AND output_id > $2 AND version = (
    SELECT max(version) FROM outputs AS other
    WHERE other.tenant_id = $1 AND other.plan_id = outputs.plan_id AND other.title = outputs.title)
UNION ALL
SELECT step_id, title, content FROM results WHERE tenant_id = $1 AND step_id > $2
ORDER BY source_id LIMIT $3;

-- Chunks of artifacts, outputs and results, with their full-text index.

-- name: chunk_insert (sqlite)
-- Differs because the words are in a separate index here.
INSERT INTO indexed_chunks (tenant_id, source_id, ordinal, starts_at, characters, title_words, words)
VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: chunk_insert (postgres)
-- Differs because the words are a column here, and because a trigger of SQLite inserts the sign.
WITH chunk AS (
    INSERT INTO chunks (tenant_id, source_id, ordinal, starts_at, characters, words)
    VALUES ($1, $2, $3, $4, $5, setweight(to_tsvector('simple', CAST($6 AS text)), 'A')
        || to_tsvector('simple', CAST($7 AS text))))
INSERT INTO chunk_signs (tenant_id, source_id, ordinal) VALUES ($1, $2, $3);

-- fragment: of_outputs
tenant_id = $1 AND source_id IN (
    SELECT output_id FROM outputs WHERE tenant_id = $1 AND plan_id = $2)

-- fragment: of_results
tenant_id = $1 AND source_id IN (
    SELECT step_id FROM results WHERE tenant_id = $1 AND plan_id = $2)

-- fragment: of_versions
tenant_id = $1 AND source_id IN (
    SELECT output_id FROM outputs WHERE tenant_id = $1 AND plan_id = $2 AND title = $3)

-- name: chunks_delete_of_outputs (sqlite)
-- Differs because a trigger of SQLite deletes signs and vectors.
DELETE FROM chunks WHERE {of_outputs};

-- name: chunks_delete_of_outputs (postgres)
-- Differs because a table without triggers can be distributed.
WITH chunk AS (DELETE FROM chunks WHERE {of_outputs}),
sign AS (DELETE FROM chunk_signs WHERE {of_outputs})
DELETE FROM vectors WHERE {of_outputs};

-- name: chunks_delete_of_results (sqlite)
-- Differs for the same reason.
DELETE FROM chunks WHERE {of_results};

-- name: chunks_delete_of_results (postgres)
-- Differs for the same reason.
WITH chunk AS (DELETE FROM chunks WHERE {of_results}),
sign AS (DELETE FROM chunk_signs WHERE {of_results})
DELETE FROM vectors WHERE {of_results};

-- name: chunks_delete_of_versions (sqlite)
-- Differs for the same reason. Only the last version of an output is indexed.
DELETE FROM chunks WHERE {of_versions};

-- name: chunks_delete_of_versions (postgres)
-- Differs for the same reason. Only the last version of an output is indexed.
WITH chunk AS (DELETE FROM chunks WHERE {of_versions}),
sign AS (DELETE FROM chunk_signs WHERE {of_versions})
DELETE FROM vectors WHERE {of_versions};

-- name: word_count (sqlite)
-- Differs because the words are in a separate index here. Number of chunks that contain a word,
-- counted up to `$3`.
SELECT count(*) AS chunks FROM (
    SELECT chunks.chunk_no FROM chunk_words CROSS JOIN chunks ON chunks.chunk_no = chunk_words.rowid
    WHERE chunk_words MATCH $2 AND chunks.tenant_id = $1 LIMIT $3);

-- name: word_count (postgres)
-- Differs because row security allows only a function to use the index. Number of chunks that
-- contain a word, counted up to `$3`.
SELECT onward_word_count($1, $2, $3) AS chunks;

-- name: search (sqlite)
-- Differs because the ranking functions differ. Of the `$3` best chunks, the best one of each
-- matching artifact, output and result.
WITH hits AS MATERIALIZED (
    SELECT rowid AS chunk_no, rank AS rank FROM chunk_words
    WHERE chunk_words MATCH $2 AND rank MATCH 'bm25(4.0, 1.0)' ORDER BY rank LIMIT $3),
best AS MATERIALIZED (
    SELECT chunks.source_id, chunks.starts_at, chunks.characters, min(hits.rank) AS rank
    FROM hits CROSS JOIN chunks ON chunks.chunk_no = hits.chunk_no
    WHERE chunks.tenant_id = $1 GROUP BY chunks.source_id)
SELECT best.source_id AS source_id, 0 AS source, best.starts_at AS starts_at,
    best.characters AS characters, found.title AS title, found.artifact_type AS artifact_type,
    found.plan_id AS plan_id, found.source_url AS source_url, best.rank AS rank,
    found.created_at AS created_at
FROM best CROSS JOIN artifacts AS found ON found.tenant_id = $1 AND found.artifact_id = best.source_id
WHERE ($4 IS NULL OR found.plan_id = $4) AND ($5 IS NULL OR found.artifact_type = $5)
    AND ($6 IS NULL OR found.created_at >= $6) AND ($7 IS NULL OR found.created_at < $7)
UNION ALL
SELECT best.source_id, 1, best.starts_at, best.characters, found.title, NULL, found.plan_id, NULL,
    best.rank, found.created_at
FROM best CROSS JOIN outputs AS found ON found.tenant_id = $1 AND found.output_id = best.source_id
WHERE ($4 IS NULL OR found.plan_id = $4) AND $5 IS NULL
    AND ($6 IS NULL OR found.created_at >= $6) AND ($7 IS NULL OR found.created_at < $7)
UNION ALL
SELECT best.source_id, 2, best.starts_at, best.characters, found.title, 'result', found.plan_id,
    NULL, best.rank, found.created_at
FROM best CROSS JOIN results AS found ON found.tenant_id = $1 AND found.step_id = best.source_id
WHERE ($4 IS NULL OR found.plan_id = $4) AND ($5 IS NULL OR $5 = 'result')
    AND ($6 IS NULL OR found.created_at >= $6) AND ($7 IS NULL OR found.created_at < $7)
ORDER BY rank, created_at DESC, source_id LIMIT $8;

-- name: search (postgres)
-- Differs because the ranking functions differ, and because row security allows only a function to
-- use the index. Of the `$3` best chunks, the best one of each matching artifact, output and
-- result.
SELECT source_id, source, starts_at, characters, title, artifact_type, plan_id, source_url, rank,
    created_at
FROM onward_search($1, $2, $3, $4, $5, $6, $7, $8);

-- name: artifact_piece
SELECT artifact_id, substr(content, CAST(CAST($3 AS bigint) AS integer),
    CAST(CAST($4 AS bigint) AS integer)) AS piece
FROM artifacts WHERE tenant_id = $1 AND artifact_id = $2;

-- name: output_piece
SELECT output_id, substr(content, CAST(CAST($3 AS bigint) AS integer),
    CAST(CAST($4 AS bigint) AS integer)) AS piece
FROM outputs WHERE tenant_id = $1 AND output_id = $2;

-- name: result_piece
SELECT step_id, substr(content, CAST(CAST($3 AS bigint) AS integer),
    CAST(CAST($4 AS bigint) AS integer)) AS piece
FROM results WHERE tenant_id = $1 AND step_id = $2;

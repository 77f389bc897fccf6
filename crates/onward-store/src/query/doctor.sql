-- Integrity checks of `onward doctor`, and the clock of the database.

-- name: plans_page
SELECT plan_id FROM plans WHERE tenant_id = $1 AND plan_id > $2 ORDER BY plan_id LIMIT $3;

-- name: index_faults
-- Number of chunks, and inconsistencies of the search index.
SELECT 'chunks' AS what, CAST(count(*) AS bigint) AS many FROM chunks WHERE tenant_id = $1
UNION ALL
SELECT 'chunks without a source', CAST(count(*) AS bigint) FROM chunks
WHERE tenant_id = $1 AND NOT EXISTS (
        SELECT 1 FROM artifacts
        WHERE artifacts.tenant_id = $1 AND artifacts.artifact_id = chunks.source_id)
    AND NOT EXISTS (
        SELECT 1 FROM outputs WHERE outputs.tenant_id = $1 AND outputs.output_id = chunks.source_id)
    AND NOT EXISTS (
        SELECT 1 FROM results WHERE results.tenant_id = $1 AND results.step_id = chunks.source_id)
UNION ALL
SELECT 'chunks missing from the embedding queue', CAST(count(*) AS bigint) FROM chunks
WHERE tenant_id = $1 AND NOT EXISTS (
    SELECT 1 FROM chunk_signs AS beside WHERE beside.tenant_id = $1
        AND beside.source_id = chunks.source_id AND beside.ordinal = chunks.ordinal)
UNION ALL
SELECT 'signs without a chunk', CAST(count(*) AS bigint) FROM chunk_signs
WHERE tenant_id = $1 AND NOT EXISTS (
    SELECT 1 FROM chunks AS beside WHERE beside.tenant_id = $1
        AND beside.source_id = chunk_signs.source_id AND beside.ordinal = chunk_signs.ordinal)
UNION ALL
SELECT 'signs without a vector', CAST(count(*) AS bigint) FROM chunk_signs
WHERE tenant_id = $1 AND length(sign) > 0 AND NOT EXISTS (
    SELECT 1 FROM vectors AS beside WHERE beside.tenant_id = $1
        AND beside.source_id = chunk_signs.source_id AND beside.ordinal = chunk_signs.ordinal)
UNION ALL
SELECT 'vectors without a sign', CAST(count(*) AS bigint) FROM vectors
WHERE tenant_id = $1 AND NOT EXISTS (
    SELECT 1 FROM chunk_signs AS beside WHERE beside.tenant_id = $1
        AND beside.source_id = vectors.source_id AND beside.ordinal = vectors.ordinal
        AND length(beside.sign) > 0);

-- name: quick_check_begin (sqlite)
-- Differs because `quick_check` alone would use the full-text indexes as this connection last read
-- them, and report changes by other connections as damage. Reading the indexes first refreshes
-- them.
SELECT (SELECT rowid FROM chunk_words LIMIT 1) AS chunk_no,
    (SELECT rowid FROM plan_word_index LIMIT 1) AS words_no;

-- name: quick_check_begin (postgres)
-- Differs because the server checks its own files.
SELECT CAST(0 AS bigint) AS chunk_no, CAST(0 AS bigint) AS words_no;

-- name: quick_check (sqlite)
-- Differs because a database file can be damaged.
SELECT quick_check FROM pragma_quick_check;

-- name: quick_check (postgres)
-- Differs because the server checks its own files.
SELECT 'ok'::text AS quick_check;

-- name: clock (sqlite)
-- Differs because a file has no clock, and is used on one machine.
SELECT NULL AS at;

-- name: clock (postgres)
-- Differs because a server has a clock, the same for all machines that use it.
SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) AS at;

-- What `doctor` looks at, and what time it is.

-- name: plans_page
SELECT plan_id FROM plans WHERE tenant_id = $1 AND plan_id > $2 ORDER BY plan_id LIMIT $3;

-- name: index_faults
-- How many chunks there are, and how much of what stands beside them does not fit to them.
SELECT 'chunks' AS what, CAST(count(*) AS bigint) AS many FROM chunks WHERE tenant_id = $1
UNION ALL
SELECT 'chunks of nothing', CAST(count(*) AS bigint) FROM chunks
WHERE tenant_id = $1 AND NOT EXISTS (
        SELECT 1 FROM artifacts
        WHERE artifacts.tenant_id = $1 AND artifacts.artifact_id = chunks.source_id)
    AND NOT EXISTS (
        SELECT 1 FROM outputs WHERE outputs.tenant_id = $1 AND outputs.output_id = chunks.source_id)
UNION ALL
SELECT 'chunks that no model will see', CAST(count(*) AS bigint) FROM chunks
WHERE tenant_id = $1 AND NOT EXISTS (
    SELECT 1 FROM chunk_signs AS beside WHERE beside.tenant_id = $1
        AND beside.source_id = chunks.source_id AND beside.ordinal = chunks.ordinal)
UNION ALL
SELECT 'signs of no chunk', CAST(count(*) AS bigint) FROM chunk_signs
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
-- Differs because a check on its own would look at the indexes of words as this connection knew them,
-- and take for damage what others have rewritten since: looking into them makes them known anew.
SELECT (SELECT rowid FROM chunk_words LIMIT 1) AS chunk_no,
    (SELECT rowid FROM plan_word_index LIMIT 1) AS words_no;

-- name: quick_check_begin (postgres)
-- Differs because the server looks after its files.
SELECT CAST(0 AS bigint) AS chunk_no, CAST(0 AS bigint) AS words_no;

-- name: quick_check (sqlite)
-- Differs because a file can be damaged as a file.
SELECT quick_check FROM pragma_quick_check;

-- name: quick_check (postgres)
-- Differs because the server looks after its files.
SELECT 'ok'::text AS quick_check;

-- name: clock (sqlite)
-- Differs because a file has no clock of its own, and is used on one machine.
SELECT NULL AS at;

-- name: clock (postgres)
-- Differs because a server has a clock, the same for all machines that use it.
SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) AS at;

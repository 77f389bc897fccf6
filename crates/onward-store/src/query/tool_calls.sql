-- The request log: MCP tool calls.

-- name: tool_call_insert
INSERT INTO tool_calls (tenant_id, call_id, at, tool, actor, session, request, response,
    duration_us, is_error)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: tool_calls_latest
-- The latest calls between two instants.
SELECT call_id, at, tool, actor, session, request, response, duration_us, is_error FROM tool_calls
WHERE tenant_id = $1 AND at >= $2 AND at <= $3 ORDER BY at DESC, call_id DESC LIMIT $4;

-- name: tool_calls_count_before
-- Counted up to `$3`.
SELECT count(*) AS calls FROM (SELECT 1 FROM tool_calls
    WHERE tenant_id = $1 AND at < $2 LIMIT $3) AS old;

-- name: tool_calls_delete_before
-- The oldest ones, at most `$3`.
DELETE FROM tool_calls WHERE tenant_id = $1 AND (at, call_id) IN (SELECT old.at, old.call_id
    FROM tool_calls AS old WHERE old.tenant_id = $1 AND old.at < $2 ORDER BY old.at, old.call_id
    LIMIT $3);

-- name: tool_calls_bytes (sqlite)
-- Differs because SQLite does not store the size of a table. The average of the latest calls is used
-- for all of them; an index counts them.
SELECT CAST(coalesce((SELECT avg(octet_length(request) + octet_length(response) + 150) FROM
    (SELECT request, response FROM tool_calls WHERE tenant_id = $1 ORDER BY at DESC LIMIT 100)), 0)
    * (SELECT count(*) FROM tool_calls WHERE tenant_id = $1) AS integer) AS bytes;

-- name: tool_calls_bytes (postgres)
-- Differs because the server knows the size of a table: with its indexes, of all tenants.
SELECT pg_total_relation_size('tool_calls') AS bytes FROM (VALUES (CAST($1 AS text))) AS tenant;

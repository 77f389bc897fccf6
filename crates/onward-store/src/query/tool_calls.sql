-- The request log: MCP tool calls.

-- name: tool_call_insert
INSERT INTO tool_calls (tenant_id, call_id, at, tool, actor, session, request, response,
    duration_us, is_error)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: tool_calls_latest
SELECT call_id, at, tool, actor, session, request, response, duration_us, is_error FROM tool_calls
WHERE tenant_id = $1 ORDER BY at DESC, call_id DESC LIMIT $2;

-- name: tool_calls_count_before
SELECT count(*) AS calls FROM tool_calls WHERE tenant_id = $1 AND at < $2;

-- name: tool_calls_delete_before
DELETE FROM tool_calls WHERE tenant_id = $1 AND at < $2;

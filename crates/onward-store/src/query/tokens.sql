-- API tokens. The token itself is not stored, only its hash. Sessions of browsers that users ended.

-- fragment: token
token_id, prefix, name, role, created_at, expires_at, last_used_at, revoked_at

-- name: token_of_hash (sqlite)
-- Differs because there is no row security here. The tenant is found by the hash.
SELECT hash, tenant_id, token_id FROM token_hashes WHERE hash = $1;

-- name: token_of_hash (postgres)
-- Differs because row security allows only a function to read the rows of all tenants.
SELECT hash, tenant_id, token_id FROM onward_token_of_hash($1);

-- name: token_hash_insert
INSERT INTO token_hashes (hash, tenant_id, token_id) VALUES ($2, $1, $3);

-- name: token
SELECT {token} FROM tokens WHERE tenant_id = $1 AND token_id = $2;

-- name: tokens_all
SELECT {token} FROM tokens WHERE tenant_id = $1 ORDER BY created_at, token_id;

-- name: token_insert
INSERT INTO tokens (tenant_id, token_id, prefix, name, role, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: token_revoke
UPDATE tokens SET revoked_at = $3 WHERE tenant_id = $1 AND token_id = $2 AND revoked_at IS NULL;

-- name: sign_out
SELECT session_key FROM sign_outs WHERE tenant_id = $1 AND session_key = $2;

-- name: sign_out_insert
INSERT INTO sign_outs (tenant_id, session_key, expires_at) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, session_key) DO NOTHING;

-- name: sign_outs_delete_expired
DELETE FROM sign_outs WHERE tenant_id = $1 AND expires_at <= $2;

-- name: token_used
UPDATE tokens SET last_used_at = $3 WHERE tenant_id = $1 AND token_id = $2;

-- What `doctor` looks at.

-- name: plans_page
SELECT plan_id FROM plans WHERE tenant_id = $1 AND plan_id > $2 ORDER BY plan_id LIMIT $3;

-- name: quick_check (sqlite)
-- Differs because a file can be damaged as a file.
SELECT quick_check FROM pragma_quick_check;

-- name: quick_check (postgres)
-- Differs because the server looks after its files.
SELECT 'ok'::text AS quick_check;

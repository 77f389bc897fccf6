-- Branches, and the steps that they reference.

-- fragment: branch
branch_id, after_step, condition, action, params

-- name: branches_all
SELECT {branch} FROM branches
WHERE tenant_id = $1 AND plan_id = $2 ORDER BY ordinal;

-- name: branches_after_step
SELECT {branch} FROM branches WHERE tenant_id = $1 AND after_step = $2 ORDER BY ordinal;

-- name: branches_count
SELECT count(*) AS branches FROM branches
WHERE tenant_id = $1 AND after_step = (
    SELECT step_id FROM steps WHERE tenant_id = $1 AND plan_id = $2 AND step_order = $3);

-- name: branch_is_taken
SELECT branch_id FROM branches WHERE tenant_id = $1 AND branch_id = $2;

-- name: branch_insert
INSERT INTO branches (tenant_id, branch_id, plan_id, after_step, ordinal, condition, action, params)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: branch_need_insert
INSERT INTO branch_needs (tenant_id, step_id, branch_id, plan_id) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant_id, step_id, branch_id) DO NOTHING;

-- name: branch_move
UPDATE branches SET after_step = $3 WHERE tenant_id = $1 AND branch_id = $2;

-- name: branch_redirect
UPDATE branches SET params = $3 WHERE tenant_id = $1 AND branch_id = $2;

-- name: branch_needs_follow
-- A branch that stays after a superseded step is history: it keeps its references.
UPDATE branch_needs SET step_id = $4
WHERE tenant_id = $1 AND step_id = $3 AND branch_id NOT IN (
    SELECT branches.branch_id FROM branches
        JOIN steps ON steps.tenant_id = $1 AND steps.step_id = branches.after_step
    WHERE branches.tenant_id = $1 AND branches.plan_id = $2 AND steps.superseded_by IS NOT NULL);

-- name: branches_needing
SELECT branch_id FROM branch_needs WHERE tenant_id = $1 AND step_id = $2 ORDER BY branch_id;

-- name: branch_needs_delete_after
DELETE FROM branch_needs WHERE tenant_id = $1 AND branch_id IN (
    SELECT branch_id FROM branches WHERE tenant_id = $1 AND after_step = $2);

-- name: branches_delete_after
DELETE FROM branches WHERE tenant_id = $1 AND after_step = $2;

-- name: branches_delete
DELETE FROM branches WHERE tenant_id = $1 AND plan_id = $2;

-- name: branch_needs_delete
DELETE FROM branch_needs WHERE tenant_id = $1 AND plan_id = $2;

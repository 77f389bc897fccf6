-- User feedback about plans.

-- fragment: feedback
feedback_id, plan_id, rating, comment, output_id, actor, created_at

-- name: feedback_insert
INSERT INTO feedback (tenant_id, feedback_id, plan_id, rating, comment, output_id, actor,
    created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant_id, feedback_id) DO NOTHING;

-- name: feedback_of_plan
SELECT {feedback} FROM feedback
WHERE tenant_id = $1 AND plan_id = $2 ORDER BY created_at DESC, feedback_id DESC LIMIT $3;

-- name: feedback_page
SELECT {feedback} FROM feedback
WHERE tenant_id = $1 AND feedback_id > $2 ORDER BY feedback_id LIMIT $3;

-- name: feedback_delete
DELETE FROM feedback WHERE tenant_id = $1 AND plan_id = $2;

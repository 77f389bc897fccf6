-- What `doctor` looks at.

-- name: plans_page
SELECT plan_id FROM plans WHERE tenant_id = $1 AND plan_id > $2 ORDER BY plan_id LIMIT $3;

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

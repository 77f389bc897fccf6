-- Planner statistics that SQLite cannot collect from an empty file: almost all rows of a table
-- belong to one tenant, and few of them to a step or a plan. Without them, it scanned all branches
-- of a tenant for every result, because the table is cheaper to read than its index. Differs from
-- PostgreSQL because a server collects statistics itself.

-- Creates the statistics table; its content is replaced.
ANALYZE branches;
DELETE FROM sqlite_stat1 WHERE tbl = 'branches';
-- The number of rows, then the number of rows with equal first column, first two columns, and so
-- on.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('branches', 'branches', '100000 100000 1'),
    ('branches', 'branches_after', '100000 100000 2 1'),
    ('branches', 'branches_of_plan', '100000 100000 5 1'),
    ('branch_needs', 'branch_needs', '100000 100000 2 1'),
    ('branch_needs', 'branch_needs_of_plan', '100000 100000 5'),
    ('dependencies', 'dependencies', '100000 100000 2 1'),
    ('dependencies', 'dependencies_of_step', '100000 100000 2'),
    ('dependencies', 'dependencies_of_plan', '100000 100000 10'),
    ('idempotency_keys', 'idempotency_keys', '100000 100000 1'),
    ('idempotency_keys', 'idempotency_keys_of_plan', '100000 100000 1');
-- Makes the new statistics effective without reopening the file.
ANALYZE sqlite_schema;

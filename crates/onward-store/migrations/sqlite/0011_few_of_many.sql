-- What SQLite cannot know of an empty file: nearly all rows of a table belong to one tenant, and few of them
-- to a step or a plan. Left to guess, it went through all branches of a tenant for every result, since the
-- table is nearer than its index. Differs from PostgreSQL's because a server counts by itself.

-- Makes the table of what is known; what it counts is replaced.
ANALYZE branches;
DELETE FROM sqlite_stat1 WHERE tbl = 'branches';
-- How many rows there are, then how many have the same first column, first two, and so on.
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
-- For whoever has the file open.
ANALYZE sqlite_schema;

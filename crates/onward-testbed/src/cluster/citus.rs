//! Stubs of Citus on a plain server, so that tests of a distributed database need no cluster.
//!
//! They are in the schema `citus`, which must precede `pg_catalog` in the search path
//! ([`with_citus_path`]).

use super::psql;

/// The catalog and the functions of Citus that the program uses. Those for the distribution only record
/// their tables.
pub const CITUS: &str = r#"CREATE SCHEMA citus;
    CREATE TABLE citus.pg_extension (extname name);
    INSERT INTO citus.pg_extension VALUES ('citus');
    CREATE TABLE citus.pg_dist_partition (logicalrelid regclass, partmethod "char", colocationid int);
    CREATE TABLE citus.pg_dist_node (groupid int, isactive boolean, noderole text, nodeid int,
        nodename text, nodeport int);
    CREATE TABLE citus.pg_dist_shard (logicalrelid regclass, shardid bigint);
    CREATE TABLE citus.pg_dist_placement (shardid bigint, groupid int);
    CREATE TABLE citus.pg_dist_object (classid oid, objid oid);
    CREATE TABLE citus.responses (nodename text, nodeport int, success boolean, result text);
    CREATE FUNCTION citus.run_command_on_workers(text) RETURNS SETOF citus.responses
        LANGUAGE sql AS $$ SELECT * FROM citus.responses $$;
    CREATE TABLE citus.down (nodeport int);
    CREATE FUNCTION citus.master_run_on_worker(hosts text[], ports int[], commands text[], boolean)
        RETURNS SETOF citus.responses LANGUAGE plpgsql AS $$
    DECLARE
        answer text;
    BEGIN
        IF EXISTS (SELECT 1 FROM citus.down WHERE down.nodeport = ports[1]) THEN
            RETURN QUERY SELECT hosts[1], ports[1], false, 'connection refused';
        ELSE
            EXECUTE commands[1] INTO answer;
            RETURN QUERY SELECT hosts[1], ports[1], true, answer;
        END IF;
    END $$;
    CREATE TABLE citus.truncated (name text);
    CREATE FUNCTION citus.create_distributed_table(text, text, colocate_with text) RETURNS void
        LANGUAGE sql AS $$ INSERT INTO citus.pg_dist_partition VALUES ($1::regclass, 'h', 1) $$;
    CREATE FUNCTION citus.create_reference_table(text) RETURNS void
        LANGUAGE sql AS $$ INSERT INTO citus.pg_dist_partition VALUES ($1::regclass, 'n', 2) $$;
    CREATE FUNCTION citus.create_distributed_function(text, text, colocate_with text,
        force_delegation boolean) RETURNS void LANGUAGE sql AS $$ SELECT $$;
    CREATE FUNCTION citus.truncate_local_data_after_distributing_table(text) RETURNS void
        LANGUAGE sql AS $$ INSERT INTO citus.truncated VALUES ($1) $$"#;

/// Turns a database with the schema of Onward into one whose due times are on two nodes, with the ports
/// 1 and 2. Reads of all nodes fail while one of them is in `citus.down`.
const NODES: &str = "GRANT USAGE ON SCHEMA citus TO PUBLIC;
    GRANT SELECT ON ALL TABLES IN SCHEMA citus TO PUBLIC;
    SELECT citus.create_distributed_table('tenants', 'tenant_id', 'none');
    INSERT INTO citus.pg_dist_node VALUES (1, true, 'primary', 1, 'worker', 1),
        (2, true, 'primary', 2, 'worker', 2);
    INSERT INTO citus.pg_dist_placement VALUES (1, 1), (2, 2);
    CREATE TABLE tenants_1 (LIKE tenants);
    CREATE TABLE tenants_2 (LIKE tenants);
    CREATE TABLE due_1 (LIKE due);
    CREATE TABLE due_2 (LIKE due);
    CREATE TABLE due_calls_1 (LIKE due_calls);
    CREATE TABLE due_calls_2 (LIKE due_calls);
    ALTER TABLE due RENAME TO due_0;
    CREATE FUNCTION citus.due() RETURNS SETOF due_1 LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        IF EXISTS (SELECT 1 FROM citus.down) THEN
            RAISE EXCEPTION 'connection refused' USING ERRCODE = 'connection_failure';
        END IF;
        RETURN QUERY SELECT * FROM due_1 UNION ALL SELECT * FROM due_2;
    END $$;
    CREATE VIEW due AS SELECT * FROM citus.due();
    INSERT INTO citus.pg_dist_shard SELECT name::regclass, shard
        FROM unnest(ARRAY['tenants', 'due', 'due_calls']) AS name, generate_series(1, 2) AS shard";

/// The URL with the search path for the stubs.
#[must_use]
pub fn with_citus_path(url: &str) -> String {
    format!("{url}?options=-c%20search_path%3Dpublic,citus,pg_catalog")
}

/// Distributes the due times of a database over two nodes. It must have [`CITUS`], and the schema of
/// Onward, created through [`with_citus_path`].
///
/// # Panics
///
/// If a statement fails.
pub fn distribute_due_times(url: &str) {
    if let Err(why) = psql(url, NODES) {
        panic!("cannot distribute `{url}`: {why}");
    }
}

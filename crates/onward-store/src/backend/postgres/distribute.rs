//! Distribution over several nodes with Citus: every table by tenant, so that all rows of a tenant
//! are on one node, and a transaction runs there.
//!
//! The coordinator connects to the other nodes with the role of a transaction, so that role must be
//! able to log in there. Each table is distributed once; a second run distributes the missing ones,
//! and truncates the local rows that an interrupted run left.

use tokio_postgres::{Client, Error as Driver};

use super::address::Address;
use super::{error, migrate, nodes, primaries};
use crate::distribution::Distribution;
use crate::error::Error;

/// The tables whose rows are on the node of their tenant.
pub(super) const BY_TENANT: [&str; 33] = [
    "tenants",
    "plans",
    "steps",
    "dependencies",
    "branches",
    "branch_needs",
    "events",
    "resumed_sessions",
    "idempotency_keys",
    "artifacts",
    "tenant_log",
    "tool_calls",
    "tokens",
    "sign_outs",
    "due",
    "skill_executions",
    "feedback",
    "tasks",
    "sessions",
    "session_agents",
    "turns",
    "turn_steps",
    "directory_plans",
    "session_calls",
    "due_calls",
    "outputs",
    "results",
    "chunks",
    "chunk_signs",
    "vectors",
    "extractions",
    "notices",
    "plan_words",
];

/// The table that every node has: a token is found before its tenant is known.
pub(super) const ON_EVERY_NODE: [&str; 1] = ["token_hashes"];

/// Only one process distributes at a time.
const LOCK: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('onward distribute ' || current_schema(), 0))";

/// The role must be able to log in to the other nodes.
const LOGIN: &str = "DO $$ BEGIN IF NOT (SELECT rolcanlogin FROM pg_roles \
    WHERE rolname = 'onward_tenant') THEN ALTER ROLE onward_tenant LOGIN; END IF; \
    EXCEPTION WHEN insufficient_privilege THEN \
    RAISE EXCEPTION 'the role `%` may not change the role `onward_tenant`', CURRENT_USER \
    USING ERRCODE = 'insufficient_privilege', \
    HINT = 'ask an administrator to run: ALTER ROLE onward_tenant LOGIN'; END $$";

/// It must run on the node of its tenant, within the transaction that deleted the plan there.
const DELEGATED: &str = "SELECT create_distributed_function('onward_delete_events(text, uuid)', \
    'of_tenant', colocate_with => 'tenants', force_delegation => true)";

/// The tables that are neither distributed in the colocation group of `tenants` nor copied to every
/// node.
const MISSING: &str = "SELECT name FROM unnest($1::text[], $2::text[]) \
        WITH ORDINALITY AS wanted (name, method, place) \
    LEFT JOIN pg_dist_partition ON logicalrelid = to_regclass(name) AND partmethod::text = method \
    WHERE logicalrelid IS NULL OR (method = 'h' AND colocationid <> (SELECT colocationid \
        FROM pg_dist_partition WHERE logicalrelid = to_regclass('tenants'))) ORDER BY place";

/// The nodes with data, and the number of tenants on each.
const NODES: &str = "SELECT nodename || ':' || nodeport, count(tenant) FROM pg_dist_node \
    LEFT JOIN pg_dist_placement USING (groupid) \
    LEFT JOIN (SELECT get_shard_id_for_distribution_column('tenants', tenant_id) AS shardid, \
        tenant_id AS tenant FROM onward_tenants()) AS of_tenant USING (shardid) \
    WHERE isactive AND shouldhaveshards AND noderole = 'primary' GROUP BY 1 ORDER BY 1";

/// Whether the tables are distributed.
pub(super) async fn is_distributed(client: &Client) -> Result<bool, Error> {
    let found = async {
        if !nodes::has_citus(client).await? {
            return Ok(false);
        }
        let is_there = "SELECT EXISTS (SELECT 1 FROM pg_dist_partition \
            WHERE logicalrelid = to_regclass('tenants') AND partmethod = 'h')";
        client.query_one(is_there, &[]).await?.try_get(0)
    };
    let found: Result<bool, Driver> = found.await;
    found.map_err(failed)
}

/// The nodes and their tenants; `None` if the database is not distributed.
pub(super) async fn inspect(address: &Address) -> Result<Option<Distribution>, Error> {
    let standing = address.open_long_lived().await?;
    let client = &standing.client;
    if !is_distributed(client).await? {
        return Ok(None);
    }
    let found = async {
        // The login may have no privileges on the tables.
        client.batch_execute("SET ROLE onward_tenant").await?;
        let missing = missing(client).await?;
        let nodes = client.query(NODES, &[]).await?;
        let nodes: Result<Vec<(String, i64)>, Driver> = nodes
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect();
        let nodes = nodes?.into_iter();
        Ok(Distribution {
            nodes: nodes
                .map(|(node, tenants)| (node, tenants.unsigned_abs()))
                .collect(),
            missing,
        })
    };
    let found: Result<Distribution, Driver> = found.await;
    found.map(Some).map_err(failed)
}

/// Distributes the tables that are not distributed yet; returns their number.
pub(super) async fn distribute(address: &Address) -> Result<u64, Error> {
    let standing = primaries::open(address).await?;
    let client = &standing.client;
    let schemas = migrate::check_server(client, &address.shown).await?;
    if !nodes::has_citus(client).await.map_err(failed)? {
        return Err(error::address(
            &address.shown,
            "the database has no Citus extension",
            "install Citus on all nodes, run `CREATE EXTENSION citus` in this database on each of them, \
             and add the nodes with `citus_add_node`",
        ));
    }
    nodes::check(client, &address.shown).await?;
    let distributed = async {
        let begin = format!(
            "BEGIN; SET LOCAL search_path = {schemas}; \
             SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
        );
        client.batch_execute(&begin).await?;
        client.batch_execute(LOCK).await?;
        client.batch_execute(LOGIN).await?;
        let missing = missing(client).await?;
        for table in &missing {
            // Otherwise row security hides the rows from the table owner, and they are not copied.
            let open = format!("ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY");
            client.batch_execute(&open).await?;
            let place = if ON_EVERY_NODE.contains(&table.as_str()) {
                format!("SELECT create_reference_table('{table}')")
            } else {
                let with = if table == "tenants" {
                    "none"
                } else {
                    "tenants"
                };
                format!(
                    "SELECT create_distributed_table('{table}', 'tenant_id', colocate_with => '{with}')"
                )
            };
            client.batch_execute(&place).await?;
            let close = format!("ALTER TABLE {table} FORCE ROW LEVEL SECURITY");
            client.batch_execute(&close).await?;
        }
        client.batch_execute(DELEGATED).await?;
        client.batch_execute("COMMIT").await?;
        // The rows are on the nodes; their former copies would only take space. An earlier run may
        // have been interrupted here, so all tables are truncated, not only those of this run.
        for table in tables() {
            let clean = format!("SELECT truncate_local_data_after_distributing_table('{table}')");
            client.batch_execute(&clean).await?;
        }
        Ok(missing.len() as u64)
    };
    let distributed: Result<u64, Driver> = distributed.await;
    distributed.map_err(|why| error::of_schema_change(why, &address.shown, "distribution"))
}

/// All distributed tables.
fn tables() -> impl Iterator<Item = &'static str> {
    BY_TENANT.into_iter().chain(ON_EVERY_NODE)
}

async fn missing(client: &Client) -> Result<Vec<String>, Driver> {
    let tables: Vec<&str> = tables().collect();
    let by_tenant = std::iter::repeat_n("h", BY_TENANT.len());
    let methods: Vec<&str> = by_tenant.chain(ON_EVERY_NODE.map(|_| "n")).collect();
    let rows = client.query(MISSING, &[&tables, &methods]).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

fn failed(why: Driver) -> Error {
    error::of_statement(why, "distribution")
}

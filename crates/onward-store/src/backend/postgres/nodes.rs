//! Checks of the nodes of a Citus cluster, before the schema of a database is created or distributed.
//!
//! Citus creates the objects of a schema on every node, and connects to the other nodes as the login.
//! Its own errors name neither the node nor the next action.

use tokio_postgres::{Client, Error as Driver};

use super::error;
use crate::error::Error;

/// Whether the database has other nodes.
const HAS_NODES: &str = "SELECT EXISTS (SELECT 1 FROM pg_dist_node \
    WHERE groupid <> 0 AND isactive AND noderole = 'primary')";

/// Whether the login can create the role of a transaction on the other nodes, or need not, and its
/// name. A login that Citus does not know would have to be created first, which only a superuser can.
const ROLE: &str = "SELECT rolsuper \
    OR EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'onward_tenant') \
    OR EXISTS (SELECT 1 FROM pg_dist_object WHERE classid = 'pg_authid'::regclass \
        AND objid = pg_roles.oid), rolname::text, quote_literal(current_schema()) \
    FROM pg_roles WHERE rolname = CURRENT_USER";

/// A command for all other nodes.
const RUN: &str = "SELECT nodename || ':' || nodeport, success, coalesce(result, '') \
    FROM run_command_on_workers($1) ORDER BY 1";

/// Fails if the login cannot create the schema on every node. Changes nothing.
pub(super) async fn check(client: &Client, address: &str) -> Result<(), Error> {
    let failed = |why: Driver| error::of_statement(why, "nodes");
    let found = async {
        if !has_citus(client).await? || !client.query_one(HAS_NODES, &[]).await?.try_get(0)? {
            return Ok(None);
        }
        let row = client.query_one(ROLE, &[]).await?;
        let cells = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(Some(cells))
    };
    let found: Result<Option<(bool, String, String)>, Driver> = found.await;
    let Some((can_create_role, login, schema)) = found.map_err(failed)? else {
        return Ok(());
    };
    if !can_create_role {
        return Err(error::address(
            address,
            format!("Citus does not know the login `{login}`, so it cannot create `onward_tenant`"),
            "run `CREATE ROLE onward_tenant LOGIN`, and grant it to the login, as an administrator in \
             this database on the coordinator",
        ));
    }
    // The schema may not exist on the node yet.
    let command = format!(
        "SELECT coalesce(has_schema_privilege(to_regnamespace({schema}), 'CREATE'), \
         has_database_privilege(current_database(), 'CREATE'))::text"
    );
    let rows = client.query(RUN, &[&command]).await.map_err(failed)?;
    for row in rows {
        let cells = || Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        let (node, success, result): (String, bool, String) = cells().map_err(failed)?;
        if !success {
            return Err(error::address(
                address,
                format!("node `{node}` does not accept the login `{login}`: {result}"),
                "check that the node is running, has this database and this role, and that its \
                 `pg_hba.conf` accepts the login from the coordinator",
            ));
        }
        if result != "true" {
            return Err(error::address(
                address,
                format!("node `{node}`: the login `{login}` may not create tables"),
                "run `ALTER DATABASE … OWNER TO` the login on this node, as an administrator",
            ));
        }
    }
    Ok(())
}

pub(super) async fn has_citus(client: &Client) -> Result<bool, Driver> {
    let extension = "SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')";
    client.query_one(extension, &[]).await?.try_get(0)
}

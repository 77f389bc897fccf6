//! Schema migrations of a database: embedded, forward-only, all pending ones in one transaction.
//!
//! Several servers may start concurrently: an advisory lock serializes them, and the version is
//! read again under it, so each migration runs once. A server on which two sessions can hold the
//! same lock is rejected here. Every database is created by a migration, so later uses of advisory
//! locks need no check, and a process that migrates nothing needs no second connection.
//! `onward_schema` has one row per applied migration; a database without that table has version 0.
//! A server that is too old, or a login that may not assume the role of transactions, is rejected
//! here and not at the first call.

use tokio_postgres::Client;

use super::address::Address;
use super::{error, nodes};
use crate::backend::relocation::unfinished;
use crate::copied_table::PROGRESS;
use crate::error::Error;

/// All migrations, in order; the first one creates version 1.
pub(super) const STEPS: [&str; 1] = [include_str!("../../../migrations/postgres/0001_schema.sql")];

/// Version that this program requires.
pub(crate) const VERSION: i64 = STEPS.len() as i64;

/// Oldest supported PostgreSQL version.
const OLDEST: i32 = 14;

/// Advisory locks belong to the database, and a database may contain several schemas with Onward
/// tables.
const LOCK: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('onward schema ' || current_schema(), 0))";

/// Takes the same lock if it is free.
const TRY_LOCK: &str =
    "SELECT pg_try_advisory_xact_lock(hashtextextended('onward schema ' || current_schema(), 0))";

/// Version of the server, and the search path. Its schemas are those of the login: `"$user"` in it
/// would be another schema for the role of a transaction.
const SERVER: &str = "SELECT current_setting('server_version_num')::int / 10000, \
    current_setting('server_version'), (SELECT string_agg(quote_ident(name), ',' ORDER BY place) \
    FROM unnest(current_schemas(false)) WITH ORDINALITY AS path (name, place))";

/// Whether the role bypasses row security, and whether the login may assume it.
const ROLE: &str = "SELECT rolsuper OR rolbypassrls, pg_has_role(CURRENT_USER, oid, CASE WHEN \
    current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) \
    FROM pg_roles WHERE rolname = 'onward_tenant'";

/// Rejects an unsupported server; returns the schemas of the search path.
pub(super) async fn check_server(client: &Client, address: &str) -> Result<String, Error> {
    let row = client.query_one(SERVER, &[]).await;
    let cells = row.and_then(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)));
    let (major, version, schemas): (i32, String, Option<String>) =
        cells.map_err(|why| error::of_statement(why, "server version"))?;
    if let Some(why) = too_old(major, &version) {
        let hint = "upgrade the server, or use another one";
        return Err(error::address(address, why, hint));
    }
    schemas.ok_or_else(|| {
        let why = "no schema of its search path exists";
        let hint = "create the schema, or set `search_path` of the database or the login";
        error::address(address, why, hint)
    })
}

fn too_old(major: i32, version: &str) -> Option<String> {
    (major < OLDEST)
        .then(|| format!("the server is PostgreSQL {version}, but {OLDEST} or newer is required"))
}

/// Version of the database. Fails if a move into it has not ended.
pub(super) async fn version(client: &Client) -> Result<i64, Error> {
    if is_unfinished(client).await? {
        return Err(unfinished());
    }
    recorded_version(client).await
}

/// Whether a move into the database has begun and not ended.
pub(super) async fn is_unfinished(client: &Client) -> Result<bool, Error> {
    let progress = format!("SELECT to_regclass('{PROGRESS}') IS NOT NULL");
    let there = client.query_one(&progress, &[]).await;
    there
        .and_then(|row| row.try_get(0))
        .map_err(|why| error::of_statement(why, "schema version"))
}

/// Version of the database.
pub(super) async fn recorded_version(client: &Client) -> Result<i64, Error> {
    let failed = |why| error::of_statement(why, "schema version");
    let there = client
        .query_one("SELECT to_regclass('onward_schema') IS NOT NULL", &[])
        .await
        .and_then(|row| row.try_get(0));
    if !there.map_err(failed)? {
        return Ok(0);
    }
    client
        .query_one("SELECT coalesce(max(version), 0) FROM onward_schema", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(failed)
}

/// Migrates the database, or rejects an older schema if migration is not allowed.
pub(super) async fn migrate(
    client: &Client,
    address: &Address,
    schemas: &str,
    allowed: bool,
) -> Result<(), Error> {
    migrate_with(&STEPS, client, address, schemas, allowed).await
}

/// [`migrate`] with the migrations of another version of this program, for tests.
pub(super) async fn migrate_with(
    all: &[&str],
    client: &Client,
    address: &Address,
    schemas: &str,
    allowed: bool,
) -> Result<(), Error> {
    let found = version(client).await?;
    let known = i64::try_from(all.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(Error::Newer { found, known });
    }
    if found < known {
        if !allowed {
            return Err(Error::Older { found, known });
        }
        nodes::check(client, &address.shown).await?;
        // After an error the caller drops the connection, and with it the open transaction.
        steps(all, client, address, schemas).await?;
    }
    check_role(client, &address.shown).await
}

async fn steps(
    all: &[&str],
    client: &Client,
    address: &Address,
    schemas: &str,
) -> Result<(), Error> {
    let failed = |why| error::of_schema_change(why, &address.shown, "migration");
    // The functions of the schema keep this search path. Temporary objects come last, so that they
    // cannot replace the tables that a function uses.
    let begin = format!(
        "BEGIN; SET LOCAL lock_timeout = '60s'; SET LOCAL search_path = {schemas}, pg_temp"
    );
    client.batch_execute(&begin).await.map_err(failed)?;
    client.batch_execute(LOCK).await.map_err(failed)?;
    check_locks(address).await?;
    client
        .batch_execute("CREATE TABLE IF NOT EXISTS onward_schema (version bigint PRIMARY KEY)")
        .await
        .map_err(failed)?;
    let found = version(client).await?;
    let known = i64::try_from(all.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(Error::Newer { found, known });
    }
    for (step, version) in all.iter().zip(1i64..).filter(|(_, to)| *to > found) {
        client.batch_execute(step).await.map_err(failed)?;
        client
            .execute(
                "INSERT INTO onward_schema (version) VALUES ($1)",
                &[&version],
            )
            .await
            .map_err(failed)?;
    }
    client.batch_execute("COMMIT").await.map_err(failed)
}

/// Rejects a server on which another session can take the lock that the migration holds, such as
/// CockroachDB, where advisory locks have no effect.
async fn check_locks(address: &Address) -> Result<(), Error> {
    let second = address.open_long_lived().await?;
    let taken = second.client.query_one(TRY_LOCK, &[]).await;
    let taken = taken.and_then(|row| row.try_get(0));
    if taken.map_err(|why| error::of_statement(why, "advisory lock"))? {
        return Err(error::address(
            &address.shown,
            "two sessions can hold the same advisory lock on this server",
            "use PostgreSQL, or Citus on PostgreSQL",
        ));
    }
    Ok(())
}

/// A dump that was restored into another cluster contains the tables, but not the role.
async fn check_role(client: &Client, address: &str) -> Result<(), Error> {
    let row = client
        .query_opt(ROLE, &[])
        .await
        .map_err(|why| error::of_statement(why, "role"))?;
    let (why, hint) = match row {
        None => (
            "the cluster has no role `onward_tenant`",
            "run `CREATE ROLE onward_tenant NOLOGIN`, grant it to the login, and restore the dump again \
             for the privileges on the tables",
        ),
        Some(row) => {
            let cells = row
                .try_get(0)
                .and_then(|bypasses| Ok((bypasses, row.try_get(1)?)));
            match cells.map_err(|why| error::of_statement(why, "role"))? {
                (true, _) => (
                    "the role `onward_tenant` bypasses row security",
                    "run `ALTER ROLE onward_tenant NOSUPERUSER NOBYPASSRLS` as an administrator",
                ),
                (false, false) => (
                    "the login may not assume the role `onward_tenant`",
                    "run `GRANT onward_tenant TO` the login as an administrator",
                ),
                (false, true) => return Ok(()),
            }
        }
    };
    Err(error::address(address, why, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_an_unsupported_server_version() {
        assert_eq!(too_old(14, "14.0"), None);
        assert_eq!(
            too_old(13, "13.22 (Debian)").unwrap(),
            "the server is PostgreSQL 13.22 (Debian), but 14 or newer is required"
        );
    }
}

//! The schema of a database: embedded steps, forward only, all in one transaction with their
//! versions.
//!
//! Several servers may start at once: a lock makes them take turns, and the version is read again
//! under it, so a step is taken once. `onward_schema` holds one row per step that was taken; a
//! database without that table has version 0. Whatever the version, a server that is too old, or a
//! login that may not take the role of the transactions, is refused here and not at the first call.

use tokio_postgres::Client;

use super::error;
use crate::error::Error;

/// Every step, in order; the first makes version 1.
const STEPS: [&str; 11] = [
    include_str!("../../../migrations/postgres/0001_plans.sql"),
    include_str!("../../../migrations/postgres/0002_skills.sql"),
    include_str!("../../../migrations/postgres/0003_sessions.sql"),
    include_str!("../../../migrations/postgres/0004_research.sql"),
    include_str!("../../../migrations/postgres/0005_calls.sql"),
    include_str!("../../../migrations/postgres/0006_meaning.sql"),
    include_str!("../../../migrations/postgres/0007_notices.sql"),
    include_str!("../../../migrations/postgres/0008_lists.sql"),
    include_str!("../../../migrations/postgres/0009_meaning_at_hand.sql"),
    include_str!("../../../migrations/postgres/0010_near_by_index.sql"),
    include_str!("../../../migrations/postgres/0011_few_of_many.sql"),
];

/// The version that this program needs.
pub(crate) const VERSION: i64 = STEPS.len() as i64;

/// The oldest PostgreSQL that is spoken to.
const OLDEST: i32 = 14;

/// Advisory locks belong to the database, and one database may hold two schemas with an Onward in
/// each.
const LOCK: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('onward schema ' || current_schema(), 0))";

/// What is asked of every server. The schemas of the search path are those of the login: `"$user"`
/// in it would be another one for the role that a transaction takes.
const SERVER: &str = "SELECT current_setting('server_version_num')::int / 10000, \
    current_setting('server_version'), (SELECT string_agg(quote_ident(name), ',' ORDER BY place) \
    FROM unnest(current_schemas(false)) WITH ORDINALITY AS path (name, place))";

/// May the login take the role, and is the role one that row security binds?
const ROLE: &str = "SELECT rolsuper OR rolbypassrls, pg_has_role(CURRENT_USER, oid, CASE WHEN \
    current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) \
    FROM pg_roles WHERE rolname = 'onward_tenant'";

/// Refuses a server that cannot be worked with; says in which schemas to look for the tables.
pub(super) async fn check_server(client: &Client, address: &str) -> Result<String, Error> {
    let row = client.query_one(SERVER, &[]).await;
    let cells = row.and_then(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)));
    let (major, version, schemas): (i32, String, Option<String>) =
        cells.map_err(|why| error::doing(&why, "server version"))?;
    if let Some(why) = too_old(major, &version) {
        return Err(error::address(address, why));
    }
    schemas.ok_or_else(|| error::address(address, "its search path names no schema that exists"))
}

fn too_old(major: i32, version: &str) -> Option<String> {
    (major < OLDEST)
        .then(|| format!("the server is PostgreSQL {version}, and {OLDEST} or newer is needed"))
}

/// The version that the database has.
pub(super) async fn version(client: &Client) -> Result<i64, Error> {
    let failed = |why| error::doing(&why, "schema version");
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

/// Brings the database up to date, or refuses it where that may not be.
pub(super) async fn migrate(
    client: &Client,
    address: &str,
    schemas: &str,
    may: bool,
) -> Result<(), Error> {
    let found = version(client).await?;
    let known = VERSION;
    if found > known {
        return Err(Error::Newer { found, known });
    }
    if found < known {
        if !may {
            return Err(Error::Older { found, known });
        }
        // An error leaves the transaction open on a connection that is thrown away.
        steps(client, address, schemas).await?;
    }
    check_role(client, address).await
}

async fn steps(client: &Client, address: &str, schemas: &str) -> Result<(), Error> {
    let failed = |why: tokio_postgres::Error| match why.as_db_error() {
        // A right that the login does not have; the message says which, and what to do.
        Some(said) if said.code().code() == "42501" => {
            let hint = said
                .hint()
                .map(|hint| format!("; {hint}"))
                .unwrap_or_default();
            error::address(address, format!("{}{hint}", said.message()))
        }
        Some(_) | None => error::doing(&why, "migration"),
    };
    // What the schema's own functions look for, they look for where they were made.
    let begin = format!("BEGIN; SET LOCAL lock_timeout = '60s'; SET LOCAL search_path = {schemas}");
    client.batch_execute(&begin).await.map_err(failed)?;
    client.batch_execute(LOCK).await.map_err(failed)?;
    client
        .batch_execute("CREATE TABLE IF NOT EXISTS onward_schema (version bigint PRIMARY KEY)")
        .await
        .map_err(failed)?;
    let found = version(client).await?;
    let known = VERSION;
    if found > known {
        return Err(Error::Newer { found, known });
    }
    for (step, version) in STEPS.iter().zip(1i64..).filter(|(_, to)| *to > found) {
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

/// A dump that was restored into another cluster has the tables, and not the role.
async fn check_role(client: &Client, address: &str) -> Result<(), Error> {
    let row = client
        .query_opt(ROLE, &[])
        .await
        .map_err(|why| error::doing(&why, "role"))?;
    let why = match row {
        None => {
            "its cluster has no role `onward_tenant`; run `CREATE ROLE onward_tenant NOLOGIN`, grant \
             it to the login, and restore the dump once more for the rights on the tables"
        }
        Some(row) => {
            let cells = row.try_get(0).and_then(|free| Ok((free, row.try_get(1)?)));
            match cells.map_err(|why| error::doing(&why, "role"))? {
                (true, _) => {
                    "the role `onward_tenant` bypasses row security; run `ALTER ROLE onward_tenant \
                     NOSUPERUSER NOBYPASSRLS`"
                }
                (false, false) => {
                    "its login may not take the role `onward_tenant`; let an administrator grant it"
                }
                (false, true) => return Ok(()),
            }
        }
    };
    Err(error::address(address, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_too_old_is_refused_in_words() {
        assert_eq!(too_old(14, "14.0"), None);
        assert_eq!(
            too_old(13, "13.22 (Debian)").unwrap(),
            "the server is PostgreSQL 13.22 (Debian), and 14 or newer is needed"
        );
    }
}

//! Sign-bit indexes on servers with pgvector: detects support, and maintains one index for each
//! tenant with many chunks.
//!
//! An index contains the signs of one tenant and one model, so a search finds it by its name alone,
//! and chunks of other tenants do not affect it. Indexes are built concurrently with other work, on
//! a separate connection, by one server at a time; an invalid index left by a crash is rebuilt. The
//! schema function `onward_near` searches them.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error as Driver};

use super::address::Address;
use super::error;
use crate::error::Error;
use crate::vector_index::{Indexed, MANY, Many, VectorExtension};

/// Maximum number of indexes: with more, planning a query on the table costs more than they save.
const MAX_INDEXES: usize = 64;

/// Oldest supported pgvector: earlier versions end an index scan after too many dead entries,
/// without reporting it.
const OLDEST: [u32; 2] = [0, 8];

/// Only one server builds at a time. The lock ends with the connection.
pub(super) const LOCK: &str =
    "SELECT pg_try_advisory_lock(hashtextextended('onward near index ' || current_schema(), 0))";

/// The installed version of the extension, the available one, and the number of valid indexes.
const STATE: &str = "SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'), \
    (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'), \
    (SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid \
        WHERE indrelid = to_regclass('chunk_signs') AND relname LIKE 'chunk\\_signs\\_near\\_%' \
            AND indisvalid)";

/// All sign-bit indexes, and whether each is valid.
const EXISTING: &str = "SELECT relname::text, indisvalid FROM pg_index \
    JOIN pg_class ON pg_class.oid = indexrelid \
    WHERE indrelid = to_regclass('chunk_signs') AND relname LIKE 'chunk\\_signs\\_near\\_%'";

const NAME: &str = "SELECT onward_near_index($1, $2, $3)";

/// Queries that format a `CREATE INDEX` and a `DROP INDEX`, because neither takes parameters. With
/// pgvector's default `ef_construction` of 64, one in two hundred nearest neighbours is not found.
const CREATE: &str = "SELECT format('CREATE INDEX CONCURRENTLY %I ON chunk_signs USING hnsw \
    ((sign::bit(%s)) %I.bit_hamming_ops) WITH (ef_construction = 128) \
    WHERE tenant_id = %L AND model = %L AND length(sign) = %s', \
    $1::text, $4::bigint, nspname, $2::text, $3::text, $4::bigint) \
    FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'";
const DROP: &str = "SELECT format('DROP INDEX CONCURRENTLY IF EXISTS %I', $1::text)";

/// The build uses one process and its private memory, because shared memory may be scarce in a
/// container. A graph that does not fit into memory takes many times as long.
const BUILD_SETTINGS: &str = "SELECT set_config('max_parallel_maintenance_workers', '0', false), \
    CASE WHEN pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes('256MB') \
        THEN set_config('maintenance_work_mem', '256MB', false) END";

/// State of pgvector on the server.
pub(super) async fn inspect(address: &Address) -> Result<VectorExtension, Error> {
    let standing = address.open_long_lived().await?;
    let state = read_state(&standing.client).await;
    state.map_err(|why| error::of_statement(why, "pgvector"))
}

async fn read_state(client: &Client) -> Result<VectorExtension, Driver> {
    let row = client.query_one(STATE, &[]).await?;
    let created: Option<String> = row.try_get(0)?;
    let available: Option<String> = row.try_get(1)?;
    let indexes: i64 = row.try_get(2)?;
    Ok(classify(created, available, indexes.unsigned_abs()))
}

fn classify(created: Option<String>, available: Option<String>, indexes: u64) -> VectorExtension {
    let available = available.filter(|version| is_supported(version));
    match (created, available) {
        (Some(version), _) if is_supported(&version) => VectorExtension::Used { version, indexes },
        (Some(version), newer) => VectorExtension::TooOld { version, newer },
        (None, Some(version)) => VectorExtension::Available { version },
        (None, None) => VectorExtension::Missing,
    }
}

fn is_supported(version: &str) -> bool {
    let numbers = version
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or_default());
    numbers.take(OLDEST.len()).ge(OLDEST)
}

/// Builds the missing indexes for tenants with many chunks, and drops those that are no longer
/// needed. Does nothing if another server is building; builds nothing without pgvector.
pub(super) async fn maintain(address: &Address, many: &[Many]) -> Result<Indexed, Error> {
    let standing = address.open_long_lived().await?;
    let updated = update_indexes(&standing.client, many).await;
    updated.map_err(|why| error::of_statement(why, "index of signs"))
}

async fn update_indexes(client: &Client, many: &[Many]) -> Result<Indexed, Driver> {
    let mut done = Indexed::default();
    if !client.query_one(LOCK, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(done);
    }
    let mut kept = Vec::new();
    for one in many.iter().filter(|one| one.chunks >= MANY / 2) {
        let width = i64::try_from(one.width).unwrap_or(i64::MAX);
        let params: [&(dyn ToSql + Sync); 3] = [&&*one.tenant, &&*one.model, &width];
        let name: String = client.query_one(NAME, &params).await?.try_get(0)?;
        kept.push((name, one, width));
    }
    let mut existing = Vec::new();
    for row in client.query(EXISTING, &[]).await? {
        let (name, valid): (String, bool) = (row.try_get(0)?, row.try_get(1)?);
        if valid && kept.iter().any(|(kept, ..)| *kept == name) {
            existing.push(name);
        } else {
            run(client, DROP, &[&name]).await?;
            done.dropped += 1;
        }
    }
    kept.retain(|(name, one, _)| one.chunks >= MANY && !existing.contains(name));
    if kept.is_empty() || !is_usable(client).await? {
        return Ok(done);
    }
    client.execute(BUILD_SETTINGS, &[]).await?;
    let room = MAX_INDEXES.saturating_sub(existing.len());
    for (name, one, width) in kept.into_iter().take(room) {
        let params: [&(dyn ToSql + Sync); 4] = [&name, &&*one.tenant, &&*one.model, &width];
        run(client, CREATE, &params).await?;
        done.made += 1;
    }
    Ok(done)
}

/// Runs the statement that a query formats.
async fn run(client: &Client, text: &str, params: &[&(dyn ToSql + Sync)]) -> Result<(), Driver> {
    let statement: String = client.query_one(text, params).await?.try_get(0)?;
    client.batch_execute(&statement).await
}

/// Whether pgvector can be used. Creates the extension if it is available and the login may create
/// it.
async fn is_usable(client: &Client) -> Result<bool, Driver> {
    match read_state(client).await? {
        VectorExtension::Used { .. } => Ok(true),
        VectorExtension::Available { .. } => {
            let created = client
                .batch_execute("CREATE EXTENSION IF NOT EXISTS vector")
                .await;
            match created {
                Ok(()) => Ok(true),
                // Not allowed: `onward doctor` reports what an administrator can do.
                Err(why) if why.as_db_error().is_some() => Ok(false),
                Err(why) => Err(why),
            }
        }
        VectorExtension::TooOld { .. } | VectorExtension::Missing => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_unsupported_pgvector_versions() {
        for enough in ["0.8", "0.8.0", "0.8.5", "0.10.1", "1.0"] {
            assert!(is_supported(enough), "{enough}");
        }
        for too_old in ["0.7.4", "0.6.2", "0", "", "old"] {
            assert!(!is_supported(too_old), "{too_old}");
        }
    }

    #[test]
    fn classifies_the_state_of_pgvector() {
        let text = |version: &str| Some(version.to_owned());
        let version = || "0.8.5".to_owned();
        let used = VectorExtension::Used {
            version: version(),
            indexes: 3,
        };
        assert_eq!(classify(text("0.8.5"), text("0.8.5"), 3), used);
        let old = |newer| VectorExtension::TooOld {
            version: "0.6.2".to_owned(),
            newer,
        };
        assert_eq!(classify(text("0.6.2"), text("0.6.2"), 0), old(None));
        assert_eq!(
            classify(text("0.6.2"), text("0.8.5"), 0),
            old(Some(version()))
        );
        let available = VectorExtension::Available { version: version() };
        assert_eq!(classify(None, text("0.8.5"), 0), available);
        assert_eq!(classify(None, text("0.6.2"), 0), VectorExtension::Missing);
        assert_eq!(classify(None, None, 0), VectorExtension::Missing);
    }
}

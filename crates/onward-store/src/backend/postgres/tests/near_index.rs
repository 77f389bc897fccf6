//! Sign-bit indexes on real servers: with pgvector, with an unsupported version of it, and without.

use onward_core::search::Vector;
use onward_testbed::{OLD_PGVECTOR, PGVECTOR, psql};

use super::*;
use crate::backend::Candidate;
use crate::backend::postgres::near_index::LOCK;
use crate::record::search::{Search, SearchIndex};
use crate::vector_index::{Indexed, MANY, Many, VectorExtension};

/// Signs of 16 bits: the sign of a chunk is its number, so all signs differ.
const SIGNS: Query = Query::Text(
    "INSERT INTO chunk_signs SELECT $1, \
    ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 0, $2, n::bit(16) \
    FROM generate_series(1, $3::bigint) AS n",
);
const VECTORS: Query = Query::Text(
    "INSERT INTO vectors SELECT tenant_id, source_id, ordinal, '\\x01' \
    FROM chunk_signs WHERE tenant_id = $1",
);

/// All chunks of a tenant, or only its notes.
fn search(filtered: bool) -> Search {
    Search {
        words: Vec::new(),
        all: true,
        plan: None,
        kind: filtered.then(|| "note".to_owned()),
        created_after: None,
        created_before: None,
    }
}

/// A vector with this sign.
fn vector(sign: &str) -> Vector {
    let numbers = sign.bytes().map(|bit| if bit == b'1' { 1.0 } else { -1.0 });
    Vector::quantize(&numbers.collect::<Vec<f32>>()).unwrap()
}

/// The chunks that a search reads.
async fn near(
    tx: &mut Tx,
    sign: &str,
    count: u32,
    filtered: bool,
) -> Result<Vec<Candidate>, Error> {
    SearchIndex(tx)
        .candidates(&vector(sign), "m", &search(filtered), count)
        .await
}

/// Inserts chunks of a tenant, embedded by a model.
async fn fill(postgres: &Postgres, tenant: &str, model: &str, chunks: i64) {
    let mut tx = begin(postgres, tenant);
    tx.queue(Statement::new(SIGNS, params![model, chunks]));
    tx.queue(Statement::new(VECTORS, vec![]));
    commit(tx).await.unwrap();
}

fn many(tenant: &str, model: &str) -> Many {
    Many {
        tenant: tenant.into(),
        model: model.into(),
        width: 16,
        chunks: MANY,
    }
}

/// Number of chunks that the index alone finds, and number that the search finds.
async fn found(postgres: &Postgres, tenant: &str, most: u32) -> (i64, usize) {
    let mut tx = begin(postgres, tenant);
    let sign = "0000000000000001";
    let question = "SELECT count(*) AS n FROM onward_near($1, $2, $3, $4)";
    let params = params![tenant, "m", sign, most];
    let by_index = number(&mut tx, Query::Text(question), params).await;
    let all = near(&mut tx, sign, most, false).await.unwrap();
    rollback(tx);
    (by_index.unwrap(), all.len())
}

fn indexes(url: &str) -> String {
    let question = "SELECT count(*) FILTER (WHERE indisvalid) || ' of ' || count(*) FROM pg_index \
        WHERE indexrelid::regclass::text LIKE '%chunk_signs_near_%'";
    psql(url, question).unwrap().trim().to_owned()
}

/// A login that owns the tables and is not a superuser, on a database in which an administrator has
/// created the extension in a schema that only this login may use.
fn owned(cluster: &Cluster) -> (String, String) {
    let url = cluster.database();
    let owner = format!("owner_{}", url.rsplit('/').next().unwrap());
    for statement in [
        format!("CREATE ROLE {owner} LOGIN CREATEROLE"),
        format!("GRANT CREATE ON SCHEMA public TO {owner}"),
        format!("CREATE SCHEMA extensions; GRANT USAGE ON SCHEMA extensions TO {owner}"),
        "CREATE EXTENSION vector SCHEMA extensions".to_owned(),
    ] {
        psql(&url, &statement).unwrap();
    }
    let as_owner = as_role(&url, &owner);
    (url, as_owner)
}

const MADE: Indexed = Indexed {
    made: 1,
    dropped: 0,
};
const NOTHING: Indexed = Indexed {
    made: 0,
    dropped: 0,
};

#[tokio::test]
async fn uses_an_index_only_for_the_tenant_with_many_chunks() {
    let Some(cluster) = Cluster::start_from_env(PGVECTOR) else {
        return;
    };
    let (url, as_owner) = owned(&cluster);
    let (postgres, _) = open(&as_owner).await;
    // A name that would end a literal if it were not quoted.
    let large = "l'arge \\";
    fill(&postgres, large, "m", 3_000).await;
    fill(&postgres, "small", "m", 30).await;
    assert_eq!(found(&postgres, large, 20).await, (0, 20), "no index yet");
    let wanted = [many(large, "m")];
    assert_eq!(postgres.index_signs(&wanted).await.unwrap(), MADE);
    assert_eq!(found(&postgres, large, 20).await, (20, 20));
    assert_eq!(found(&postgres, "small", 20).await, (0, 20));
    assert_eq!(found(&postgres, "", 20).await, (0, 0));
    assert_eq!(postgres.index_signs(&wanted).await.unwrap(), NOTHING);
    let seen = postgres.vector_extension().await.unwrap();
    assert!(
        matches!(seen, VectorExtension::Used { indexes: 1, .. }),
        "{seen:?}"
    );
    // The query of the function uses the index, with row security. A sort would show that it does
    // not.
    let plan = psql(
        &as_owner,
        "SET enable_sort = off; SET onward.tenant = E'l\\'arge \\\\'; EXPLAIN SELECT source_id \
         FROM chunk_signs WHERE tenant_id = E'l\\'arge \\\\' AND model = 'm' AND length(sign) = 16 \
         ORDER BY sign::bit(16) OPERATOR(extensions.<~>) '0000000000000001'::bit(16) LIMIT 20",
    );
    let plan = plan.unwrap();
    assert!(
        plan.contains("Index Scan using chunk_signs_near_"),
        "{plan}"
    );
    let why = psql(
        &url,
        "SET ROLE onward_tenant; SELECT onward_near_index('a', 'b', 1)",
    );
    assert!(why.unwrap_err().contains("permission denied"));
}

/// The numbers of the chunks that are found.
async fn numbers(
    postgres: &Postgres,
    sign: &str,
    most: u32,
    filtered: bool,
) -> Result<Vec<u128>, Error> {
    let mut tx = begin(postgres, "a");
    let found = near(&mut tx, sign, most, filtered).await;
    rollback(tx);
    let number = |((source, _), _): Candidate| source.as_u128() & 0xffff_ffff_ffff;
    let mut numbers: Vec<u128> = found?.into_iter().map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

#[tokio::test]
async fn the_index_finds_the_same_chunks_as_a_full_scan() {
    let Some(cluster) = Cluster::start_from_env(PGVECTOR) else {
        return;
    };
    let (_, as_owner) = owned(&cluster);
    let (postgres, _) = open(&as_owner).await;
    fill(&postgres, "a", "m", 4_095).await;
    let sign = "0000101010101010";
    // All chunks whose signs differ in at most two of twelve bits: no other chunk is as near.
    let exact = numbers(&postgres, sign, 79, false).await.unwrap();
    assert_eq!(exact.len(), 79);
    postgres.index_signs(&[many("a", "m")]).await.unwrap();
    assert_eq!(found(&postgres, "a", 299).await, (299, 299));
    let by_index = numbers(&postgres, sign, 299, false).await.unwrap();
    let missed: Vec<_> = exact.iter().filter(|n| !by_index.contains(n)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// A result that is too short is discarded, and a filtered search does not use the index.
#[tokio::test]
async fn falls_back_to_a_full_scan_if_the_index_finds_too_few() {
    let url = Cluster::shared().database();
    let (postgres, _) = open(&url).await;
    fill(&postgres, "a", "m", 50).await;
    let pretend = |body: &str| {
        let function = format!(
            "CREATE OR REPLACE FUNCTION onward_near(of_tenant text, of_model text, asked text, \
             most bigint) RETURNS TABLE (source_id uuid, ordinal bigint, vector bytea) \
             LANGUAGE plpgsql AS $f$ BEGIN {body} END $f$"
        );
        psql(&url, &function).unwrap();
    };
    let zero = "0000000000000000";
    let nearest = numbers(&postgres, zero, 5, false).await.unwrap();
    assert_eq!(nearest, [1, 2, 4, 8, 16]);
    let last = |how_many| {
        format!(
            "RETURN QUERY SELECT s.source_id, s.ordinal, s.vector FROM vectors s \
             ORDER BY s.source_id DESC LIMIT {how_many};"
        )
    };
    pretend(&last(4));
    assert_eq!(numbers(&postgres, zero, 5, false).await.unwrap(), nearest);
    pretend(&last(5));
    let accepted = numbers(&postgres, zero, 5, false).await.unwrap();
    assert_eq!(accepted, [46, 47, 48, 49, 50]);
    pretend("RAISE EXCEPTION 'called';");
    assert!(numbers(&postgres, zero, 5, false).await.is_err());
    let filtered = numbers(&postgres, zero, 5, true).await.unwrap();
    assert_eq!(filtered, [], "no chunk has an artifact here");
}

#[tokio::test]
async fn drops_unneeded_indexes_and_rebuilds_invalid_ones() {
    let Some(cluster) = Cluster::start_from_env(PGVECTOR) else {
        return;
    };
    let url = cluster.database();
    let (postgres, _) = open(&url).await;
    fill(&postgres, "a", "m", 300).await;
    fill(&postgres, "b", "m", 300).await;
    let both = [many("a", "m"), many("b", "m")];
    // The extension is not created yet; this login may create it.
    let available = postgres.vector_extension().await.unwrap();
    assert!(
        matches!(available, VectorExtension::Available { .. }),
        "{available:?}"
    );
    assert_eq!(postgres.index_signs(&both).await.unwrap().made, 2);
    assert_eq!(indexes(&url), "2 of 2");

    psql(
        &url,
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = \
         to_regclass(onward_near_index('a', 'm', 16))",
    )
    .unwrap();
    assert_eq!(indexes(&url), "1 of 2");
    assert_eq!(
        found(&postgres, "a", 20).await,
        (0, 20),
        "an invalid index is not used"
    );
    let rebuilt = Indexed {
        made: 1,
        dropped: 1,
    };
    assert_eq!(postgres.index_signs(&both).await.unwrap(), rebuilt);
    assert_eq!(found(&postgres, "a", 20).await, (20, 20));

    // A tenant that shrank a little keeps its index; one that shrank more does not, nor does an
    // index for another model remain.
    let mut fewer = both.clone();
    fewer[0].chunks = MANY / 2;
    fewer[1].chunks = MANY / 2 - 1;
    let dropped = postgres.index_signs(&fewer).await.unwrap();
    assert_eq!((dropped.made, dropped.dropped), (0, 1));
    assert_eq!(found(&postgres, "a", 20).await, (20, 20));
    assert_eq!(found(&postgres, "b", 20).await, (0, 20));
    postgres.index_signs(&[many("a", "other")]).await.unwrap();
    assert_eq!(found(&postgres, "a", 20).await, (0, 20));
}

#[tokio::test]
async fn uses_the_index_despite_dead_entries() {
    let Some(cluster) = Cluster::start_from_env(PGVECTOR) else {
        return;
    };
    let url = cluster.database();
    let (postgres, _) = open(&url).await;
    psql(
        &url,
        "ALTER TABLE chunk_signs SET (autovacuum_enabled = off)",
    )
    .unwrap();
    fill(&postgres, "a", "m", 3_000).await;
    postgres.index_signs(&[many("a", "m")]).await.unwrap();
    let mut tx = begin(&postgres, "a");
    let delete = "DELETE FROM chunk_signs WHERE tenant_id = $1 AND bit_count(sign) < 6";
    tx.queue(Statement::new(Query::Text(delete), vec![]));
    commit(tx).await.unwrap();
    assert_eq!(found(&postgres, "a", 100).await, (100, 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn does_nothing_while_another_server_builds() {
    let Some(cluster) = Cluster::start_from_env(PGVECTOR) else {
        return;
    };
    let url = cluster.database();
    let (postgres, _) = open(&url).await;
    fill(&postgres, "a", "m", 300).await;
    let other = postgres.0.address.open_long_lived().await.unwrap();
    other.client.batch_execute(LOCK).await.unwrap();
    let wanted = [many("a", "m")];
    assert_eq!(postgres.index_signs(&wanted).await.unwrap(), NOTHING);
    // The other server exits.
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    drop(other);
    let free = (0..1_000).any(|_| psql(&url, locks).unwrap().trim() == "0");
    assert!(free, "its lock was released");
    assert_eq!(postgres.index_signs(&wanted).await.unwrap(), MADE);
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_an_index_once_while_a_server_waits_for_the_lease() {
    let Some(cluster) = Cluster::start_from_env(PGVECTOR) else {
        return;
    };
    let url = cluster.database();
    let (postgres, _) = open(&url).await;
    fill(&postgres, "a", "m", 2_000).await;
    // A leader, and a server that waits for its lease: a snapshot that does not end would block the
    // build.
    let leading = postgres.lead("sweep").await.unwrap();
    let waiting = postgres.clone();
    let waiting = tokio::spawn(async move { waiting.lead("sweep").await.map(drop) });
    let builds: Vec<_> = (0..4)
        .map(|_| {
            let postgres = postgres.clone();
            tokio::spawn(async move { postgres.index_signs(&[many("a", "m")]).await.unwrap() })
        })
        .collect();
    let mut made = 0;
    for build in builds {
        let patience = Duration::from_secs(90);
        let build = tokio::time::timeout(patience, build).await;
        made += build.expect("the build is not blocked").unwrap().made;
    }
    assert_eq!(made, 1);
    assert_eq!(indexes(&url), "1 of 1");
    assert!(!waiting.is_finished(), "still waiting");
    drop(leading);
    let patience = Duration::from_secs(20);
    let led = tokio::time::timeout(patience, waiting).await;
    led.expect("the waiting server was woken").unwrap().unwrap();
}

#[tokio::test]
async fn works_without_the_extension_if_the_login_may_not_create_it() {
    let Some(cluster) = Cluster::start_from_env(PGVECTOR) else {
        return;
    };
    let url = cluster.database();
    let owner = format!("owner_{}", url.rsplit('/').next().unwrap());
    psql(&url, &format!("CREATE ROLE {owner} LOGIN CREATEROLE")).unwrap();
    psql(&url, &format!("GRANT CREATE ON SCHEMA public TO {owner}")).unwrap();
    let (postgres, _) = open(&as_role(&url, &owner)).await;
    fill(&postgres, "a", "m", 300).await;
    let wanted = [many("a", "m")];
    assert_eq!(postgres.index_signs(&wanted).await.unwrap(), NOTHING);
    assert_eq!(found(&postgres, "a", 20).await, (0, 20));
    // An administrator creates it, and no restart is needed.
    psql(&url, "CREATE EXTENSION vector").unwrap();
    assert_eq!(postgres.index_signs(&wanted).await.unwrap(), MADE);
    assert_eq!(found(&postgres, "a", 20).await, (20, 20));
}

#[tokio::test]
async fn works_without_a_supported_pgvector() {
    let old = Cluster::start_from_env(OLD_PGVECTOR);
    let mut servers = vec![(Cluster::shared().database(), false)];
    if let Some(cluster) = &old {
        let url = cluster.database();
        psql(&url, "CREATE EXTENSION vector").unwrap();
        servers.push((url, true));
    }
    for (url, is_old) in servers {
        let (postgres, _) = open(&url).await;
        fill(&postgres, "a", "m", 300).await;
        let made = postgres.index_signs(&[many("a", "m")]).await.unwrap();
        assert_eq!(made, NOTHING);
        assert_eq!(found(&postgres, "a", 20).await, (0, 20));
        let seen = postgres.vector_extension().await.unwrap();
        let fits = match &seen {
            VectorExtension::TooOld { version, newer } => {
                is_old && version == "0.6.2" && newer.is_none()
            }
            // The shared server may have any version, or none.
            VectorExtension::Missing
            | VectorExtension::Available { .. }
            | VectorExtension::Used { .. } => !is_old,
        };
        assert!(fits, "{seen:?}");
    }
}

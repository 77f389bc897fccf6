//! Waiting for the leader lock: the waiting server is woken, and does not hold a snapshot for long.

use onward_testbed::psql;

use super::*;

/// Start of the transaction that waits for the lock.
fn waits_since(url: &str) -> Option<String> {
    let question = "SELECT xact_start FROM pg_stat_activity \
        WHERE datname = current_database() AND wait_event = 'advisory'";
    let since = psql(url, question).unwrap().trim().to_owned();
    (!since.is_empty()).then_some(since)
}

#[tokio::test(flavor = "multi_thread")]
async fn renews_its_snapshot_while_waiting_for_the_leader_lock() {
    let url = Cluster::shared().database();
    let (postgres, _) = open(&url).await;
    let leading = postgres.lead(Lead::Sweep).await.unwrap();
    let waiting = postgres.clone();
    let waiting = tokio::spawn(async move { waiting.lead(Lead::Sweep).await.map(drop) });
    let first = (0..1_000).find_map(|_| waits_since(&url));
    let first = first.expect("a server waits");
    let later = (0..500)
        .filter_map(|_| waits_since(&url))
        .find(|since| *since != first);
    assert!(later.is_some(), "the snapshot was renewed");
    assert!(!waiting.is_finished());
    drop(leading);
    let led = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    led.expect("the waiting server was woken").unwrap().unwrap();
}

#[tokio::test]
async fn rejects_a_server_whose_advisory_locks_have_no_effect() {
    let url = Cluster::shared().database();
    let (postgres, _) = open(&url).await;
    // As on CockroachDB: every session gets the lock.
    let without_locks = "CREATE SCHEMA no_locks; \
        CREATE FUNCTION no_locks.pg_try_advisory_lock(bigint) RETURNS boolean \
            LANGUAGE sql AS 'SELECT true'; \
        DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = \
            no_locks, public, pg_catalog', current_database()); END $$";
    psql(&url, without_locks).unwrap();
    let led = postgres.lead(Lead::Sweep).await;
    assert!(matches!(led, Err(Error::Address { .. })));
}

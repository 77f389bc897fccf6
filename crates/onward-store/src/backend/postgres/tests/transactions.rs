//! Transactions: all or nothing, for every kind of failure.

use tokio::time::timeout;
use tokio_postgres::error::SqlState;

use super::*;

#[tokio::test]
async fn rolls_back_on_an_unexpected_row_count() {
    let postgres = fresh().await;
    let mut tx = begin(&postgres, "a");
    for statement in [
        key("one").expecting(1),
        Statement::new(RENAME, params!["missing", "x"]).expecting(1),
        key("two").expecting(1),
    ] {
        tx.queue(statement);
    }
    let why = commit(tx).await.unwrap_err();
    let expected = format!("`{}` affected 0 rows, expected 1", RENAME.name());
    assert!(
        matches!(&why, Error::Refused { why: message, .. } if *message == expected),
        "{why}"
    );
    assert_eq!(keys(&postgres, "a").await, 0);

    // An error in the middle of a transaction prevents the commit, even if the caller ignores it.
    let mut tx = begin(&postgres, "a");
    for statement in [key("one").expecting(1), key("two").expecting(2)] {
        tx.queue(statement);
    }
    let question = Statement::new(KEYS, vec![]);
    assert!(tx.query(vec![question]).await.is_err());
    let statement = key("three");
    tx.queue(statement);
    assert!(commit(tx).await.is_err());
    assert_eq!(keys(&postgres, "a").await, 0);
}

#[tokio::test]
async fn rolls_back_on_a_value_that_cannot_be_encoded() {
    let postgres = fresh().await;
    for misfit in [Value::Text("a\0b".into()), Value::Int(1)] {
        let mut tx = begin(&postgres, "a");
        let bad = Statement::without_tenant(KEY, params!["a", misfit, uuid::Uuid::nil()]);
        for statement in [key("one"), bad, key("two")] {
            tx.queue(statement);
        }
        assert!(matches!(commit(tx).await, Err(Error::Refused { .. })));
        assert_eq!(keys(&postgres, "a").await, 0);
    }
}

#[tokio::test]
async fn reports_a_lost_race_for_a_duplicate_key() {
    let postgres = fresh().await;
    put(&postgres, "a", "one").await.unwrap();
    assert!(matches!(
        put(&postgres, "a", "one").await,
        Err(Error::LostRace)
    ));

    let mut tx = begin(&postgres, "a");
    let statement = key("one");
    tx.queue(statement);
    assert!(!tx.lost_race());
    assert!(matches!(tx.query(vec![]).await, Err(Error::LostRace)));
    assert!(tx.query(vec![key("two")]).await.is_err());
    assert!(tx.lost_race(), "even if the caller ignored the error");
    rollback(tx);
    assert_eq!(keys(&postgres, "a").await, 1);
}

#[tokio::test]
async fn errors_keep_their_cause() {
    let postgres = fresh().await;
    let corrupt = Query::Text(
        "DO $$ BEGIN RAISE EXCEPTION 'damaged page' USING ERRCODE = 'data_corrupted'; END $$",
    );
    let invalid = Query::Text("SELECT 1 / 0 AS n");
    for (query, code) in [
        (corrupt, SqlState::DATA_CORRUPTED),
        (invalid, SqlState::DIVISION_BY_ZERO),
    ] {
        let mut tx = begin(&postgres, "a");
        let error = number(&mut tx, query, vec![]).await.unwrap_err();
        let is_corrupt = matches!(error, Error::Corrupt { .. });
        assert_eq!(is_corrupt, code == SqlState::DATA_CORRUPTED, "{error}");
        let cause = error.cause::<tokio_postgres::Error>();
        assert_eq!(cause.and_then(|cause| cause.code()), Some(&code), "{error}");
        rollback(tx);
    }
}

fn advancing(postgres: &Postgres, tenant: &str) -> Tx {
    begin_as(postgres, tenant.into(), Mode::Optimistic)
}

#[tokio::test]
async fn a_transition_locks_nothing_and_detects_several_snapshots() {
    let postgres = fresh().await;
    put(&postgres, "a", "one").await.unwrap();
    let mut tx = advancing(&postgres, "a");
    assert_eq!(number(&mut tx, KEYS, params!["a"]).await.unwrap(), 1);
    put(&postgres, "a", "two").await.unwrap();
    assert!(!tx.needs_revalidation(), "a single snapshot");
    let seen = number(&mut tx, KEYS, params!["a"]).await.unwrap();
    assert_eq!(seen, 2, "each query has its own snapshot");
    assert!(
        tx.needs_revalidation(),
        "two snapshots, and no version check"
    );
    tx.queue(Statement::without_tenant(Query::PlanMove, vec![]).checking_version());
    assert!(!tx.needs_revalidation(), "the commit checks the version");
    rollback(tx);
}

#[tokio::test]
async fn a_transition_is_atomic() {
    let postgres = fresh().await;
    let mut tx = advancing(&postgres, "a");
    let one = key("one");
    tx.queue(one);
    commit(tx).await.unwrap();
    assert_eq!(keys(&postgres, "a").await, 1, "a single statement");

    let mut tx = advancing(&postgres, "a");
    for name in ["two", "one"] {
        let statement = key(name);
        tx.queue(statement);
    }
    let lost = commit(tx).await;
    assert!(matches!(lost, Err(Error::LostRace)), "{lost:?}");
    assert_eq!(keys(&postgres, "a").await, 1, "neither was written");

    let mut tx = advancing(&postgres, "a");
    let two = key("two");
    tx.queue(two);
    tx.query(vec![]).await.unwrap();
    assert_eq!(keys(&postgres, "a").await, 1, "not committed");
    rollback(tx);
    assert_eq!(keys(&postgres, "a").await, 1, "rolled back");
}

#[tokio::test]
async fn statements_after_a_lost_race_are_not_sent() {
    let postgres = fresh().await;
    put(&postgres, "a", "one").await.unwrap();
    let mut tx = advancing(&postgres, "a");
    tx.queue(key("one"));
    // It depends on the state that the race changed, so it would fail.
    tx.queue(Statement::new(RENAME, params!["missing", "x"]).expecting(1));
    let lost = tx.query(vec![Statement::new(KEYS, vec![])]).await;
    assert!(matches!(lost, Err(Error::LostRace)), "{lost:?}");
    rollback(tx);

    // Also if a later statement may lose a race, too.
    let mut tx = advancing(&postgres, "a");
    tx.queue(key("one"));
    tx.queue(Statement::new(RENAME, params!["missing", "x"]).expecting(1));
    tx.queue(key("two"));
    let lost = commit(tx).await;
    assert!(matches!(lost, Err(Error::LostRace)), "{lost:?}");
    assert_eq!(keys(&postgres, "a").await, 1);
}

#[tokio::test]
async fn sets_the_tenant_of_a_reused_connection() {
    // One connection serves them all: the pool returns the most recently used one first.
    let postgres = fresh().await;
    for tenant in ["a", "b", "a"] {
        let mut tx = advancing(&postgres, tenant);
        let one = key(&format!("of {tenant}"));
        tx.queue(one);
        // The second commit of `a` loses the race.
        drop(commit(tx).await);
    }
    for tenant in ["a", "b"] {
        let mut tx = advancing(&postgres, tenant);
        let seen = number(&mut tx, ALL_KEYS, vec![]).await.unwrap();
        assert_eq!(seen, 1, "`{tenant}` sees only its own rows");
        rollback(tx);
    }
}

#[tokio::test]
async fn names_the_violated_constraint() {
    let postgres = fresh().await;
    let mut tx = begin(&postgres, "a");
    let statement = Statement::new(EVENT, params![uuid::Uuid::nil(), 0i64]);
    tx.queue(statement);
    let why = commit(tx).await.unwrap_err();
    assert!(
        matches!(&why, Error::Refused { why: message, .. } if message.contains("events")),
        "{why}"
    );
    let mut tx = begin(&postgres, "a");
    let why = tx
        .query(vec![Statement::without_tenant(
            Query::Text("SELECT nothing"),
            vec![],
        )])
        .await
        .unwrap_err();
    assert!(
        matches!(&why, Error::Refused { why: message, .. } if message.contains("42703")),
        "{why}"
    );
    rollback(tx);
}

#[tokio::test]
async fn a_reader_sees_one_snapshot_and_cannot_write() {
    let postgres = fresh().await;
    let mut reader = begin_as(&postgres, "a".into(), Mode::Read);
    assert_eq!(number(&mut reader, KEYS, params!["a"]).await.unwrap(), 0);
    put(&postgres, "a", "one").await.unwrap();
    assert_eq!(number(&mut reader, KEYS, params!["a"]).await.unwrap(), 0);
    let statement = key("two");
    reader.queue(statement);
    assert!(reader.query(vec![]).await.is_err());
    rollback(reader);
    assert_eq!(keys(&postgres, "a").await, 1);
}

#[tokio::test]
async fn does_not_reuse_a_connection_inside_a_transaction() {
    let postgres = fresh().await;
    for case in 0..3 {
        let mut tx = begin(&postgres, "a");
        match case {
            0 => tx.queue(key("one")),
            1 => {
                let statement = key("one");
                tx.queue(statement);
                tx.query(vec![]).await.unwrap();
            }
            _ => {
                let sleeping = Statement::without_tenant(Query::Text("SELECT pg_sleep(5)"), vec![]);
                let asking = tx.query(vec![sleeping]);
                assert!(timeout(Duration::from_millis(100), asking).await.is_err());
            }
        }
        drop(tx);
        assert_eq!(postgres.0.pool.size(), 0, "case {case}");
        let mut tx = begin(&postgres, "b");
        assert_eq!(number(&mut tx, ALL_KEYS, vec![]).await.unwrap(), 0);
        rollback(tx);
        let pool = &postgres.0.pool;
        assert_eq!(pool.size(), 1);
        pool.close_idle();
    }
    assert_eq!(keys(&postgres, "a").await, 0);
}

#[tokio::test]
async fn injects_faults_before_and_after_the_commit() {
    let postgres = fresh().await;
    for (operations, expected) in [(0, 0), (1, 1)] {
        let faults = Faults::armed();
        let exec = postgres.begin("a".into(), Mode::Lock);
        let mut tx = Tx::new(exec, "a".into(), faults.clone());
        let statement = key("one");
        tx.queue(statement);
        faults.fail_after(operations);
        assert!(matches!(commit(tx).await, Err(Error::Unavailable { .. })));
        assert_eq!(keys(&postgres, "a").await, expected);
    }
}

/// A fast server responds to `ROLLBACK` before the call that sends it returns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_a_connection_after_a_rollback() {
    let postgres = fresh().await;
    let process = Query::Text("SELECT pg_backend_pid()::bigint AS n");
    let mut processes = std::collections::BTreeSet::new();
    for _ in 0..3_000 {
        let mut tx = begin_as(&postgres, "a".into(), Mode::Read);
        let statement = Statement::without_tenant(process, vec![]);
        let rows = tx.query(vec![statement]).await.unwrap();
        processes.insert(rows[0][0].clone().cells("t").int("n").unwrap());
        rollback(tx);
    }
    assert_eq!(processes.len(), 1, "connections were closed");
}

#[tokio::test]
async fn a_connection_keeps_a_limited_number_of_prepared_statements() {
    let url = Cluster::shared().database();
    let (watchers, _) = broadcast::channel(1);
    let limits = Limits::new(Some(1));
    let postgres = Postgres::within(limits, &url, true, true, watchers).await;
    let postgres = postgres.unwrap();
    let mut most = 0;
    for number in 0..600 {
        let mut tx = begin(&postgres, "a");
        let text: &str = format!("SELECT {number}::bigint AS n").leak();
        assert_eq!(
            super::number(&mut tx, Query::Text(text), vec![])
                .await
                .unwrap(),
            number
        );
        let prepared = Query::Text("SELECT count(*) AS n FROM pg_prepared_statements");
        most = most.max(super::number(&mut tx, prepared, vec![]).await.unwrap());
        rollback(tx);
    }
    assert!((100..=300).contains(&most), "{most}");
}

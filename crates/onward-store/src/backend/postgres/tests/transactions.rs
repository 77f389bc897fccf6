//! Transactions: all or nothing, in every way in which something can be wrong.

use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn a_wrong_number_of_rows_takes_everything_back() {
    let postgres = fresh().await;
    let mut tx = begin(&postgres, "a");
    for statement in [
        key(&tx, "one").touching(1),
        tx.statement(RENAME, params!["missing", "x"]).touching(1),
        key(&tx, "two").touching(1),
    ] {
        tx.queue(statement);
    }
    let why = postgres.commit(tx).await.unwrap_err();
    let expected = format!("`{RENAME}` touched 0 rows, expected 1");
    assert!(
        matches!(&why, Error::Refused(words) if *words == expected),
        "{why}"
    );
    assert_eq!(keys(&postgres, "a").await, 0);

    // The same in the middle, and an answer that was not looked at does not make it good.
    let mut tx = begin(&postgres, "a");
    for statement in [key(&tx, "one").touching(1), key(&tx, "two").touching(2)] {
        tx.queue(statement);
    }
    let question = tx.statement(KEYS, vec![]);
    assert!(tx.ask(vec![question]).await.is_err());
    let statement = key(&tx, "three");
    tx.queue(statement);
    assert!(postgres.commit(tx).await.is_err());
    assert_eq!(keys(&postgres, "a").await, 0);
}

#[tokio::test]
async fn a_value_that_cannot_be_written_takes_everything_back() {
    let postgres = fresh().await;
    for misfit in [Value::Text("a\0b".into()), Value::Int(1)] {
        let mut tx = begin(&postgres, "a");
        let bad = Statement::outside(KEY, params!["a", misfit, uuid::Uuid::nil()]);
        for statement in [key(&tx, "one"), bad, key(&tx, "two")] {
            tx.queue(statement);
        }
        assert!(matches!(postgres.commit(tx).await, Err(Error::Refused(_))));
        assert_eq!(keys(&postgres, "a").await, 0);
    }
}

#[tokio::test]
async fn whoever_is_second_has_lost_the_race() {
    let postgres = fresh().await;
    put(&postgres, "a", "one").await.unwrap();
    assert!(matches!(
        put(&postgres, "a", "one").await,
        Err(Error::LostRace)
    ));

    let mut tx = begin(&postgres, "a");
    let statement = key(&tx, "one");
    tx.queue(statement);
    assert!(!tx.lost_race());
    assert!(matches!(tx.ask(vec![]).await, Err(Error::LostRace)));
    assert!(tx.ask(vec![key(&tx, "two")]).await.is_err());
    assert!(
        tx.lost_race(),
        "also for a caller that made something else of it"
    );
    postgres.rollback(tx).await;
    assert_eq!(keys(&postgres, "a").await, 1);
}

fn advancing(postgres: &Postgres, tenant: &str) -> Tx {
    postgres.begin(tenant.into(), Faults::default(), Kind::Advancing)
}

#[tokio::test]
async fn a_transition_holds_nothing_while_it_decides() {
    let postgres = fresh().await;
    put(&postgres, "a", "one").await.unwrap();
    let mut tx = advancing(&postgres, "a");
    assert_eq!(number(&mut tx, KEYS, params!["a"]).await.unwrap(), 1);
    put(&postgres, "a", "two").await.unwrap();
    assert!(!tx.is_doubtful(), "it has seen one moment");
    let seen = number(&mut tx, KEYS, params!["a"]).await.unwrap();
    assert_eq!(seen, 2, "every question sees its own moment");
    assert!(
        tx.is_doubtful(),
        "nothing says whether these two belong together"
    );
    tx.queue(Statement::outside("plan_move", vec![]));
    assert!(!tx.is_doubtful(), "the commit will tell");
    postgres.rollback(tx).await;
}

#[tokio::test]
async fn what_a_transition_writes_is_there_all_or_not_at_all() {
    let postgres = fresh().await;
    let mut tx = advancing(&postgres, "a");
    let one = key(&tx, "one");
    tx.queue(one);
    postgres.commit(tx).await.unwrap();
    assert_eq!(keys(&postgres, "a").await, 1, "one statement by itself");

    let mut tx = advancing(&postgres, "a");
    for name in ["two", "one"] {
        let statement = key(&tx, name);
        tx.queue(statement);
    }
    let lost = postgres.commit(tx).await;
    assert!(matches!(lost, Err(Error::LostRace)), "{lost:?}");
    assert_eq!(keys(&postgres, "a").await, 1, "nothing of the two");

    let mut tx = advancing(&postgres, "a");
    let two = key(&tx, "two");
    tx.queue(two);
    tx.ask(vec![]).await.unwrap();
    assert_eq!(keys(&postgres, "a").await, 1, "not yet");
    postgres.rollback(tx).await;
    assert_eq!(keys(&postgres, "a").await, 1, "and never");
}

#[tokio::test]
async fn a_connection_names_the_tenant_that_it_works_for() {
    // One connection serves them all: the one that was used last is taken first.
    let postgres = fresh().await;
    for tenant in ["a", "b", "a"] {
        let mut tx = advancing(&postgres, tenant);
        let one = key(&tx, &format!("of {tenant}"));
        tx.queue(one);
        // The second of `a` has lost the race against the first.
        drop(postgres.commit(tx).await);
    }
    for tenant in ["a", "b"] {
        let mut tx = advancing(&postgres, tenant);
        let seen = number(&mut tx, ALL_KEYS, vec![]).await.unwrap();
        assert_eq!(seen, 1, "`{tenant}` sees its own alone");
        postgres.rollback(tx).await;
    }
}

#[tokio::test]
async fn a_law_that_is_broken_is_refused_by_name() {
    let postgres = fresh().await;
    let mut tx = begin(&postgres, "a");
    let statement = tx.statement(EVENT, params![uuid::Uuid::nil(), 0i64]);
    tx.queue(statement);
    let why = postgres.commit(tx).await.unwrap_err();
    assert!(
        matches!(&why, Error::Refused(words) if words.contains("events")),
        "{why}"
    );
    let mut tx = begin(&postgres, "a");
    let why = tx
        .ask(vec![Statement::outside("SELECT nothing", vec![])])
        .await
        .unwrap_err();
    assert!(
        matches!(&why, Error::Refused(words) if words.contains("42703")),
        "{why}"
    );
    postgres.rollback(tx).await;
}

#[tokio::test]
async fn a_reader_sees_one_state_and_writes_nothing() {
    let postgres = fresh().await;
    let mut reader = postgres.begin("a".into(), Faults::default(), Kind::Reading);
    assert_eq!(number(&mut reader, KEYS, params!["a"]).await.unwrap(), 0);
    put(&postgres, "a", "one").await.unwrap();
    assert_eq!(number(&mut reader, KEYS, params!["a"]).await.unwrap(), 0);
    let statement = key(&reader, "two");
    reader.queue(statement);
    assert!(reader.ask(vec![]).await.is_err());
    postgres.rollback(reader).await;
    assert_eq!(keys(&postgres, "a").await, 1);
}

#[tokio::test]
async fn a_connection_that_was_cut_off_does_not_come_back_in_its_transaction() {
    let postgres = fresh().await;
    for how in 0..3 {
        let mut tx = begin(&postgres, "a");
        match how {
            0 => tx.queue(key(&tx, "one")),
            1 => {
                let statement = key(&tx, "one");
                tx.queue(statement);
                tx.ask(vec![]).await.unwrap();
            }
            _ => {
                let sleeping = Statement::outside("SELECT pg_sleep(5)", vec![]);
                let asking = tx.ask(vec![sleeping]);
                assert!(timeout(Duration::from_millis(100), asking).await.is_err());
            }
        }
        drop(tx);
        assert_eq!(postgres.0.pool.status().size, 0, "way {how}");
        let mut tx = begin(&postgres, "b");
        assert_eq!(number(&mut tx, ALL_KEYS, vec![]).await.unwrap(), 0);
        postgres.rollback(tx).await;
        let pool = &postgres.0.pool;
        assert_eq!(pool.status().size, 1);
        pool.retain(|_, _| false);
    }
    assert_eq!(keys(&postgres, "a").await, 0);
}

#[tokio::test]
async fn faults_strike_before_and_after_the_commit() {
    let postgres = fresh().await;
    for (operations, expected) in [(0, 0), (1, 1)] {
        let faults = Faults::armed();
        let mut tx = postgres.begin("a".into(), faults.clone(), Kind::Locking);
        let statement = key(&tx, "one");
        tx.queue(statement);
        faults.strike_after(operations);
        assert!(matches!(
            postgres.commit(tx).await,
            Err(Error::Unavailable { .. })
        ));
        assert_eq!(keys(&postgres, "a").await, expected);
    }
}

//! Several servers on one database.

use onward_core::{PlanId, Timestamp};
use onward_testbed::psql;
use tokio::time::timeout;

use super::*;
use crate::commit::Due;

#[tokio::test]
async fn changes_are_heard_on_every_server_once() {
    let url = Cluster::shared().database();
    let (one, mut on_one) = open(&url).await;
    let (two, mut on_two) = open(&url).await;
    let changed = |number| Changed {
        tenant: "a".into(),
        what: Subject::Plan(PlanId::from_u128(number)),
    };
    one.tell(vec![changed(1), changed(2)]);
    assert_eq!(on_one.recv().await.unwrap(), changed(1));
    assert_eq!(on_one.recv().await.unwrap(), changed(2));
    assert_eq!(on_two.recv().await.unwrap(), changed(1));
    assert_eq!(on_two.recv().await.unwrap(), changed(2));
    two.tell(vec![changed(3)]);
    assert_eq!(
        on_one.recv().await.unwrap(),
        changed(3),
        "its own were not told twice"
    );

    // Whoever leaves has told everything before.
    two.tell(vec![changed(4)]);
    drop(two);
    assert_eq!(on_one.recv().await.unwrap(), changed(4));
    let closed = async { while on_two.recv().await.is_ok() {} };
    timeout(Duration::from_secs(5), closed)
        .await
        .expect("the task has ended");
}

#[tokio::test]
async fn the_lead_passes_on() {
    let url = Cluster::shared().database();
    let (one, _) = open(&url).await;
    let (two, _) = open(&url).await;
    let first = one.lead(Lead::Sweep).await.unwrap();
    let waiting = tokio::spawn(async move { two.lead(Lead::Sweep).await });
    tokio::task::yield_now().await;
    let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = \
        (SELECT oid FROM pg_database WHERE datname = current_database()) AND NOT granted";
    while psql(&url, held).unwrap().trim() != "1" {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    drop(first);
    let second = timeout(Duration::from_secs(5), waiting)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(!second.is_lost());
}

#[tokio::test]
async fn the_rows_of_young_tables_are_counted_once_enough_has_changed() {
    let url = Cluster::shared().database();
    let (postgres, _watch) = open(&url).await;
    let mut tx = begin(&postgres, "a");
    tx.due(PlanId::from_u128(1), Due::At(Timestamp::from_millis(1)));
    postgres.commit(tx).await.unwrap();
    let counted = |table: &str| {
        let asked = format!("SELECT reltuples FROM pg_class WHERE oid = to_regclass('{table}')");
        psql(&url, &asked).unwrap().trim().to_owned()
    };
    let tell = |number: usize| {
        let what = Subject::Plan(PlanId::from_u128(number as u128));
        let tenant = "a".into();
        postgres.tell(vec![Changed { tenant, what }]);
    };
    (1..count::CHANGES).for_each(tell);
    assert_eq!(counted("due"), "-1", "not yet");
    tell(count::CHANGES);
    let is_counted = async {
        while counted("due") != "1" {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), is_counted)
        .await
        .expect("it is counted");
    assert_eq!(counted("steps"), "-1", "there is nothing to count");
}

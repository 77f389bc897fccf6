//! Several servers on one database.

use onward_core::next_check::Due;
use onward_core::{PlanId, Timestamp};
use onward_testbed::psql;
use tokio::time::timeout;

use super::*;
use crate::plan::write::Transitions;

#[tokio::test]
async fn notifies_every_server_once() {
    let url = Cluster::shared().database();
    let (one, mut on_one) = open(&url).await;
    let (two, mut on_two) = open(&url).await;
    let changed = |number| Changed {
        tenant: "a".into(),
        what: Subject::Plan(PlanId::from_u128(number)),
        seq: None,
    };
    one.publish(vec![changed(1), changed(2)]);
    assert_eq!(on_one.recv().await.unwrap(), changed(1));
    assert_eq!(on_one.recv().await.unwrap(), changed(2));
    assert_eq!(on_two.recv().await.unwrap(), changed(1));
    assert_eq!(on_two.recv().await.unwrap(), changed(2));
    two.publish(vec![changed(3)]);
    assert_eq!(
        on_one.recv().await.unwrap(),
        changed(3),
        "a server ignores its own notifications"
    );

    // A server that closes sends its queued notifications first.
    two.publish(vec![changed(4)]);
    drop(two);
    assert_eq!(on_one.recv().await.unwrap(), changed(4));
    let closed = async { while on_two.recv().await.is_ok() {} };
    timeout(Duration::from_secs(5), closed)
        .await
        .expect("the task has ended");
}

#[tokio::test]
async fn reports_missed_changes_after_a_lost_connection() {
    let url = Cluster::shared().database();
    let (one, mut on_one) = open(&url).await;
    let (two, _) = open(&url).await;
    let listening = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%LISTEN onward_changes%'";
    psql(&url, listening).unwrap();
    let received = timeout(Duration::from_secs(20), on_one.recv()).await;
    assert_eq!(received.unwrap().unwrap(), Changed::all());
    // Then changes are reported again.
    let changed = Changed {
        tenant: "a".into(),
        what: Subject::Plan(PlanId::from_u128(1)),
        seq: None,
    };
    two.publish(vec![changed.clone()]);
    let received = timeout(Duration::from_secs(20), on_one.recv()).await;
    assert_eq!(received.unwrap().unwrap(), changed);
    drop(one);
}

#[tokio::test]
async fn analyzes_new_tables_after_enough_changes() {
    let url = Cluster::shared().database();
    let (postgres, _watch) = open(&url).await;
    let mut tx = begin(&postgres, "a");
    Transitions(&mut tx).due(PlanId::from_u128(1), Due::At(Timestamp::from_millis(1)));
    commit(tx).await.unwrap();
    let row_estimate = |table: &str| {
        let query = format!("SELECT reltuples FROM pg_class WHERE oid = to_regclass('{table}')");
        psql(&url, &query).unwrap().trim().to_owned()
    };
    let notify = |number: usize| {
        let what = Subject::Plan(PlanId::from_u128(number as u128));
        let tenant = "a".into();
        let seq = None;
        postgres.publish(vec![Changed { tenant, what, seq }]);
    };
    (1..statistics::CHANGES).for_each(notify);
    assert_eq!(row_estimate("due"), "-1", "not yet");
    notify(statistics::CHANGES);
    let analyzed = async {
        while row_estimate("due") != "1" {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), analyzed)
        .await
        .expect("the table was analyzed");
    assert_eq!(row_estimate("steps"), "-1", "the table is empty");
}

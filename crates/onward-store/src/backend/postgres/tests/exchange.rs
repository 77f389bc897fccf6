//! Several servers on one database.

use onward_core::PlanId;
use onward_testbed::psql;
use tokio::time::timeout;

use super::*;

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

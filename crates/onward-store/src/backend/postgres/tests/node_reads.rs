//! Reads of the rows of all tenants while a node of a distributed database does not respond. The nodes
//! are stubs.

use std::time::Instant;

use onward_core::Timestamp;
use onward_testbed::{CITUS, TIMEOUT, distribute_due_times, psql, with_citus_path};

use super::*;
use crate::record::due::{DueChecks, DuePlan};
use crate::record::tenant::Tenants;
use crate::store::address::Address;
use crate::store::open::Options;
use crate::{NodeRead, Store};

const AT: i64 = 1_000;

async fn two_nodes() -> (Store, String) {
    let url = Cluster::shared().database();
    psql(&url, CITUS).unwrap();
    let url = with_citus_path(&url);
    let address = Address::Server(url.clone());
    Store::open(&address, Options::default()).await.unwrap();
    distribute_due_times(&url);
    let plans = "INSERT INTO due_1 VALUES ('a', '00000000-0000-0000-0000-000000000001', 1001); \
        INSERT INTO due_2 VALUES ('b', '00000000-0000-0000-0000-000000000002', 1000); \
        INSERT INTO tenants_1 VALUES ('a', 0, 0); INSERT INTO tenants_2 VALUES ('b', 0, 0)";
    psql(&url, plans).unwrap();
    let store = Store::open(&address, Options::default()).await.unwrap();
    (store, url)
}

async fn due(store: &Store) -> Result<Vec<NodeRead<Vec<DuePlan>>>, Error> {
    let until = Timestamp::from_millis(AT + 1);
    let due = store
        .read_nodes(move |tx| Box::pin(async move { DueChecks(tx).due_until(until, 9).await }));
    due.await
}

/// The tenants with due plans, in the order of their nodes.
async fn tenants(store: &Store) -> Vec<String> {
    let read = due(store).await.unwrap();
    let plans = read.into_iter().flat_map(|node| node.read);
    let mut tenants: Vec<String> = plans.map(|due| due.tenant.to_string()).collect();
    tenants.sort();
    tenants
}

async fn first_due(store: &Store) -> Option<Timestamp> {
    let first = store.read_nodes(|tx| Box::pin(async { DueChecks(tx).first_due().await }));
    let first = first.await.unwrap();
    first.into_iter().filter_map(|node| node.read).min()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_respond_does_not_hide_the_plans_of_others() {
    let (store, url) = two_nodes().await;
    assert_eq!(tenants(&store).await, ["a", "b"]);
    assert_eq!(first_due(&store).await, Some(Timestamp::from_millis(AT)));
    assert_eq!(store.partial_outage().await.unwrap(), None);

    psql(&url, "INSERT INTO citus.down VALUES (2)").unwrap();
    assert_eq!(tenants(&store).await, ["a"]);
    assert_eq!(
        first_due(&store).await,
        Some(Timestamp::from_millis(AT + 1))
    );
    assert!(store.has_node_down());
    let all = store.read_nodes(|tx| Box::pin(async { Tenants(tx).all_tenants().await }));
    let all: Vec<_> = all
        .await
        .unwrap()
        .into_iter()
        .map(|node| node.read)
        .collect();
    let names: Vec<&str> = all.iter().flatten().map(|tenant| &*tenant.name).collect();
    assert_eq!(names, ["a"]);
    let outage = store.partial_outage().await.unwrap().unwrap();
    let down: Vec<_> = outage
        .down
        .iter()
        .map(|node| (node.id, &*node.name))
        .collect();
    assert_eq!((outage.responding, down), (1, vec![(2, "worker:2")]));

    psql(&url, "INSERT INTO citus.down VALUES (1)").unwrap();
    assert!(matches!(due(&store).await, Err(Error::Unavailable { .. })));
    assert_eq!(
        store.partial_outage().await.unwrap(),
        None,
        "no tenant can work"
    );

    psql(&url, "DELETE FROM citus.down").unwrap();
    let deadline = Instant::now() + TIMEOUT;
    let read = loop {
        let read = due(&store).await.unwrap_or_default();
        if read.len() == 2 {
            break read;
        }
        assert!(Instant::now() < deadline, "the nodes are not read again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(read.iter().all(|node| node.back_for.is_some()), "{read:?}");
    assert!(!store.has_node_down());
    assert_eq!(tenants(&store).await, ["a", "b"]);
}

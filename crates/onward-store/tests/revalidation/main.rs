//! Revalidation: a transition that read several snapshots, without a version check at commit, runs
//! again with the plan locked (decision 0011). PostgreSQL only: on SQLite the file is locked from
//! the start.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onward_core::Timestamp;
use onward_store::{Address, Error, Options, Store, Tenants};
use onward_testbed::Cluster;

async fn create_tenant(store: &Store, tenant: &Arc<str>) -> Result<(), Error> {
    let made = store.write(tenant, |tx| {
        Box::pin(async {
            Tenants(tx).make_tenant(true, Timestamp::from_millis(0));
            Ok::<(), Error>(())
        })
    });
    made.await
}

#[tokio::test]
async fn repeats_a_decision_based_on_two_snapshots() {
    let address = Address::parse(&Cluster::shared().database()).unwrap();
    let store = Store::open(&address, Options::default()).await.unwrap();
    let tenant: Arc<str> = Arc::from("acme");
    let attempts = Arc::new(AtomicUsize::new(0));
    let (others, name, counted) = (store.clone(), Arc::clone(&tenant), Arc::clone(&attempts));
    let decided = store.transition(&tenant, move |tx| {
        counted.fetch_add(1, Ordering::SeqCst);
        let (others, name) = (others.clone(), Arc::clone(&name));
        Box::pin(async move {
            let before = Tenants(tx).own_tenant().await?.is_some();
            if !before {
                // Another caller commits between two queries of one decision.
                create_tenant(&others, &name).await?;
            }
            let after = Tenants(tx).own_tenant().await?.is_some();
            Ok::<_, Error>((before, after))
        })
    });
    assert_eq!(decided.await.unwrap(), (true, true));
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
    store.close().await;
}

#[tokio::test]
async fn accepts_a_decision_based_on_one_snapshot() {
    let address = Address::parse(&Cluster::shared().database()).unwrap();
    let store = Store::open(&address, Options::default()).await.unwrap();
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let tenant = Arc::from("acme");
    let decided = store.transition(&tenant, move |tx| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Ok::<_, Error>(Tenants(tx).own_tenant().await?.is_some()) })
    });
    assert!(!decided.await.unwrap());
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
    store.close().await;
}

//! What a transition saw in several moments, with no commit that would tell whether they belong together,
//! is looked at again with the plan held (decision 0011). A file is held from the start, so this is about
//! PostgreSQL.

#![allow(
    clippy::unwrap_used,
    reason = "a test says by a panic that something does not hold"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onward_core::Timestamp;
use onward_store::{Address, Error, Options, Store};
use onward_testbed::Cluster;

async fn make(store: &Store, tenant: &Arc<str>) -> Result<(), Error> {
    let made = store.write(tenant, |tx| {
        Box::pin(async {
            tx.make_tenant(true, Timestamp::from_millis(0));
            Ok::<(), Error>(())
        })
    });
    made.await
}

#[tokio::test]
async fn an_answer_that_never_was_the_case_is_not_given() {
    let address = Address::parse(&Cluster::shared().database()).unwrap();
    let store = Store::open(&address, Options::default()).await.unwrap();
    let tenant: Arc<str> = Arc::from("acme");
    let tries = Arc::new(AtomicUsize::new(0));
    let (others, name, counted) = (store.clone(), Arc::clone(&tenant), Arc::clone(&tries));
    let decided = store.advance(&tenant, move |tx| {
        counted.fetch_add(1, Ordering::SeqCst);
        let (others, name) = (others.clone(), Arc::clone(&name));
        Box::pin(async move {
            let before = tx.own_tenant().await?.is_some();
            if !before {
                // Somebody else is faster, between two questions of one decision.
                make(&others, &name).await?;
            }
            let after = tx.own_tenant().await?.is_some();
            Ok::<_, Error>((before, after))
        })
    });
    assert_eq!(decided.await.unwrap(), (true, true));
    assert_eq!(tries.load(Ordering::SeqCst), 2);
    store.close().await;
}

#[tokio::test]
async fn a_decision_of_one_moment_is_made_once() {
    let address = Address::parse(&Cluster::shared().database()).unwrap();
    let store = Store::open(&address, Options::default()).await.unwrap();
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    let tenant = Arc::from("acme");
    let decided = store.advance(&tenant, move |tx| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Ok::<_, Error>(tx.own_tenant().await?.is_some()) })
    });
    assert!(!decided.await.unwrap());
    assert_eq!(tries.load(Ordering::SeqCst), 1);
    store.close().await;
}

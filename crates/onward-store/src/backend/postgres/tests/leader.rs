//! Leases: one server leads, and another one takes over.

use std::time::Instant;

use onward_testbed::psql;
use tokio::time::timeout;

use super::*;

const TIME_LIMIT: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn passes_leadership_to_a_waiting_server() {
    let url = Cluster::shared().database();
    let (one, _) = open(&url).await;
    let (two, _) = open(&url).await;
    let first = one.lead("sweep").await.unwrap();
    let other = timeout(TIME_LIMIT, two.lead("embed")).await;
    drop(other.expect("another duty has its own leader").unwrap());
    let waiting = tokio::spawn(async move { two.lead("sweep").await });
    // The first server renews its lease several times.
    let expires = || psql(&url, "SELECT expires_at FROM leases WHERE duty = 'sweep'").unwrap();
    for _ in 0..2 {
        let before = expires();
        let began = Instant::now();
        while expires() == before {
            assert!(began.elapsed() < TIME_LIMIT, "the lease was not renewed");
        }
    }
    assert!(!waiting.is_finished() && !first.is_lost());
    drop(first);
    let second = timeout(TIME_LIMIT, waiting)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(!second.is_lost());
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_an_expired_lease_whose_holder_then_stops() {
    let url = Cluster::shared().database();
    let (one, _) = open(&url).await;
    let (two, _) = open(&url).await;
    let mut first = one.lead("sweep").await.unwrap();
    // The lease of a holder that was suspended, or whose renewals were lost in a failover.
    psql(&url, "UPDATE leases SET expires_at = 0").unwrap();
    // Unless the holder renewed it first.
    let second = timeout(TIME_LIMIT, async {
        loop {
            let led = timeout(Duration::from_secs(1), two.lead("sweep")).await;
            match led {
                Ok(led) => return led.unwrap(),
                Err(_) => drop(psql(&url, "UPDATE leases SET expires_at = 0").unwrap()),
            }
        }
    });
    let second = second.await.unwrap();
    timeout(TIME_LIMIT, first.lost()).await.unwrap();
    assert!(first.is_lost() && !second.is_lost());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_server_holds_no_connection_and_no_snapshot() {
    let url = Cluster::shared().database();
    let (postgres, _) = open(&url).await;
    let _leading = postgres.lead("sweep").await.unwrap();
    let waiting = postgres.clone();
    let waiting = tokio::spawn(async move { waiting.lead("sweep").await.map(drop) });
    tokio::task::yield_now().await;
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
        AND pid <> pg_backend_pid() AND (state <> 'idle' OR wait_event = 'advisory')";
    let began = Instant::now();
    while psql(&url, waits).unwrap().trim() != "0" {
        assert!(began.elapsed() < TIME_LIMIT);
    }
    assert!(!waiting.is_finished());
    waiting.abort();
}

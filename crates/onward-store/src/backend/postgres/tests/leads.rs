//! Who waits for the lead is woken, and is in nobody's way until then.

use onward_testbed::psql;

use super::*;

/// When whoever waits began to look at the database.
fn looks_since(url: &str) -> Option<String> {
    let question = "SELECT xact_start FROM pg_stat_activity \
        WHERE datname = current_database() AND wait_event = 'advisory'";
    let since = psql(url, question).unwrap().trim().to_owned();
    (!since.is_empty()).then_some(since)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_the_lead_lets_go_of_the_past_again_and_again() {
    let url = Cluster::shared().database();
    let (postgres, _) = open(&url).await;
    let leading = postgres.lead(Lead::Sweep).await.unwrap();
    let waiting = postgres.clone();
    let waiting = tokio::spawn(async move { waiting.lead(Lead::Sweep).await.map(drop) });
    let first = (0..1_000).find_map(|_| looks_since(&url));
    let first = first.expect("somebody waits");
    let later = (0..500)
        .filter_map(|_| looks_since(&url))
        .find(|since| *since != first);
    assert!(later.is_some(), "it looks anew");
    assert!(!waiting.is_finished());
    drop(leading);
    let led = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    led.expect("it is woken").unwrap().unwrap();
}

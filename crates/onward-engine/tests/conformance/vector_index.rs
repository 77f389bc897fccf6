//! The pgvector index: created for tenants with many chunks. Results and filters are the same as
//! without it, and small tenants in the same database are searched without it.

use std::sync::Arc;
use std::time::Duration;

use onward_engine::embed::Embedder;
use onward_engine::engine::Settings;
use onward_engine::search::SearchRequest;
use onward_engine::{Address, Caller, Engine, Indexed, MANY};
use onward_testbed::{Cluster, PGVECTOR, psql};
use tokio::sync::watch;

use crate::embedder::TestEmbedder;
use crate::research::finding;

/// Inserts chunks of the tenant `local` with vectors unrelated to the query.
fn insert_unrelated(url: &str, chunks: u64) {
    let id = "('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid";
    let rows = format!("generate_series(1, {chunks}) AS n");
    let insert = format!(
        "SET onward.tenant = 'local'; INSERT INTO chunk_signs SELECT 'local', {id}, 0, 'test', \
         (n * 7919)::bit(12) FROM {rows}; INSERT INTO vectors SELECT 'local', {id}, 0, \
         '\\x810101010101010101010101' FROM {rows}"
    );
    psql(url, &insert).unwrap();
}

/// The number of candidates that the index returns.
fn index_candidates(url: &str, tenant: &str) -> u64 {
    let query = format!(
        "SET onward.tenant = '{tenant}'; \
         SELECT count(*) FROM onward_near('{tenant}', 'test', '100000000000', 1000)"
    );
    psql(url, &query).unwrap().trim().parse().unwrap()
}

async fn titles(engine: &Engine, caller: &Caller, kind: Option<&str>) -> Vec<String> {
    let request = SearchRequest {
        query: "cetacean".to_owned(),
        kind: kind.map(str::to_owned),
        ..SearchRequest::default()
    };
    let found = engine.search(caller, request).await.unwrap().results;
    found.into_iter().map(|found| found.hit.title).collect()
}

#[tokio::test]
async fn large_tenants_use_the_index_and_small_tenants_do_not() {
    let Some(cluster) = Cluster::start_from_env(PGVECTOR) else {
        return;
    };
    let url = cluster.database();
    let address = Address::Server(url.clone());
    let open = Engine::open(&address, Settings::default()).await;
    let model: Arc<dyn Embedder> = Arc::new(TestEmbedder::new("test"));
    let engine = open.unwrap().with_embedder(model);
    let me = Caller::local("me");
    engine.create_tenant("small").await.unwrap();
    let small = engine.operator("small", "me").await.unwrap();
    for (caller, title, content, kind) in [
        (&me, "Orcas", "The orca hunts.", Some("quote")),
        (&me, "Dolphins", "The dolphin plays. A loaf of bread.", None),
        (&small, "Whales", "The whale sings.", None),
    ] {
        let mut finding = finding(title, content);
        finding.kind = kind.map(str::to_owned);
        engine.store_research(caller, finding).await.unwrap();
    }
    engine.embed_pending().await.unwrap();
    insert_unrelated(&url, MANY - 3);
    let indexed = engine.update_indexes().await.unwrap();
    assert_eq!(indexed, Indexed::default(), "one chunk too few");
    let before = titles(&engine, &me, None).await;
    assert_eq!(before, ["Orcas", "Dolphins"]);

    engine
        .store_research(&me, finding("Loaves", "A loaf of the bakery."))
        .await
        .unwrap();
    engine.embed_pending().await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let (sender, mut rounds) = tokio::sync::mpsc::unbounded_channel();
    let indexer = engine.clone();
    let indexing = tokio::spawn(async move {
        let report = |done: &Result<Indexed, onward_engine::Error>| {
            sender
                .send(done.as_ref().unwrap().made)
                .expect("channel is open");
        };
        indexer.run_indexer(stopped, report).await;
    });
    let created = tokio::time::timeout(Duration::from_secs(120), rounds.recv()).await;
    assert_eq!(created.expect("index was created"), Some(1));
    assert_eq!(index_candidates(&url, "local"), 1_000);
    assert_eq!(index_candidates(&url, "small"), 0);
    assert_eq!(titles(&engine, &me, None).await[..2], before);
    assert_eq!(titles(&engine, &me, Some("quote")).await, ["Orcas"]);
    assert_eq!(titles(&engine, &small, None).await, ["Whales"]);
    // A text stored after the index was created is found as soon as it is embedded.
    engine
        .store_research(&me, finding("More", "cetacean cetacean cetacean"))
        .await
        .unwrap();
    engine.embed_pending().await.unwrap();
    assert_eq!(titles(&engine, &me, None).await[0], "More");
    stop.send(true).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), indexing).await;
    ended.expect("task has stopped").unwrap();
    engine.close().await;
}

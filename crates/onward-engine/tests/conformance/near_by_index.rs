//! Whoever has many chunks, on a server that has pgvector, is searched by an index: what is found is the
//! same, filters hold, and a small tenant beside a large one finds what it has.

use std::sync::Arc;
use std::time::Duration;

use onward_engine::embed::Embedder;
use onward_engine::engine::Settings;
use onward_engine::search::Wanted;
use onward_engine::{Address, Caller, Engine, Indexed, MANY};
use onward_testbed::{Cluster, PGVECTOR, psql};
use tokio::sync::watch;

use crate::meaning::Model;
use crate::research::finding;

/// Chunks of the tenant `local` that lie in all directions but the one that is asked for.
fn crowd(url: &str, chunks: u64) {
    let id = "('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid";
    let rows = format!("generate_series(1, {chunks}) AS n");
    let crowd = format!(
        "SET onward.tenant = 'local'; INSERT INTO chunk_signs SELECT 'local', {id}, 0, 'meaning', \
         (n * 7919)::bit(12) FROM {rows}; INSERT INTO vectors SELECT 'local', {id}, 0, \
         '\\x810101010101010101010101' FROM {rows}"
    );
    psql(url, &crowd).unwrap();
}

fn by_index(url: &str, tenant: &str) -> u64 {
    let question = format!(
        "SET onward.tenant = '{tenant}'; SELECT count(*) FROM onward_near('meaning', '100000000000', 1000)"
    );
    psql(url, &question).unwrap().trim().parse().unwrap()
}

async fn titles(engine: &Engine, caller: &Caller, kind: Option<&str>) -> Vec<String> {
    let wanted = Wanted {
        query: "cetacean".to_owned(),
        kind: kind.map(str::to_owned),
        ..Wanted::default()
    };
    let found = engine.search(caller, wanted).await.unwrap().found;
    found.into_iter().map(|found| found.hit.title).collect()
}

#[tokio::test]
async fn a_large_tenant_finds_the_same_by_an_index_and_a_small_one_what_it_has() {
    let Some(cluster) = Cluster::start_by(PGVECTOR) else {
        return;
    };
    let url = cluster.database();
    let address = Address::Server(url.clone());
    let open = Engine::open(&address, Settings::default()).await;
    let model: Arc<dyn Embedder> = Arc::new(Model::named("meaning"));
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
    engine.embed_waiting().await.unwrap();
    crowd(&url, MANY - 3);
    let one_too_few = engine.index_signs().await.unwrap();
    assert_eq!(one_too_few, Indexed::default());
    let before = titles(&engine, &me, None).await;
    assert_eq!(before, ["Orcas", "Dolphins"]);

    engine
        .store_research(&me, finding("Loaves", "A loaf of the bakery."))
        .await
        .unwrap();
    engine.embed_waiting().await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let (told, mut tells) = tokio::sync::mpsc::unbounded_channel();
    let kept = engine.clone();
    let keeping = tokio::spawn(async move {
        let tell = |done: &Result<Indexed, onward_engine::Error>| {
            told.send(done.as_ref().unwrap().made)
                .expect("somebody listens");
        };
        kept.keep_indexing(stopped, tell).await;
    });
    let made = tokio::time::timeout(Duration::from_secs(120), tells.recv()).await;
    assert_eq!(made.expect("it is built"), Some(1));
    assert_eq!(
        (by_index(&url, "local"), by_index(&url, "small")),
        (1_000, 0)
    );
    assert_eq!(titles(&engine, &me, None).await[..2], before);
    assert_eq!(titles(&engine, &me, Some("quote")).await, ["Orcas"]);
    assert_eq!(titles(&engine, &small, None).await, ["Whales"]);
    // What is stored while there is an index is found as soon as it is embedded.
    engine
        .store_research(&me, finding("More", "cetacean cetacean cetacean"))
        .await
        .unwrap();
    engine.embed_waiting().await.unwrap();
    assert_eq!(titles(&engine, &me, None).await[0], "More");
    stop.send(true).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), keeping).await;
    ended.expect("it stops when it is told to").unwrap();
    engine.close().await;
}

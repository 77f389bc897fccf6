//! Semantic search: texts are embedded in batches, resuming after an interruption, and found by
//! similarity.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use onward_core::Timestamp;
use onward_engine::embed::{EmbedError, EmbedRound, Embedder, EmbedderError, SearchHealth};
use onward_engine::engine::Settings;
use onward_engine::search::{Mode, SearchRequest, SearchResults};
use onward_engine::{Caller, Engine, Source};
use onward_testbed::Backend;
use tokio::sync::watch;

use crate::database::TestDatabase;
use crate::embedder::{EXHAUSTED, REJECTED, TestEmbedder, UNAVAILABLE};
use crate::harness::Harness;
use crate::on_both_databases;
use crate::research::finding;

/// The harness's engine with this embedder.
fn with_embedder(harness: &Harness, model: TestEmbedder) -> (Engine, Arc<TestEmbedder>) {
    let model = Arc::new(model);
    let embedder: Arc<dyn Embedder> = Arc::<TestEmbedder>::clone(&model);
    (harness.engine.clone().with_embedder(embedder), model)
}

fn request(query: &str) -> SearchRequest {
    SearchRequest {
        query: query.to_owned(),
        ..SearchRequest::default()
    }
}

async fn search(engine: &Engine, me: &Caller, query: &str) -> SearchResults {
    engine.search(me, request(query)).await.unwrap()
}

fn titles(searched: &SearchResults) -> Vec<&str> {
    let found = searched.results.iter();
    found.map(|found| found.hit.title.as_str()).collect()
}

async fn health(engine: &Engine, harness: &Harness) -> SearchHealth {
    engine.search_health(&harness.me).await.unwrap()
}

async fn finds_related_texts_without_a_common_word(harness: &Harness) {
    let (engine, _) = with_embedder(harness, TestEmbedder::new("test"));
    harness
        .store(finding("Orcas", "The orca hunts in groups."))
        .await;
    harness
        .store(finding("Loaves", "A loaf from the bakery."))
        .await;
    let before = search(&engine, &harness.me, "cetacean").await;
    assert_eq!(titles(&before), [""; 0], "nothing is embedded yet");
    assert_eq!(before.mode, Mode::Hybrid);
    let round = engine.embed_pending().await.unwrap();
    assert!(round.embedded >= 2, "{round:?}");
    let found = search(&engine, &harness.me, "cetacean").await;
    assert_eq!(titles(&found)[0], "Orcas");
    let first = &found.results[0];
    assert_eq!((first.keyword_rank, first.semantic_rank), (None, Some(1)));
    assert!((first.score - 1.0 / 61.0).abs() < 1e-9);
    assert!(first.similarity.unwrap() > 0.95, "{first:?}");
    assert!(first.snippet.contains("orca"), "{first:?}");
}

async fn ranks_results_of_both_searches_first(harness: &Harness) {
    let (engine, _) = with_embedder(harness, TestEmbedder::new("test"));
    harness
        .store(finding("Statutes", "a statute about the moon"))
        .await;
    harness
        .store(finding("Dolphins", "the dolphin, the orca"))
        .await;
    harness
        .store(finding("Both", "of a whale and a dolphin"))
        .await;
    engine.embed_pending().await.unwrap();
    let found = search(&engine, &harness.me, "whale").await;
    assert_eq!(titles(&found)[0], "Both");
    let both = &found.results[0];
    assert_eq!(both.keyword_rank, Some(1));
    let rank = f64::from(both.semantic_rank.unwrap());
    assert!((both.score - (1.0 / 61.0 + 1.0 / (60.0 + rank))).abs() < 1e-9);
    assert_eq!(found.mode, Mode::Hybrid);
    let all = engine
        .search_all_candidates(&harness.me, request("whale"))
        .await
        .unwrap();
    assert_eq!(all.results.len(), 3, "all results of both rankings");
}

async fn falls_back_to_full_text_search_when_the_model_is_unavailable(harness: &Harness) {
    let (engine, model) = with_embedder(harness, TestEmbedder::new("test"));
    harness.store(finding("Whales", "The whale sings.")).await;
    engine.embed_pending().await.unwrap();
    model.unavailable.store(true, Ordering::SeqCst);
    let found = search(&engine, &harness.me, "whale").await;
    assert_eq!(
        (found.mode, titles(&found)),
        (Mode::Keyword, vec!["Whales"])
    );
    assert_eq!(found.results[0].semantic_rank, None);
    let trouble = health(&engine, harness).await.last_failure.unwrap();
    assert_eq!(trouble.error, UNAVAILABLE);
    // Available again, but not used until the backoff ends, so that searches do not wait for it.
    model.unavailable.store(false, Ordering::SeqCst);
    let queries = model.queries.load(Ordering::SeqCst);
    assert_eq!(
        search(&engine, &harness.me, "whale").await.mode,
        Mode::Keyword
    );
    assert_eq!(model.queries.load(Ordering::SeqCst), queries);
    harness.environment.advance(Duration::from_secs(31));
    assert_eq!(
        search(&engine, &harness.me, "whale").await.mode,
        Mode::Hybrid
    );
    assert_eq!(health(&engine, harness).await.last_failure, None);
}

async fn filters_apply_to_both_searches(harness: &Harness) {
    let (engine, _) = with_embedder(harness, TestEmbedder::new("test"));
    let (one, other) = (harness.plan(1).await, harness.plan(1).await);
    let mut mine = finding("Mine", "an orca");
    mine.plan = Some(one.id);
    mine.kind = Some("quote".to_owned());
    harness.store(mine).await;
    let between = harness.engine.now();
    harness.environment.advance(Duration::from_secs(10));
    let mut theirs = finding("Theirs", "a dolphin");
    theirs.plan = Some(other.id);
    harness.store(theirs).await;
    harness
        .deliver(one.id, "Delivered", "about the whale")
        .await;
    engine.embed_pending().await.unwrap();
    let find = async |filter: &dyn Fn(&mut SearchRequest)| {
        let mut request = request("cetacean");
        filter(&mut request);
        let found = engine.search(&harness.me, request).await.unwrap();
        let mut titles: Vec<String> = titles(&found).into_iter().map(str::to_owned).collect();
        titles.sort();
        titles
    };
    let later = Timestamp::from_millis(between.as_millis() + 1);
    assert_eq!(find(&|_| {}).await, ["Delivered", "Mine", "Theirs"]);
    assert_eq!(
        find(&|request| request.plan = Some(one.id)).await,
        ["Delivered", "Mine"]
    );
    assert_eq!(
        find(&|request| request.plan = Some(other.id)).await,
        ["Theirs"]
    );
    assert_eq!(
        find(&|request| request.kind = Some("quote".to_owned())).await,
        ["Mine"]
    );
    assert_eq!(
        find(&|request| request.created_after = Some(later)).await,
        ["Delivered", "Theirs"]
    );
    assert_eq!(
        find(&|request| request.created_before = Some(later)).await,
        ["Mine"]
    );
}

async fn does_not_find_texts_of_another_tenant(harness: &Harness) {
    let (engine, _) = with_embedder(harness, TestEmbedder::new("test"));
    let other = harness.create_tenant("other").await;
    let theirs = finding("Theirs", "the whale");
    engine.store_research(&other, theirs).await.unwrap();
    engine.embed_pending().await.unwrap();
    assert_eq!(
        titles(&search(&engine, &harness.me, "cetacean").await),
        [""; 0]
    );
    assert_eq!(
        titles(&search(&engine, &other, "cetacean").await),
        ["Theirs"]
    );
    assert_eq!(health(&engine, harness).await.index.chunks, 0);
}

async fn embeds_only_chunks_that_are_not_embedded_yet(harness: &Harness) {
    let (engine, model) = with_embedder(harness, TestEmbedder::new("test"));
    // Embed what other tests have stored.
    engine.embed_pending().await.unwrap();
    model.batches.lock().unwrap().clear();
    for number in 0..6 {
        harness
            .store(finding(&format!("Note {number}"), "a moon"))
            .await;
    }
    let index = health(&engine, harness).await.index;
    assert_eq!((index.chunks, index.embedded, index.waiting), (6, 0, 6));
    // Unavailable after the first batch, which is kept.
    model.remaining.store(5, Ordering::SeqCst);
    let stopped = engine.embed_pending().await;
    let exhausted = EmbedderError::Unavailable(EXHAUSTED.to_owned());
    assert!(matches!(&stopped, Err(EmbedError::Model(cause)) if *cause == exhausted));
    let index = health(&engine, harness).await.index;
    assert_eq!((index.embedded, index.waiting), (4, 2));
    // Another process embeds only the rest.
    let (engine, model) = with_embedder(harness, TestEmbedder::new("test"));
    let round = engine.embed_pending().await.unwrap();
    assert_eq!(round.embedded, 2, "{round:?}");
    assert_eq!(*model.batches.lock().unwrap(), [2]);
    assert_eq!(engine.embed_pending().await.unwrap(), EmbedRound::default());
}

async fn another_model_embeds_all_chunks_again(harness: &Harness) {
    let (engine, _) = with_embedder(harness, TestEmbedder::new("old"));
    harness.store(finding("Whales", "a whale")).await;
    engine.embed_pending().await.unwrap();
    let (engine, _) = with_embedder(harness, TestEmbedder::new("new"));
    let index = health(&engine, harness).await.index;
    assert_eq!((index.embedded, index.waiting), (0, 1));
    let found = search(&engine, &harness.me, "cetacean").await;
    assert_eq!(
        titles(&found),
        [""; 0],
        "vectors of another model are not compared"
    );
    engine.embed_pending().await.unwrap();
    let index = health(&engine, harness).await.index;
    assert_eq!((index.embedded, index.waiting), (1, 0));
    assert_eq!(
        titles(&search(&engine, &harness.me, "cetacean").await),
        ["Whales"]
    );
    let tenant = &harness.me.tenant;
    let count = format!("SELECT count(*) FROM vectors WHERE tenant_id = '{tenant}'");
    assert_eq!(harness.sql(&count).unwrap(), "1");
}

async fn a_rejected_text_does_not_block_other_texts(harness: &Harness) {
    let mut model = TestEmbedder::new("test");
    model.rejected_word = Some("unspeakable");
    let (engine, _) = with_embedder(harness, model);
    harness.store(finding("First", "a whale")).await;
    harness
        .store(finding("Second", "an unspeakable whale"))
        .await;
    harness.store(finding("Third", "an orca")).await;
    let round = engine.embed_pending().await.unwrap();
    assert_eq!(round.rejected, 1, "{round:?}");
    let index = health(&engine, harness).await.index;
    assert_eq!((index.embedded, index.waiting, index.refused), (2, 0, 1));
    assert_eq!(engine.embed_pending().await.unwrap(), EmbedRound::default());
    let mut found = titles(&search(&engine, &harness.me, "cetacean").await).join(" ");
    found.make_ascii_lowercase();
    assert!(!found.contains("second"), "{found}");
}

async fn a_model_that_rejects_every_text_is_a_configuration_error(harness: &Harness) {
    let mut model = TestEmbedder::new("misconfigured");
    model.rejected_word = Some("");
    let (engine, _) = with_embedder(harness, model);
    harness.store(finding("First", "a whale")).await;
    let stopped = engine.embed_pending().await;
    let rejected = EmbedderError::Rejected(REJECTED.to_owned());
    assert!(matches!(&stopped, Err(EmbedError::Model(cause)) if *cause == rejected));
    let index = health(&engine, harness).await.index;
    assert_eq!(
        (index.waiting, index.refused),
        (1, 0),
        "no chunk is marked as rejected"
    );
}

async fn deleting_a_text_deletes_its_vectors(harness: &Harness) {
    let (engine, _) = with_embedder(harness, TestEmbedder::new("test"));
    let plan = harness.plan(1).await;
    harness.deliver(plan.id, "Answer", "a whale").await;
    engine.embed_pending().await.unwrap();
    let last = harness.deliver(plan.id, "Answer", "an orca").await;
    let index = health(&engine, harness).await.index;
    assert_eq!((index.chunks, index.embedded, index.waiting), (1, 0, 1));
    engine.embed_pending().await.unwrap();
    let found = search(&engine, &harness.me, "cetacean").await;
    assert_eq!(found.results[0].hit.source, Source::Output(last.id));
    assert_eq!(found.results.len(), 1);
    harness
        .engine
        .delete_plan(&harness.me, plan.id)
        .await
        .unwrap();
    assert_eq!(health(&engine, harness).await.index.chunks, 0);
    for table in ["chunk_signs", "vectors"] {
        let tenant = &harness.me.tenant;
        let count = format!("SELECT count(*) FROM {table} WHERE tenant_id = '{tenant}'");
        assert_eq!(harness.sql(&count).unwrap(), "0", "{table}");
    }
}

async fn reindexing_chunks_and_embeds_all_texts_again(harness: &Harness) {
    let (engine, _) = with_embedder(harness, TestEmbedder::new("test"));
    let plan = harness.plan(1).await;
    harness
        .store(finding("Whales", &"the whale sings. ".repeat(400)))
        .await;
    harness.deliver(plan.id, "Answer", "a draft").await;
    harness.deliver(plan.id, "Answer", "the loaf").await;
    engine.embed_pending().await.unwrap();
    let before = health(&engine, harness).await.index;
    // The index is lost.
    let tenant = &harness.me.tenant;
    harness
        .sql(&format!("DELETE FROM chunks WHERE tenant_id = '{tenant}'"))
        .unwrap();
    assert_eq!(
        titles(&search(&engine, &harness.me, "whale").await),
        [""; 0]
    );
    let done = engine.reindex(&harness.me).await.unwrap();
    assert_eq!((done.sources, done.chunks), (2, before.chunks));
    assert_eq!(
        titles(&search(&engine, &harness.me, "sings").await),
        ["Whales"]
    );
    let index = health(&engine, harness).await.index;
    assert_eq!(
        (index.chunks, index.waiting),
        (before.chunks, before.chunks)
    );
    engine.embed_pending().await.unwrap();
    assert_eq!(health(&engine, harness).await.index, before);
    assert_eq!(
        titles(&search(&engine, &harness.me, "bakery").await)[0],
        "Answer"
    );
    let mut viewer = harness.me.clone();
    viewer.role = onward_core::Role::Viewer;
    assert!(engine.reindex(&viewer).await.is_err());
}

/// With two processes, one of them embeds the texts of both.
async fn one_of_several_processes_embeds(harness: &Harness) {
    let database = TestDatabase::create(harness.database.backend());
    let open = async || {
        Engine::open(&database.address(), Settings::default())
            .await
            .unwrap()
    };
    let model = Arc::new(TestEmbedder::new("test"));
    let embedder = || -> Arc<dyn Embedder> { Arc::<TestEmbedder>::clone(&model) };
    let (one, two) = (
        open().await.with_embedder(embedder()),
        open().await.with_embedder(embedder()),
    );
    let (stop, stopped) = watch::channel(false);
    let (sender, mut rounds) = tokio::sync::mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    for (number, engine) in [one.clone(), two.clone()].into_iter().enumerate() {
        let (stopped, sender) = (stopped.clone(), sender.clone());
        tasks.push(tokio::spawn(async move {
            let report = |round: &Result<EmbedRound, EmbedError>| {
                let embedded = round.as_ref().unwrap().embedded;
                sender.send((number, embedded)).expect("channel is open");
            };
            engine.run_embedder(stopped, report).await;
        }));
    }
    let me = Caller::local("me");
    for engine in [&one, &two] {
        engine
            .store_research(&me, finding("Whales", "a whale"))
            .await
            .unwrap();
    }
    let mut embedded = 0;
    let mut processes = Vec::new();
    while embedded < 2 {
        let round = tokio::time::timeout(Duration::from_secs(20), rounds.recv()).await;
        let (number, count) = round.expect("a process embeds").unwrap();
        processes.push(number);
        embedded += count;
    }
    assert!(
        processes.iter().all(|number| *number == processes[0]),
        "more than one process embeds: {processes:?}"
    );
    stop.send(true).unwrap();
    for task in tasks {
        let ended = tokio::time::timeout(Duration::from_secs(10), task).await;
        ended.expect("task has stopped").unwrap();
    }
    one.close().await;
    two.close().await;
}

/// Sign-bit candidates exclude most chunks; the nearest one must not be excluded.
async fn finds_the_nearest_of_many_chunks(harness: &Harness) {
    if harness.database.backend() == Backend::Postgres {
        // The code is the same for both backends, and storing this many chunks is slow.
        return;
    }
    let (engine, _) = with_embedder(harness, TestEmbedder::new("test"));
    for _ in 0..15 {
        let text = "about the statute of a court. ".repeat(8_000);
        harness.store(finding("Law", &text)).await;
    }
    harness
        .store(finding("Orcas", "a dolphin and an orca"))
        .await;
    engine.embed_pending().await.unwrap();
    let chunks = health(&engine, harness).await.index.chunks;
    assert!(chunks > 1_500, "{chunks}");
    assert_eq!(
        titles(&search(&engine, &harness.me, "whale").await)[0],
        "Orcas"
    );
}

/// With longer rankings, a result at rank 3 of both would outrank a result at rank 1 of one.
async fn truncates_each_ranking_to_the_limit_before_rank_fusion(harness: &Harness) {
    let (engine, _) = with_embedder(harness, TestEmbedder::new("test"));
    // Full-text search prefers frequent words in short texts; semantic search prefers a single
    // topic.
    harness
        .store(finding(
            "Full-text 1",
            "tide whale court law statute moon bread",
        ))
        .await;
    harness
        .store(finding(
            "Full-text 2",
            "tide law law court law moon moon bread",
        ))
        .await;
    harness.store(finding("Semantic 1", "dolphin")).await;
    harness.store(finding("Semantic 2", "orca orca moon")).await;
    let padding = "of the sea and of the shore ".repeat(20);
    harness
        .store(finding(
            "Both",
            &format!("tide whale whale moon moon {padding}"),
        ))
        .await;
    engine.embed_pending().await.unwrap();
    let find = async |limit: u32| {
        let request = SearchRequest {
            limit: Some(limit),
            ..request("tide cetacean")
        };
        engine.search(&harness.me, request).await.unwrap()
    };
    let all = find(20).await;
    assert_eq!(titles(&all)[..2], ["Full-text 1", "Both"], "{all:?}");
    let both = &all.results[1];
    assert_eq!((both.keyword_rank, both.semantic_rank), (Some(3), Some(3)));
    let two = find(2).await;
    assert_eq!(titles(&two), ["Full-text 1", "Semantic 1"], "{two:?}");
}

/// The vectors cached by one process follow changes of other processes.
async fn the_next_search_sees_changes_of_other_processes(harness: &Harness) {
    let (engine, model) = with_embedder(harness, TestEmbedder::new("test"));
    let embedder: Arc<dyn Embedder> = Arc::<TestEmbedder>::clone(&model);
    let other = harness.another_engine().await.with_embedder(embedder);
    let find = async || {
        let found = search(&engine, &harness.me, "cetacean").await;
        let again = search(&engine, &harness.me, "cetacean").await;
        assert_eq!(found, again);
        let mut titles: Vec<String> = titles(&found).into_iter().map(str::to_owned).collect();
        titles.sort();
        titles
    };
    let plan = harness.plan(1).await;
    harness.store(finding("Orcas", "an orca")).await;
    engine.embed_pending().await.unwrap();
    assert_eq!(find().await, ["Orcas"]);
    harness.store(finding("Dolphins", "a dolphin")).await;
    assert_eq!(find().await, ["Orcas"], "not embedded yet");
    other.embed_pending().await.unwrap();
    assert_eq!(find().await, ["Dolphins", "Orcas"]);
    harness.deliver(plan.id, "Answer", "the whale").await;
    other.embed_pending().await.unwrap();
    assert_eq!(find().await, ["Answer", "Dolphins", "Orcas"]);
    other.delete_plan(&harness.me, plan.id).await.unwrap();
    assert_eq!(find().await, ["Dolphins", "Orcas"]);
    other.reindex(&harness.me).await.unwrap();
    assert_eq!(find().await, [""; 0], "nothing is embedded");
    other.embed_pending().await.unwrap();
    assert_eq!(find().await, ["Dolphins", "Orcas"]);
    other.close().await;
}

on_both_databases![exclusive:
    finds_related_texts_without_a_common_word,
    ranks_results_of_both_searches_first,
    falls_back_to_full_text_search_when_the_model_is_unavailable,
    filters_apply_to_both_searches,
    does_not_find_texts_of_another_tenant,
    embeds_only_chunks_that_are_not_embedded_yet,
    another_model_embeds_all_chunks_again,
    a_rejected_text_does_not_block_other_texts,
    a_model_that_rejects_every_text_is_a_configuration_error,
    deleting_a_text_deletes_its_vectors,
    reindexing_chunks_and_embeds_all_texts_again,
    one_of_several_processes_embeds,
    finds_the_nearest_of_many_chunks,
    truncates_each_ranking_to_the_limit_before_rank_fusion,
    the_next_search_sees_changes_of_other_processes,
];

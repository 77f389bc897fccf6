//! What is stored is found by what it means: by a model that says it, in batches, and goes on where it
//! stopped. The model here knows a few words and what they have to do with each other.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward_core::Timestamp;
use onward_engine::embed::{
    EmbedError, EmbedRound, Embedder, Embedding, NotEmbedded, Purpose, SearchHealth,
};
use onward_engine::engine::Settings;
use onward_engine::search::{Mode, Searched, Wanted};
use onward_engine::{Caller, Engine, Source};
use tokio::sync::watch;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::place::{Kind, Place};
use crate::research::finding;

/// Each group has a direction of its own.
const GROUPS: [&[&str]; 4] = [
    &["whale", "cetacean", "dolphin", "orca"],
    &["moon", "lunar", "satellite"],
    &["bread", "loaf", "bakery"],
    &["law", "statute", "court"],
];

/// A model that knows a few words.
pub(crate) struct Model {
    name: &'static str,
    batch: u32,
    is_away: AtomicBool,
    /// A text with this word is too much for it.
    refuses: Option<&'static str>,
    asked: Mutex<Vec<usize>>,
    queries: AtomicU32,
    /// It falls silent after so many texts.
    lasts: AtomicU32,
}

impl Model {
    pub(crate) fn named(name: &'static str) -> Self {
        Self {
            name,
            batch: 4,
            is_away: AtomicBool::new(false),
            refuses: None,
            asked: Mutex::default(),
            queries: AtomicU32::new(0),
            lasts: AtomicU32::new(u32::MAX),
        }
    }

    fn numbers(text: &str) -> Vec<f32> {
        let text = text.to_lowercase();
        // A little of everything, so that nothing is without a direction.
        let mut numbers = vec![-0.01; 12];
        for (group, number) in GROUPS.iter().zip(&mut numbers) {
            for word in *group {
                let count = u16::try_from(text.matches(word).count()).unwrap();
                *number += f32::from(count);
            }
        }
        numbers
    }
}

impl Embedder for Model {
    fn model(&self) -> &str {
        self.name
    }

    fn batch(&self) -> u32 {
        self.batch
    }

    fn embed(&self, texts: Vec<String>, purpose: Purpose) -> Embedding<'_> {
        Box::pin(async move {
            if self.is_away.load(Ordering::SeqCst) {
                return Err(NotEmbedded::Away("nobody is there".to_owned()));
            }
            match purpose {
                Purpose::Query => drop(self.queries.fetch_add(1, Ordering::SeqCst)),
                Purpose::Chunk => {
                    let left = self.lasts.load(Ordering::SeqCst);
                    let count = u32::try_from(texts.len()).unwrap();
                    let Some(left) = left.checked_sub(count) else {
                        return Err(NotEmbedded::Away("it has seen enough".to_owned()));
                    };
                    self.lasts.store(left, Ordering::SeqCst);
                    self.asked.lock().unwrap().push(texts.len());
                }
            }
            let too_much = |text: &String| self.refuses.is_some_and(|word| text.contains(word));
            if texts.iter().any(too_much) {
                return Err(NotEmbedded::Refused("that is too much".to_owned()));
            }
            Ok(texts.iter().map(|text| Model::numbers(text)).collect())
        })
    }
}

/// An engine on the desk's own database that asks a model.
fn with(desk: &Desk, model: Model) -> (Engine, Arc<Model>) {
    let model = Arc::new(model);
    let asked: Arc<dyn Embedder> = Arc::<Model>::clone(&model);
    (desk.engine.clone().with_embedder(asked), model)
}

fn wanted(query: &str) -> Wanted {
    Wanted {
        query: query.to_owned(),
        ..Wanted::default()
    }
}

async fn search(engine: &Engine, me: &Caller, query: &str) -> Searched {
    engine.search(me, wanted(query)).await.unwrap()
}

fn titles(searched: &Searched) -> Vec<&str> {
    let found = searched.found.iter();
    found.map(|found| found.hit.title.as_str()).collect()
}

async fn health(engine: &Engine, desk: &Desk) -> SearchHealth {
    engine.search_health(&desk.me).await.unwrap()
}

async fn what_shares_no_word_is_found_by_what_it_means(desk: &Desk) {
    let (engine, _) = with(desk, Model::named("meaning"));
    desk.store(finding("Orcas", "The orca hunts in groups."))
        .await;
    desk.store(finding("Loaves", "A loaf from the bakery."))
        .await;
    let before = search(&engine, &desk.me, "cetacean").await;
    assert_eq!(titles(&before), [""; 0], "nothing is embedded yet");
    assert_eq!(before.mode, Mode::Hybrid);
    let round = engine.embed_waiting().await.unwrap();
    assert!(round.embedded >= 2, "{round:?}");
    let found = search(&engine, &desk.me, "cetacean").await;
    assert_eq!(titles(&found)[0], "Orcas");
    let first = &found.found[0];
    assert_eq!((first.keyword_rank, first.semantic_rank), (None, Some(1)));
    assert!((first.score - 1.0 / 61.0).abs() < 1e-9);
    assert!(first.likeness.unwrap() > 0.95, "{first:?}");
    assert!(first.snippet.contains("orca"), "{first:?}");
}

async fn what_both_find_comes_first(desk: &Desk) {
    let (engine, _) = with(desk, Model::named("meaning"));
    desk.store(finding("Statutes", "a statute about the moon"))
        .await;
    desk.store(finding("Dolphins", "the dolphin, the orca"))
        .await;
    desk.store(finding("Both", "of a whale and a dolphin"))
        .await;
    engine.embed_waiting().await.unwrap();
    let found = search(&engine, &desk.me, "whale").await;
    assert_eq!(titles(&found)[0], "Both");
    let both = &found.found[0];
    assert_eq!(both.keyword_rank, Some(1));
    let rank = f64::from(both.semantic_rank.unwrap());
    assert!((both.score - (1.0 / 61.0 + 1.0 / (60.0 + rank))).abs() < 1e-9);
    assert_eq!(found.mode, Mode::Hybrid);
    let all = engine.search_both(&desk.me, wanted("whale")).await.unwrap();
    assert_eq!(all.found.len(), 3, "everything that either ranking found");
}

async fn a_model_that_is_away_leaves_the_words(desk: &Desk) {
    let (engine, model) = with(desk, Model::named("meaning"));
    desk.store(finding("Whales", "The whale sings.")).await;
    engine.embed_waiting().await.unwrap();
    model.is_away.store(true, Ordering::SeqCst);
    let found = search(&engine, &desk.me, "whale").await;
    assert_eq!(
        (found.mode, titles(&found)),
        (Mode::Keyword, vec!["Whales"])
    );
    assert_eq!(found.found[0].semantic_rank, None);
    let trouble = health(&engine, desk).await.trouble.unwrap();
    assert_eq!(trouble.why, "nobody is there");
    // It is back, and is spared for a while all the same: nobody waits for it with every search.
    model.is_away.store(false, Ordering::SeqCst);
    let queries = model.queries.load(Ordering::SeqCst);
    assert_eq!(search(&engine, &desk.me, "whale").await.mode, Mode::Keyword);
    assert_eq!(model.queries.load(Ordering::SeqCst), queries);
    desk.world.advance(Duration::from_secs(31));
    assert_eq!(search(&engine, &desk.me, "whale").await.mode, Mode::Hybrid);
    assert_eq!(health(&engine, desk).await.trouble, None);
}

async fn filters_hold_for_both_halves(desk: &Desk) {
    let (engine, _) = with(desk, Model::named("meaning"));
    let (one, other) = (desk.plan(1).await, desk.plan(1).await);
    let mut mine = finding("Mine", "an orca");
    mine.plan = Some(one.id);
    mine.kind = Some("quote".to_owned());
    desk.store(mine).await;
    let between = desk.engine.now();
    desk.world.advance(Duration::from_secs(10));
    let mut others = finding("Others", "a dolphin");
    others.plan = Some(other.id);
    desk.store(others).await;
    desk.deliver(one.id, "Delivered", "about the whale").await;
    engine.embed_waiting().await.unwrap();
    let of = async |narrow: &dyn Fn(&mut Wanted)| {
        let mut wanted = wanted("cetacean");
        narrow(&mut wanted);
        let found = engine.search(&desk.me, wanted).await.unwrap();
        let mut titles: Vec<String> = titles(&found).into_iter().map(str::to_owned).collect();
        titles.sort();
        titles
    };
    let later = Timestamp::from_millis(between.as_millis() + 1);
    assert_eq!(of(&|_| {}).await, ["Delivered", "Mine", "Others"]);
    assert_eq!(
        of(&|it| it.plan = Some(one.id)).await,
        ["Delivered", "Mine"]
    );
    assert_eq!(of(&|it| it.plan = Some(other.id)).await, ["Others"]);
    assert_eq!(of(&|it| it.kind = Some("quote".to_owned())).await, ["Mine"]);
    assert_eq!(
        of(&|it| it.created_after = Some(later)).await,
        ["Delivered", "Others"]
    );
    assert_eq!(of(&|it| it.created_before = Some(later)).await, ["Mine"]);
}

async fn one_tenants_meaning_is_not_anothers(desk: &Desk) {
    let (engine, _) = with(desk, Model::named("meaning"));
    let other = desk.tenant("other").await;
    let theirs = finding("Theirs", "the whale");
    engine.store_research(&other, theirs).await.unwrap();
    engine.embed_waiting().await.unwrap();
    assert_eq!(
        titles(&search(&engine, &desk.me, "cetacean").await),
        [""; 0]
    );
    assert_eq!(
        titles(&search(&engine, &other, "cetacean").await),
        ["Theirs"]
    );
    assert_eq!(health(&engine, desk).await.index.chunks, 0);
}

async fn only_what_the_model_has_not_seen_is_asked(desk: &Desk) {
    let (engine, model) = with(desk, Model::named("meaning"));
    // What other tests left is not this one's.
    engine.embed_waiting().await.unwrap();
    model.asked.lock().unwrap().clear();
    for number in 0..6 {
        desk.store(finding(&format!("Note {number}"), "a moon"))
            .await;
    }
    let index = health(&engine, desk).await.index;
    assert_eq!((index.chunks, index.embedded, index.waiting), (6, 0, 6));
    // It falls silent after the first batch: what it has said is kept.
    model.lasts.store(5, Ordering::SeqCst);
    let stopped = engine.embed_waiting().await;
    assert!(matches!(&stopped, Err(EmbedError::Model(why)) if why == "it has seen enough"));
    let index = health(&engine, desk).await.index;
    assert_eq!((index.embedded, index.waiting), (4, 2));
    // Whoever takes over, in another process, asks about the rest alone.
    let (engine, model) = with(desk, Model::named("meaning"));
    let round = engine.embed_waiting().await.unwrap();
    assert_eq!(round.embedded, 2, "{round:?}");
    assert_eq!(*model.asked.lock().unwrap(), [2]);
    assert_eq!(engine.embed_waiting().await.unwrap(), EmbedRound::default());
}

async fn another_model_sees_everything_anew(desk: &Desk) {
    let (engine, _) = with(desk, Model::named("old"));
    desk.store(finding("Whales", "a whale")).await;
    engine.embed_waiting().await.unwrap();
    let (engine, _) = with(desk, Model::named("new"));
    let index = health(&engine, desk).await.index;
    assert_eq!((index.embedded, index.waiting), (0, 1));
    let found = search(&engine, &desk.me, "cetacean").await;
    assert_eq!(
        titles(&found),
        [""; 0],
        "what the old one said is not compared"
    );
    engine.embed_waiting().await.unwrap();
    let index = health(&engine, desk).await.index;
    assert_eq!((index.embedded, index.waiting), (1, 0));
    assert_eq!(
        titles(&search(&engine, &desk.me, "cetacean").await),
        ["Whales"]
    );
    let tenant = &desk.me.tenant;
    let count = format!("SELECT count(*) FROM vectors WHERE tenant_id = '{tenant}'");
    assert_eq!(desk.sql(&count).unwrap(), "1");
}

async fn a_text_that_the_model_refuses_keeps_nobody_else_from_it(desk: &Desk) {
    let mut model = Model::named("meaning");
    model.refuses = Some("unspeakable");
    let (engine, _) = with(desk, model);
    desk.store(finding("First", "a whale")).await;
    desk.store(finding("Second", "an unspeakable whale")).await;
    desk.store(finding("Third", "an orca")).await;
    let round = engine.embed_waiting().await.unwrap();
    assert_eq!(round.refused, 1, "{round:?}");
    let index = health(&engine, desk).await.index;
    assert_eq!((index.embedded, index.waiting, index.refused), (2, 0, 1));
    assert_eq!(engine.embed_waiting().await.unwrap(), EmbedRound::default());
    let mut found = titles(&search(&engine, &desk.me, "cetacean").await).join(" ");
    found.make_ascii_lowercase();
    assert!(!found.contains("second"), "{found}");
}

async fn a_model_that_refuses_everything_is_set_up_wrongly(desk: &Desk) {
    let mut model = Model::named("wrong");
    model.refuses = Some("");
    let (engine, _) = with(desk, model);
    desk.store(finding("First", "a whale")).await;
    let stopped = engine.embed_waiting().await;
    assert!(matches!(&stopped, Err(EmbedError::Model(why)) if why == "that is too much"));
    let index = health(&engine, desk).await.index;
    assert_eq!(
        (index.waiting, index.refused),
        (1, 0),
        "no chunk is to blame"
    );
}

async fn what_goes_takes_its_meaning_along(desk: &Desk) {
    let (engine, _) = with(desk, Model::named("meaning"));
    let plan = desk.plan(1).await;
    desk.deliver(plan.id, "Answer", "a whale").await;
    engine.embed_waiting().await.unwrap();
    let last = desk.deliver(plan.id, "Answer", "an orca").await;
    let index = health(&engine, desk).await.index;
    assert_eq!((index.chunks, index.embedded, index.waiting), (1, 0, 1));
    engine.embed_waiting().await.unwrap();
    let found = search(&engine, &desk.me, "cetacean").await;
    assert_eq!(found.found[0].hit.source, Source::Output(last.id));
    assert_eq!(found.found.len(), 1);
    desk.engine.delete_plan(&desk.me, plan.id).await.unwrap();
    assert_eq!(health(&engine, desk).await.index.chunks, 0);
    for table in ["chunk_signs", "vectors"] {
        let tenant = &desk.me.tenant;
        let count = format!("SELECT count(*) FROM {table} WHERE tenant_id = '{tenant}'");
        assert_eq!(desk.sql(&count).unwrap(), "0", "{table}");
    }
}

async fn everything_can_be_cut_and_asked_about_anew(desk: &Desk) {
    let (engine, _) = with(desk, Model::named("meaning"));
    let plan = desk.plan(1).await;
    desk.store(finding("Whales", &"the whale sings. ".repeat(400)))
        .await;
    desk.deliver(plan.id, "Answer", "a draft").await;
    desk.deliver(plan.id, "Answer", "the loaf").await;
    engine.embed_waiting().await.unwrap();
    let before = health(&engine, desk).await.index;
    // Somebody lost the index.
    let tenant = &desk.me.tenant;
    desk.sql(&format!("DELETE FROM chunks WHERE tenant_id = '{tenant}'"))
        .unwrap();
    assert_eq!(titles(&search(&engine, &desk.me, "whale").await), [""; 0]);
    let done = engine.reindex(&desk.me).await.unwrap();
    assert_eq!((done.sources, done.chunks), (2, before.chunks));
    assert_eq!(
        titles(&search(&engine, &desk.me, "sings").await),
        ["Whales"]
    );
    let index = health(&engine, desk).await.index;
    assert_eq!(
        (index.chunks, index.waiting),
        (before.chunks, before.chunks)
    );
    engine.embed_waiting().await.unwrap();
    assert_eq!(health(&engine, desk).await.index, before);
    assert_eq!(
        titles(&search(&engine, &desk.me, "bakery").await)[0],
        "Answer"
    );
    let mut viewer = desk.me.clone();
    viewer.role = onward_core::Role::Viewer;
    assert!(engine.reindex(&viewer).await.is_err());
}

/// Two processes: one of them asks, and what the other stores is asked about, too.
async fn one_of_several_processes_asks(desk: &Desk) {
    let place = Place::fresh(desk.place.kind());
    let open = async || {
        Engine::open(&place.address(), Settings::default())
            .await
            .unwrap()
    };
    let model = Arc::new(Model::named("meaning"));
    let asked = || -> Arc<dyn Embedder> { Arc::<Model>::clone(&model) };
    let (one, two) = (
        open().await.with_embedder(asked()),
        open().await.with_embedder(asked()),
    );
    let (stop, stopped) = watch::channel(false);
    let (told, mut tells) = tokio::sync::mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    for (number, engine) in [one.clone(), two.clone()].into_iter().enumerate() {
        let (stopped, told) = (stopped.clone(), told.clone());
        tasks.push(tokio::spawn(async move {
            let tell = |round: &Result<EmbedRound, EmbedError>| {
                let embedded = round.as_ref().unwrap().embedded;
                told.send((number, embedded)).expect("somebody listens");
            };
            engine.keep_embedding(stopped, tell).await;
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
    let mut who = Vec::new();
    while embedded < 2 {
        let heard = tokio::time::timeout(Duration::from_secs(20), tells.recv()).await;
        let (number, count) = heard.expect("somebody asks").unwrap();
        who.push(number);
        embedded += count;
    }
    assert!(
        who.iter().all(|number| *number == who[0]),
        "only one asks: {who:?}"
    );
    stop.send(true).unwrap();
    for task in tasks {
        let ended = tokio::time::timeout(Duration::from_secs(10), task).await;
        ended.expect("it stops when it is told to").unwrap();
    }
    one.close().await;
    two.close().await;
}

/// Signs leave nearly everything out; the nearest must not be among it.
async fn the_nearest_of_many_is_found(desk: &Desk) {
    if desk.place.kind() == Kind::Postgres {
        // The same on both; to store so many takes its time.
        return;
    }
    let (engine, _) = with(desk, Model::named("meaning"));
    for _ in 0..15 {
        let text = "about the statute of a court. ".repeat(8_000);
        desk.store(finding("Law", &text)).await;
    }
    desk.store(finding("Orcas", "a dolphin and an orca")).await;
    engine.embed_waiting().await.unwrap();
    let chunks = health(&engine, desk).await.index.chunks;
    assert!(chunks > 1_500, "{chunks}");
    assert_eq!(
        titles(&search(&engine, &desk.me, "whale").await)[0],
        "Orcas"
    );
}

/// What is at the end of both must not come before what is first in one: a third place in both weighs
/// more than a first one.
async fn each_ranking_is_as_long_as_what_is_asked_for(desk: &Desk) {
    let (engine, _) = with(desk, Model::named("meaning"));
    // The more often and the shorter, the better by words; the purer, the better by meaning.
    desk.store(finding(
        "By words",
        "tide whale court law statute moon bread",
    ))
    .await;
    desk.store(finding(
        "By words, too",
        "tide law law court law moon moon bread",
    ))
    .await;
    desk.store(finding("By meaning", "dolphin")).await;
    desk.store(finding("By meaning, too", "orca orca moon"))
        .await;
    let padding = "of the sea and of the shore ".repeat(20);
    desk.store(finding(
        "Both",
        &format!("tide whale whale moon moon {padding}"),
    ))
    .await;
    engine.embed_waiting().await.unwrap();
    let of = async |limit: u32| {
        let wanted = Wanted {
            limit: Some(limit),
            ..wanted("tide cetacean")
        };
        engine.search(&desk.me, wanted).await.unwrap()
    };
    let all = of(20).await;
    assert_eq!(titles(&all)[..2], ["By words", "Both"], "{all:?}");
    let both = &all.found[1];
    assert_eq!((both.keyword_rank, both.semantic_rank), (Some(3), Some(3)));
    let two = of(2).await;
    assert_eq!(titles(&two), ["By words", "By meaning"], "{two:?}");
}

/// What one process holds in memory is what the database says, whoever has changed it.
async fn a_change_is_seen_by_the_next_search_whoever_made_it(desk: &Desk) {
    let (engine, model) = with(desk, Model::named("meaning"));
    let asked: Arc<dyn Embedder> = Arc::<Model>::clone(&model);
    let elsewhere = desk.another_engine().await.with_embedder(asked);
    let here = async || {
        let found = search(&engine, &desk.me, "cetacean").await;
        let again = search(&engine, &desk.me, "cetacean").await;
        assert_eq!(found, again);
        let mut titles: Vec<String> = titles(&found).into_iter().map(str::to_owned).collect();
        titles.sort();
        titles
    };
    let plan = desk.plan(1).await;
    desk.store(finding("Orcas", "an orca")).await;
    engine.embed_waiting().await.unwrap();
    assert_eq!(here().await, ["Orcas"]);
    desk.store(finding("Dolphins", "a dolphin")).await;
    assert_eq!(here().await, ["Orcas"], "nobody has asked the model yet");
    elsewhere.embed_waiting().await.unwrap();
    assert_eq!(here().await, ["Dolphins", "Orcas"]);
    desk.deliver(plan.id, "Answer", "the whale").await;
    elsewhere.embed_waiting().await.unwrap();
    assert_eq!(here().await, ["Answer", "Dolphins", "Orcas"]);
    elsewhere.delete_plan(&desk.me, plan.id).await.unwrap();
    assert_eq!(here().await, ["Dolphins", "Orcas"]);
    elsewhere.reindex(&desk.me).await.unwrap();
    assert_eq!(here().await, [""; 0], "the model has seen nothing of it");
    elsewhere.embed_waiting().await.unwrap();
    assert_eq!(here().await, ["Dolphins", "Orcas"]);
    elsewhere.close().await;
}

on_both_databases![alone:
    what_shares_no_word_is_found_by_what_it_means,
    what_both_find_comes_first,
    a_model_that_is_away_leaves_the_words,
    filters_hold_for_both_halves,
    one_tenants_meaning_is_not_anothers,
    only_what_the_model_has_not_seen_is_asked,
    another_model_sees_everything_anew,
    a_text_that_the_model_refuses_keeps_nobody_else_from_it,
    a_model_that_refuses_everything_is_set_up_wrongly,
    what_goes_takes_its_meaning_along,
    everything_can_be_cut_and_asked_about_anew,
    one_of_several_processes_asks,
    the_nearest_of_many_is_found,
    each_ranking_is_as_long_as_what_is_asked_for,
    a_change_is_seen_by_the_next_search_whoever_made_it,
];

//! How long a search takes among many chunks, by the kind of question.
//!
//! The texts are made of words whose frequencies fall as those of a language do, so that a few words
//! stand in every chunk and most in hardly any. Each question is asked through the engine, snippets
//! included: by words alone, and then by words and numbers. What the processor did for it is told beside how
//! long it took: the former hardly depends on who else is busy. `bench/search` runs it; `bench/README.md`
//! says what was seen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench that cannot run must say so"
)]

mod sketch;
mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onward_engine::engine::Settings;
use onward_engine::research::Finding;
use onward_engine::search::Wanted;
use onward_engine::{Address, Caller, Engine, Source};
use tokio::task::JoinSet;

use sketch::Sketch;
use words::Words;

/// Characters of a text: about 20 chunks.
const TEXT: usize = 36_000;
/// How many texts are stored at once: they share their commits.
const AT_ONCE: usize = 16;

/// What the command line asks for.
struct Asked {
    chunks: usize,
    questions: usize,
    postgres: Option<String>,
    folder: PathBuf,
}

fn asked() -> Asked {
    let mut asked = Asked {
        chunks: 100_000,
        questions: 100,
        postgres: std::env::var("ONWARD_BENCH_POSTGRES").ok(),
        folder: std::env::temp_dir(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the flag");
        match word.as_str() {
            "--chunks" => asked.chunks = value().parse().expect("a number of chunks"),
            "--questions" => asked.questions = value().parse().expect("a number of questions"),
            "--postgres" => asked.postgres = Some(value()),
            "--folder" => asked.folder = PathBuf::from(value()),
            // What `cargo bench` and `cargo test --benches` say to every bench.
            "--bench" => {}
            other => panic!("`{other}` is no flag of this bench"),
        }
    }
    asked
}

fn main() {
    let asked = asked();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("threads can be started").block_on(async {
        let name = format!("onward-search-{}.db", std::process::id());
        let file = asked.folder.join(name);
        println!(
            "what                    chunks    store s     p50 ms     p99 ms     cpu ms   found"
        );
        measure("SQLite", &Address::File(file.clone()), &asked).await;
        for ending in ["", "-wal", "-shm"] {
            // Nobody else knows the file.
            drop(std::fs::remove_file(format!("{}{ending}", file.display())));
        }
        if let Some(url) = &asked.postgres {
            measure("PostgreSQL", &Address::Server(url.clone()), &asked).await;
        }
    });
}

async fn measure(database: &str, address: &Address, asked: &Asked) {
    let engine = Engine::open(address, Settings::default()).await;
    let engine = engine.expect("the database opens");
    let me = Caller::local("bench");
    let words = Arc::new(Words::new());
    let began = Instant::now();
    let stored = fill(&engine, &me, &words, asked.chunks).await;
    let filled = began.elapsed();
    println!("{database:<20} {stored:>9} {:>10.1}", filled.as_secs_f64());
    ask("by words", &engine, &me, &words, asked.questions).await;
    let engine = engine.with_embedder(Arc::new(Sketch));
    let began = Instant::now();
    let round = engine.embed_waiting().await.expect("it is embedded");
    let (embedded, filled) = (round.embedded, began.elapsed());
    println!(
        "{:<20} {embedded:>9} {:>10.1}",
        "  embedded",
        filled.as_secs_f64()
    );
    let questions = asked.questions;
    let before = ask("by words and numbers", &engine, &me, &words, questions).await;
    let began = Instant::now();
    let indexed = engine.index_signs().await.expect("it is indexed");
    if indexed.made > 0 {
        let took = began.elapsed().as_secs_f64();
        println!("{:<30} {took:>10.1}", "  an index by pgvector");
        let how = "by words and numbers, and the index";
        let after = ask(how, &engine, &me, &words, questions).await;
        let same = before.iter().filter(|near| after.contains(near)).count();
        println!("  {same} of the {} nearest are found with it", before.len());
    }
    engine.close().await;
}

/// Asks questions of each kind, and tells how long they took; the ten that are nearest to each by its
/// numbers.
async fn ask(
    how: &str,
    engine: &Engine,
    me: &Caller,
    words: &Words,
    questions: usize,
) -> Vec<(String, Source)> {
    println!("{how}");
    let mut nearest = Vec::new();
    let (mut all, mut all_worked) = (Vec::new(), Vec::new());
    for kind in words::KINDS {
        let (mut took, mut worked, mut found) = (Vec::new(), Vec::new(), 0);
        for number in 0..questions {
            let query = words.question(kind, number);
            let wanted = Wanted {
                query: query.clone(),
                ..Wanted::default()
            };
            let (began, before) = (Instant::now(), cpu());
            let answer = engine.search(me, wanted.clone()).await;
            took.push(began.elapsed());
            worked.push(cpu().saturating_sub(before));
            found += answer.expect("it answers").found.len();
            let both = engine.search_both(me, wanted).await.expect("it answers");
            let near = both.found.iter();
            let near = near.filter(|found| found.semantic_rank.is_some_and(|rank| rank <= 10));
            nearest.extend(near.map(|found| (query.clone(), found.hit.source)));
        }
        all.extend(took.iter().copied());
        all_worked.extend(worked.iter().copied());
        report(
            kind.name(),
            &mut took,
            &mut worked,
            found / questions.max(1),
        );
    }
    report("all of them", &mut all, &mut all_worked, 0);
    nearest
}

fn report(name: &str, took: &mut [Duration], worked: &mut [Duration], found: usize) {
    let at = |of: &mut [Duration], part: usize| {
        of.sort_unstable();
        let place = of.len() * part / 100;
        let took = of.get(place).or(of.last()).copied();
        took.unwrap_or_default().as_secs_f64() * 1_000.0
    };
    let (half, nearly_all) = (at(took, 50), at(took, 99));
    let worked = at(worked, 50);
    println!("  {name:<39} {half:>10.2} {nearly_all:>10.2} {worked:>10.2} {found:>7}");
}

/// How long processors have worked for this process, where the system says so.
fn cpu() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let worked = threads.flatten().filter_map(|thread| {
        let figures = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        figures.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(worked.sum())
}

/// Stores texts until there are so many chunks.
async fn fill(engine: &Engine, me: &Caller, words: &Arc<Words>, chunks: usize) -> usize {
    let (mut stored, mut number) = (0, 0);
    let mut storing: JoinSet<usize> = JoinSet::new();
    while stored < chunks {
        while storing.len() < AT_ONCE {
            let (engine, me, words) = (engine.clone(), me.clone(), Arc::clone(words));
            let this = number;
            number += 1;
            storing.spawn(async move {
                let finding = Finding {
                    title: words.title(this),
                    content: words.text(this, TEXT),
                    kind: None,
                    plan: None,
                    step: None,
                    source_url: None,
                    metadata: serde_json::Map::new(),
                    token: None,
                    session: None,
                };
                let kept = engine.store_research(&me, finding).await;
                kept.expect("it is stored").chunks
            });
        }
        let kept = storing.join_next().await.expect("something is stored");
        stored += kept.expect("it does not panic");
    }
    while let Some(kept) = storing.join_next().await {
        stored += kept.expect("it does not panic");
    }
    stored
}

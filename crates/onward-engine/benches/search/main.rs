//! Search latency over many chunks, by type of query.
//!
//! Word frequencies in the generated texts follow a natural language: a few words occur in every
//! chunk, most in hardly any. Each query runs through the engine, including snippets: first
//! full-text only, then hybrid with embeddings. CPU time is reported next to latency because it
//! hardly depends on other load. Run it with `bench/search`; results are in `bench/README.md`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run must fail"
)]

mod hash_embedder;
mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onward_engine::engine::Settings;
use onward_engine::research::NewArtifact;
use onward_engine::search::SearchRequest;
use onward_engine::{Address, Caller, Engine, Source};
use onward_testbed::TestDir;
use tokio::task::JoinSet;

use hash_embedder::HashEmbedder;
use words::Words;

/// Characters per text: about 20 chunks.
const TEXT_CHARS: usize = 36_000;
/// Number of texts stored concurrently; they share commits.
const CONCURRENCY: usize = 16;

/// Command-line arguments.
struct Args {
    chunks: usize,
    questions: usize,
    postgres: Option<String>,
    folder: PathBuf,
}

fn parse_args() -> Args {
    let mut args = Args {
        chunks: 100_000,
        questions: 100,
        postgres: std::env::var("ONWARD_BENCH_POSTGRES").ok(),
        folder: std::env::temp_dir(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(flag) = words.next() {
        let mut value = || words.next().expect("the flag has a value");
        match flag.as_str() {
            "--chunks" => args.chunks = value().parse().expect("`--chunks` is a number"),
            "--questions" => args.questions = value().parse().expect("`--questions` is a number"),
            "--postgres" => args.postgres = Some(value()),
            "--folder" => args.folder = PathBuf::from(value()),
            // Passed by `cargo bench` and `cargo test --benches`.
            "--bench" => {}
            other => panic!("unknown flag `{other}`"),
        }
    }
    args
}

fn main() {
    let args = parse_args();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("runtime started").block_on(async {
        let dir = TestDir::create_in(&args.folder, "search");
        println!(
            "query                   chunks    store s     p50 ms     p99 ms     cpu ms   found"
        );
        measure("SQLite", &Address::File(dir.join("onward.db")), &args).await;
        if let Some(url) = &args.postgres {
            measure("PostgreSQL", &Address::Server(url.clone()), &args).await;
        }
    });
}

async fn measure(database: &str, address: &Address, args: &Args) {
    let engine = Engine::open(address, Settings::default()).await;
    let engine = engine.expect("database opened");
    let me = Caller::local("bench");
    let words = Arc::new(Words::new());
    let began = Instant::now();
    let stored = fill(&engine, &me, &words, args.chunks).await;
    let filled = began.elapsed();
    println!("{database:<20} {stored:>9} {:>10.1}", filled.as_secs_f64());
    run_queries("full-text", &engine, &me, &words, args.questions).await;
    let engine = engine.with_embedder(Arc::new(HashEmbedder));
    let began = Instant::now();
    let round = engine.embed_pending().await.expect("chunks embedded");
    let (embedded, filled) = (round.embedded, began.elapsed());
    println!(
        "{:<20} {embedded:>9} {:>10.1}",
        "  embedded",
        filled.as_secs_f64()
    );
    let questions = args.questions;
    let before = run_queries("hybrid", &engine, &me, &words, questions).await;
    let began = Instant::now();
    let indexed = engine.update_indexes().await.expect("index created");
    if indexed.made > 0 {
        let took = began.elapsed().as_secs_f64();
        println!("{:<30} {took:>10.1}", "  pgvector index");
        let mode = "hybrid, with the index";
        let after = run_queries(mode, &engine, &me, &words, questions).await;
        let same = before.iter().filter(|near| after.contains(near)).count();
        println!(
            "  the index returns {same} of the {} nearest neighbours",
            before.len()
        );
    }
    engine.close().await;
}

/// Runs queries of each kind and reports their latency. Returns the ten nearest neighbours of each
/// query.
async fn run_queries(
    mode: &str,
    engine: &Engine,
    me: &Caller,
    words: &Words,
    questions: usize,
) -> Vec<(String, Source)> {
    println!("{mode}");
    let mut nearest = Vec::new();
    let (mut all, mut all_cpu_times) = (Vec::new(), Vec::new());
    for kind in words::KINDS {
        let (mut took, mut cpu_times, mut found) = (Vec::new(), Vec::new(), 0);
        for number in 0..questions {
            let query = words.query(kind, number);
            let request = SearchRequest {
                query: query.clone(),
                ..SearchRequest::default()
            };
            let (began, before) = (Instant::now(), cpu());
            let answer = engine.search(me, request.clone()).await;
            took.push(began.elapsed());
            cpu_times.push(cpu().saturating_sub(before));
            found += answer.expect("search succeeded").results.len();
            let both = engine
                .search_all_candidates(me, request)
                .await
                .expect("search succeeded");
            let near = both.results.iter();
            let near = near.filter(|found| found.semantic_rank.is_some_and(|rank| rank <= 10));
            nearest.extend(near.map(|found| (query.clone(), found.hit.source)));
        }
        all.extend(took.iter().copied());
        all_cpu_times.extend(cpu_times.iter().copied());
        report(
            kind.name(),
            &mut took,
            &mut cpu_times,
            found / questions.max(1),
        );
    }
    report("all queries", &mut all, &mut all_cpu_times, 0);
    nearest
}

fn report(name: &str, took: &mut [Duration], cpu_times: &mut [Duration], found: usize) {
    let at = |of: &mut [Duration], percent: usize| {
        of.sort_unstable();
        let index = of.len() * percent / 100;
        let took = of.get(index).or(of.last()).copied();
        took.unwrap_or_default().as_secs_f64() * 1_000.0
    };
    let (p50, p99) = (at(took, 50), at(took, 99));
    let cpu_times = at(cpu_times, 50);
    println!("  {name:<39} {p50:>10.2} {p99:>10.2} {cpu_times:>10.2} {found:>7}");
}

/// CPU time of this process. Zero if the system does not report it.
fn cpu() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let cpu_times = threads.flatten().filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(cpu_times.sum())
}

/// Stores texts until there are at least `chunks` chunks. Returns their number.
async fn fill(engine: &Engine, me: &Caller, words: &Arc<Words>, chunks: usize) -> usize {
    let (mut stored, mut number) = (0, 0);
    let mut storing: JoinSet<usize> = JoinSet::new();
    while stored < chunks {
        while storing.len() < CONCURRENCY {
            let (engine, me, words) = (engine.clone(), me.clone(), Arc::clone(words));
            let id = number;
            number += 1;
            storing.spawn(async move {
                let finding = NewArtifact {
                    title: words.title(id),
                    content: words.text(id, TEXT_CHARS),
                    kind: None,
                    plan: None,
                    step: None,
                    source_url: None,
                    metadata: serde_json::Map::new(),
                    token: None,
                    session: None,
                };
                let artifact = engine.store_research(&me, finding).await;
                artifact.expect("artifact stored").chunks
            });
        }
        let done = storing.join_next().await.expect("a task is running");
        stored += done.expect("task finished");
    }
    while let Some(done) = storing.join_next().await {
        stored += done.expect("task finished");
    }
    stored
}

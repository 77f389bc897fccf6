//! The floor: the database's own throughput, without reads, decisions or checks.
//!
//! SQLite has two floors: small rows (one UPDATE and two INSERTs into minimal tables), and the same
//! rows as the engine, in its own tables. The first shows the maximum throughput of the file, the
//! second the overhead of the engine.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use crate::report::{Samples, cpu};

const PAYLOAD: &str = r#"{"from":"pending","to":"in_progress","attempt":1,"token":"0123456789abcdef0123456789abcdef"}"#;
const ROWS: i64 = 1000;

/// Measures and formats the duration of a disk sync.
pub(crate) fn sync_time(folder: &Path) -> String {
    let path = folder.join("sync");
    let mut file = std::fs::File::create(&path).expect("file created");
    let mut latencies = Vec::new();
    for _ in 0..200 {
        file.write_all(&[0; 4096]).expect("file written");
        let began = Instant::now();
        file.sync_data().expect("file synced");
        latencies.push(began.elapsed());
    }
    let samples = Samples {
        elapsed: latencies.iter().sum(),
        latencies,
        ..Samples::default()
    };
    format!(
        "disk sync: p50 {} µs, p99 {} µs",
        samples.quantile(0.5).as_micros(),
        samples.quantile(0.99).as_micros()
    )
}

/// Jobs to write, one per transaction, with a separate list for each caller.
pub(crate) trait JobSource: Clone + Send + 'static {
    type Job: Send + 'static;
    /// The jobs of one caller, in order.
    fn jobs(&self, caller: usize) -> impl Iterator<Item = Self::Job> + Send + 'static;
    fn write(file: &rusqlite::Connection, job: &Self::Job);
}

fn execute(file: &rusqlite::Connection, text: &str, params: impl rusqlite::Params) {
    let mut prepared = file.prepare_cached(text).expect("statement prepared");
    prepared.execute(params).expect("statement executed");
}

/// One UPDATE and two INSERTs of small rows, in tables without secondary indexes.
#[derive(Clone)]
pub(crate) struct SmallRows;

impl SmallRows {
    pub(crate) fn create(path: &Path) -> Self {
        let file = rusqlite::Connection::open(path).expect("database opened");
        file.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE heads (id integer PRIMARY KEY, seq integer NOT NULL, payload text);
             CREATE TABLE events (id integer PRIMARY KEY, head integer, payload text);
             CREATE TABLE others (id integer PRIMARY KEY, head integer, payload text);",
        )
        .expect("schema created");
        for id in 0..ROWS {
            execute(&file, "INSERT INTO heads VALUES (?1, 0, '')", [id]);
        }
        Self
    }
}

impl JobSource for SmallRows {
    type Job = i64;

    fn jobs(&self, caller: usize) -> impl Iterator<Item = i64> + Send + 'static {
        (caller as i64..).map(|id| id % ROWS)
    }

    fn write(file: &rusqlite::Connection, id: &i64) {
        for text in [
            "UPDATE heads SET seq = seq + 1, payload = ?2 WHERE id = ?1",
            "INSERT INTO events (head, payload) VALUES (?1, ?2)",
            "INSERT INTO others (head, payload) VALUES (?1, ?2)",
        ] {
            execute(file, text, (id, PAYLOAD));
        }
    }
}

/// The same rows as the engine, in the same tables with all indexes and constraints. Each step is
/// started and completed, without reading or deciding anything.
#[derive(Clone)]
pub(crate) struct SameRows {
    /// For each caller, its plans with their steps.
    plans: Arc<Vec<Vec<Plan>>>,
}

type Id = [u8; 16];
/// A plan and its steps.
type Plan = (Id, Vec<Id>);

/// A transition of a step: started or completed.
pub(crate) struct Transition {
    plan: Id,
    step: Id,
    /// Sequence number of its event; even numbers start a step.
    seq: i64,
}

impl SameRows {
    /// Distributes the plans of a file among the callers.
    pub(crate) fn load(path: &Path, callers: usize) -> Self {
        let file = rusqlite::Connection::open(path).expect("database opened");
        let mut all = file
            .prepare("SELECT plan_id, step_id FROM steps ORDER BY plan_id, step_order")
            .expect("statement prepared");
        let rows = all.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
        let mut plans = vec![Vec::<Plan>::new(); callers];
        let (mut last, mut caller) = (None, 0);
        for row in rows.expect("query executed") {
            let (plan, step): (Id, Id) = row.expect("row decoded");
            if last.replace(plan) != Some(plan) {
                caller = (caller + 1) % callers;
                plans[caller].push((plan, Vec::new()));
            }
            let (_, steps) = plans[caller].last_mut().expect("a plan was added");
            steps.push(step);
        }
        Self {
            plans: Arc::new(plans),
        }
    }
}

impl JobSource for SameRows {
    type Job = Transition;

    fn jobs(&self, caller: usize) -> impl Iterator<Item = Transition> + Send + 'static {
        let plans = Arc::clone(&self.plans);
        (0..plans[caller].len()).flat_map(move |index| {
            let (plan, steps) = plans[caller][index].clone();
            let transitions = steps.into_iter().flat_map(|step| [step, step]);
            (2..)
                .zip(transitions)
                .map(move |(seq, step)| Transition { plan, step, seq })
        })
    }

    fn write(file: &rusqlite::Connection, Transition { plan, step, seq }: &Transition) {
        let starts = seq % 2 == 0;
        execute(
            file,
            "UPDATE plans SET last_session = NULL, pending = pending - ?3, \
             in_progress = in_progress + ?3 - ?4, awaiting_input = 0, completed = completed + ?4, \
             skipped = 0, failed = 0, seq = ?5, updated_at = updated_at + 1 \
             WHERE tenant_id = ?1 AND plan_id = ?2 AND seq = ?5 - 1",
            ("local", plan, i64::from(starts), i64::from(!starts), seq),
        );
        let text = if starts {
            "UPDATE steps SET status = 'in_progress', claim_token = ?3, started_at = ?4, \
             updated_at = ?4, stalls_at = ?4 WHERE tenant_id = ?1 AND step_id = ?2"
        } else {
            "UPDATE steps SET status = 'completed', result_summary = ?3, ended_at = ?4, \
             ended_commit = 1, updated_at = ?4, stalls_at = NULL \
             WHERE tenant_id = ?1 AND step_id = ?2"
        };
        let token = "0123456789abcdef0123456789abcdef";
        execute(
            file,
            text,
            ("local", step, token, 1_800_000_000_000i64 + seq),
        );
        execute(
            file,
            "INSERT INTO events (tenant_id, plan_id, seq, commit_seq, at, actor, name, step_id, \
             details) VALUES (?1, ?2, ?3, ?3, 1800000000000, 'bench', 'step_started', ?4, ?5)",
            ("local", plan, seq, step, PAYLOAD),
        );
    }
}

fn open(path: &Path) -> rusqlite::Connection {
    let file = rusqlite::Connection::open(path).expect("database opened");
    file.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;")
        .expect("pragmas set");
    file.set_prepared_statement_cache_capacity(32);
    file
}

/// A single caller executes its jobs directly; several callers send their jobs to one thread with
/// group commit.
pub(crate) fn sqlite<W: JobSource>(
    path: &Path,
    source: &W,
    callers: usize,
    duration: Duration,
) -> Samples {
    let file = open(path);
    match callers {
        1 => single_caller(&file, source, duration),
        callers => group_commit(file, source, callers, duration),
    }
}

fn group_commit<W: JobSource>(
    file: rusqlite::Connection,
    source: &W,
    callers: usize,
    duration: Duration,
) -> Samples {
    let (sender, jobs) = mpsc::channel::<(W::Job, tokio::sync::oneshot::Sender<()>)>();
    let writer = std::thread::spawn(move || {
        while let Ok(first) = jobs.recv() {
            execute(&file, "BEGIN IMMEDIATE", ());
            let mut done = Vec::new();
            let mut next = Some(first);
            while let Some((job, reply)) = next.take() {
                W::write(&file, &job);
                done.push(reply);
                if done.len() < 64 {
                    next = jobs.try_recv().ok();
                }
            }
            execute(&file, "COMMIT", ());
            for reply in done {
                reply.send(()).ok();
            }
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime started");
    let samples = runtime.block_on(async {
        let (began, cpu_before) = (Instant::now(), cpu());
        let tasks: Vec<_> = (0..callers)
            .map(|caller| {
                let sender = sender.clone();
                let jobs = source.jobs(caller);
                tokio::spawn(async move {
                    let mut latencies = Vec::new();
                    for job in jobs {
                        let started = Instant::now();
                        let (reply, committed) = tokio::sync::oneshot::channel();
                        sender.send((job, reply)).expect("writer thread is running");
                        committed.await.expect("write committed");
                        latencies.push(started.elapsed());
                        if began.elapsed() >= duration {
                            break;
                        }
                    }
                    latencies
                })
            })
            .collect();
        let mut samples = Samples::default();
        for task in tasks {
            samples
                .latencies
                .extend(task.await.expect("caller finished"));
        }
        samples.elapsed = began.elapsed();
        samples.cpu = cpu().saturating_sub(cpu_before);
        samples
    });
    drop(sender);
    writer.join().expect("writer thread finished");
    samples
}

fn single_caller<W: JobSource>(
    file: &rusqlite::Connection,
    source: &W,
    duration: Duration,
) -> Samples {
    let mut samples = Samples::default();
    let (began, cpu_before) = (Instant::now(), cpu());
    for job in source.jobs(0) {
        let started = Instant::now();
        execute(file, "BEGIN IMMEDIATE", ());
        W::write(file, &job);
        execute(file, "COMMIT", ());
        samples.latencies.push(started.elapsed());
        if began.elapsed() >= duration {
            break;
        }
    }
    samples.elapsed = began.elapsed();
    samples.cpu = cpu().saturating_sub(cpu_before);
    samples
}

/// Each caller has a connection and sends one statement per transaction: one round trip.
pub(crate) async fn postgres(url: &str, callers: usize, duration: Duration) -> Samples {
    let connect = || async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
            .await
            .expect("connected");
        tokio::spawn(connection);
        client
    };
    let client = connect().await;
    client
        .batch_execute(
            "DROP TABLE IF EXISTS bare_heads, bare_events, bare_others;
             CREATE TABLE bare_heads (id bigint PRIMARY KEY, seq bigint NOT NULL, payload text);
             CREATE TABLE bare_events (id bigserial PRIMARY KEY, head bigint, payload text);
             CREATE TABLE bare_others (id bigserial PRIMARY KEY, head bigint, payload text);
             INSERT INTO bare_heads SELECT n, 0, '' FROM generate_series(0, 999) AS n;",
        )
        .await
        .expect("schema created");
    let mut tasks = Vec::new();
    let (began, cpu_before) = (Instant::now(), cpu());
    for caller in 0..callers {
        let client = connect().await;
        tasks.push(tokio::spawn(async move {
            let statement = client
                .prepare(
                    "WITH head AS (UPDATE bare_heads SET seq = seq + 1, payload = $2 WHERE id = $1),
                          event AS (INSERT INTO bare_events (head, payload) VALUES ($1, $2))
                     INSERT INTO bare_others (head, payload) VALUES ($1, $2)",
                )
                .await
                .expect("statement prepared");
            let mut latencies = Vec::new();
            let deadline = Instant::now() + duration;
            while Instant::now() < deadline {
                let started = Instant::now();
                let id = caller as i64 % ROWS;
                client
                    .execute(&statement, &[&id, &PAYLOAD])
                    .await
                    .expect("statement executed");
                latencies.push(started.elapsed());
            }
            latencies
        }));
    }
    let mut samples = Samples::default();
    for task in tasks {
        samples
            .latencies
            .extend(task.await.expect("caller finished"));
    }
    samples.elapsed = began.elapsed();
    samples.cpu = cpu().saturating_sub(cpu_before);
    samples
}

//! The floor: the database's own throughput, without reads, decisions or checks.
//!
//! SQLite has two floors: small rows (one UPDATE and two INSERTs into minimal tables), and the same
//! rows as the engine, in its own tables (`SameRows`). The first shows the maximum throughput of the
//! file, the second the overhead of the engine.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use onward_testbed::bench::{JobSource, PAYLOAD, Samples, cpu, execute};

const ROWS: i64 = 1000;

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

/// The floor of an SQLite file. Returns the open file for the next round.
///
/// A single caller executes its jobs directly; several callers send their jobs to one thread with
/// group commit.
pub(crate) fn sqlite<W: JobSource>(
    file: rusqlite::Connection,
    source: &W,
    callers: usize,
    duration: Duration,
) -> (Samples, rusqlite::Connection) {
    match callers {
        1 => (single_caller(&file, source, duration), file),
        callers => group_commit(file, source, callers, duration),
    }
}

fn group_commit<W: JobSource>(
    file: rusqlite::Connection,
    source: &W,
    callers: usize,
    duration: Duration,
) -> (Samples, rusqlite::Connection) {
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
        file
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime started");
    let samples = runtime.block_on(async {
        let (began, cpu_before) = (Instant::now(), cpu(std::process::id()));
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
        samples.cpu = cpu(std::process::id()).saturating_sub(cpu_before);
        samples
    });
    drop(sender);
    (samples, writer.join().expect("writer thread finished"))
}

fn single_caller<W: JobSource>(
    file: &rusqlite::Connection,
    source: &W,
    duration: Duration,
) -> Samples {
    let mut samples = Samples::default();
    let (began, cpu_before) = (Instant::now(), cpu(std::process::id()));
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
    samples.cpu = cpu(std::process::id()).saturating_sub(cpu_before);
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
    let (began, cpu_before) = (Instant::now(), cpu(std::process::id()));
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
    samples.cpu = cpu(std::process::id()).saturating_sub(cpu_before);
    samples
}

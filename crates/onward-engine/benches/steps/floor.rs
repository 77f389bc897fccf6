//! The bare floor: what the database itself does, without anybody who reads, decides or checks.
//!
//! There are two on SQLite: small rows (one UPDATE and two INSERTs into tables of their own), and the
//! same rows that the engine writes, into its own tables. The first shows what the file could do, the
//! second what the engine adds to its own writes.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use crate::report::{Timed, cpu};

const PAYLOAD: &str = r#"{"from":"pending","to":"in_progress","attempt":1,"token":"0123456789abcdef0123456789abcdef"}"#;
const ROWS: i64 = 1000;

/// How long a sync of this disk takes, in words.
pub(crate) fn sync_time(folder: &Path) -> String {
    let path = folder.join("sync");
    let mut file = std::fs::File::create(&path).expect("a file");
    let mut each = Vec::new();
    for _ in 0..200 {
        file.write_all(&[0; 4096]).expect("a write");
        let began = Instant::now();
        file.sync_data().expect("a sync");
        each.push(began.elapsed());
    }
    let timed = Timed {
        all: each.iter().sum(),
        each,
        ..Timed::default()
    };
    format!(
        "a sync of this disk: p50 {} µs, p99 {} µs",
        timed.quantile(0.5).as_micros(),
        timed.quantile(0.99).as_micros()
    )
}

/// What a bare transaction writes: job after job, from a list that every caller has for itself.
pub(crate) trait Writes: Clone + Send + 'static {
    type Job: Send + 'static;
    /// The jobs of one caller, in their order.
    fn jobs(&self, caller: usize) -> impl Iterator<Item = Self::Job> + Send + 'static;
    fn write(file: &rusqlite::Connection, job: &Self::Job);
}

fn execute(file: &rusqlite::Connection, text: &str, params: impl rusqlite::Params) {
    let mut prepared = file.prepare_cached(text).expect("a statement");
    prepared.execute(params).expect("a write");
}

/// One UPDATE and two INSERTs of small rows, in tables without any other index.
#[derive(Clone)]
pub(crate) struct Small;

impl Small {
    pub(crate) fn make(path: &Path) -> Self {
        let file = rusqlite::Connection::open(path).expect("a file");
        file.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE heads (id integer PRIMARY KEY, seq integer NOT NULL, payload text);
             CREATE TABLE events (id integer PRIMARY KEY, head integer, payload text);
             CREATE TABLE others (id integer PRIMARY KEY, head integer, payload text);",
        )
        .expect("a schema");
        for id in 0..ROWS {
            execute(&file, "INSERT INTO heads VALUES (?1, 0, '')", [id]);
        }
        Self
    }
}

impl Writes for Small {
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

/// The same rows that the engine writes, into the same tables with all their indexes and checks:
/// each step is started and completed, without reading or deciding anything.
#[derive(Clone)]
pub(crate) struct Same {
    /// Per caller, the plans with their steps.
    plans: Arc<Vec<Vec<Plan>>>,
}

type Id = [u8; 16];
/// A plan and its steps.
type Plan = (Id, Vec<Id>);

/// A step of a plan is started, or completed.
pub(crate) struct Move {
    plan: Id,
    step: Id,
    /// The number of its event; even ones start a step.
    seq: i64,
}

impl Same {
    /// Deals the plans of a file out to the callers.
    pub(crate) fn of(path: &Path, callers: usize) -> Self {
        let file = rusqlite::Connection::open(path).expect("a file");
        let mut all = file
            .prepare("SELECT plan_id, step_id FROM steps ORDER BY plan_id, step_order")
            .expect("a statement");
        let rows = all.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
        let mut plans = vec![Vec::<Plan>::new(); callers];
        let (mut last, mut turn) = (None, 0);
        for row in rows.expect("rows") {
            let (plan, step): (Id, Id) = row.expect("a row");
            if last.replace(plan) != Some(plan) {
                turn = (turn + 1) % callers;
                plans[turn].push((plan, Vec::new()));
            }
            let (_, steps) = plans[turn].last_mut().expect("a plan");
            steps.push(step);
        }
        Self {
            plans: Arc::new(plans),
        }
    }
}

impl Writes for Same {
    type Job = Move;

    fn jobs(&self, caller: usize) -> impl Iterator<Item = Move> + Send + 'static {
        let plans = Arc::clone(&self.plans);
        (0..plans[caller].len()).flat_map(move |place| {
            let (plan, steps) = plans[caller][place].clone();
            let moves = steps.into_iter().flat_map(|step| [step, step]);
            (2..)
                .zip(moves)
                .map(move |(seq, step)| Move { plan, step, seq })
        })
    }

    fn write(file: &rusqlite::Connection, Move { plan, step, seq }: &Move) {
        let starts = seq % 2 == 0;
        execute(
            file,
            "UPDATE plans SET last_session = NULL, pending = pending - ?3, \
             in_progress = in_progress + ?3 - ?4, awaiting_input = 0, completed = completed + ?4, \
             skipped = 0, failed = 0, seq = ?5, updated_at = updated_at + 1 \
             WHERE tenant_id = ?1 AND plan_id = ?2 AND seq = ?5 - 1",
            ("local", plan, i64::from(starts), i64::from(!starts), seq),
        );
        let text = match starts {
            true => {
                "UPDATE steps SET status = 'in_progress', claim_token = ?3, started_at = ?4, \
                 updated_at = ?4, stalls_at = ?4 WHERE tenant_id = ?1 AND step_id = ?2"
            }
            false => {
                "UPDATE steps SET status = 'completed', result_summary = ?3, ended_at = ?4, \
                 ended_commit = 1, updated_at = ?4, stalls_at = NULL \
                 WHERE tenant_id = ?1 AND step_id = ?2"
            }
        };
        let word = "0123456789abcdef0123456789abcdef";
        execute(
            file,
            text,
            ("local", step, word, 1_800_000_000_000i64 + seq),
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
    let file = rusqlite::Connection::open(path).expect("a file");
    file.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;")
        .expect("settings");
    file.set_prepared_statement_cache_capacity(32);
    file
}

/// One caller writes by itself; several hand their writes to one thread, which commits them together.
pub(crate) fn sqlite<W: Writes>(path: &Path, writes: &W, callers: usize, span: Duration) -> Timed {
    let file = open(path);
    match callers {
        1 => alone(&file, writes, span),
        callers => together(file, writes, callers, span),
    }
}

fn together<W: Writes>(
    file: rusqlite::Connection,
    writes: &W,
    callers: usize,
    span: Duration,
) -> Timed {
    let (sender, jobs) = mpsc::channel::<(W::Job, tokio::sync::oneshot::Sender<()>)>();
    let writer = std::thread::spawn(move || {
        while let Ok(first) = jobs.recv() {
            execute(&file, "BEGIN IMMEDIATE", ());
            let mut done = Vec::new();
            let mut next = Some(first);
            while let Some((job, waits)) = next.take() {
                W::write(&file, &job);
                done.push(waits);
                if done.len() < 64 {
                    next = jobs.try_recv().ok();
                }
            }
            execute(&file, "COMMIT", ());
            for waits in done {
                waits.send(()).ok();
            }
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let timed = runtime.block_on(async {
        let (began, worked) = (Instant::now(), cpu());
        let tasks: Vec<_> = (0..callers)
            .map(|caller| {
                let sender = sender.clone();
                let jobs = writes.jobs(caller);
                tokio::spawn(async move {
                    let mut each = Vec::new();
                    for job in jobs {
                        let timed = Instant::now();
                        let (waits, answer) = tokio::sync::oneshot::channel();
                        sender.send((job, waits)).expect("a writer");
                        answer.await.expect("an answer");
                        each.push(timed.elapsed());
                        if began.elapsed() >= span {
                            break;
                        }
                    }
                    each
                })
            })
            .collect();
        let mut timed = Timed::default();
        for task in tasks {
            timed.each.extend(task.await.expect("a caller"));
        }
        timed.all = began.elapsed();
        timed.cpu = cpu().saturating_sub(worked);
        timed
    });
    drop(sender);
    writer.join().expect("the writer");
    timed
}

fn alone<W: Writes>(file: &rusqlite::Connection, writes: &W, span: Duration) -> Timed {
    let mut timed = Timed::default();
    let (began, worked) = (Instant::now(), cpu());
    for job in writes.jobs(0) {
        let one = Instant::now();
        execute(file, "BEGIN IMMEDIATE", ());
        W::write(file, &job);
        execute(file, "COMMIT", ());
        timed.each.push(one.elapsed());
        if began.elapsed() >= span {
            break;
        }
    }
    timed.all = began.elapsed();
    timed.cpu = cpu().saturating_sub(worked);
    timed
}

/// Every caller has a connection, and sends one statement per transaction: one round trip.
pub(crate) async fn postgres(url: &str, callers: usize, span: Duration) -> Timed {
    let connect = || async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
            .await
            .expect("a server");
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
        .expect("a schema");
    let mut tasks = Vec::new();
    let (began, worked) = (Instant::now(), cpu());
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
                .expect("a statement");
            let mut each = Vec::new();
            let ends = Instant::now() + span;
            while Instant::now() < ends {
                let timed = Instant::now();
                let id = caller as i64 % ROWS;
                client
                    .execute(&statement, &[&id, &PAYLOAD])
                    .await
                    .expect("a write");
                each.push(timed.elapsed());
            }
            each
        }));
    }
    let mut timed = Timed::default();
    for task in tasks {
        timed.each.extend(task.await.expect("a caller"));
    }
    timed.all = began.elapsed();
    timed.cpu = cpu().saturating_sub(worked);
    timed
}

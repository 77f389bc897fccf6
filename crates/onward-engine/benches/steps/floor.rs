//! The bare floor: what the database itself does with one UPDATE and two INSERTs per transaction.

use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
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
        cpu: Duration::ZERO,
    };
    format!(
        "a sync of this disk: p50 {} µs, p99 {} µs",
        timed.quantile(0.5).as_micros(),
        timed.quantile(0.99).as_micros()
    )
}

const UPDATE: &str = "UPDATE heads SET seq = seq + 1, payload = ?2 WHERE id = ?1";
const INSERT: &str = "INSERT INTO events (head, payload) VALUES (?1, ?2)";
const OTHER: &str = "INSERT INTO others (head, payload) VALUES (?1, ?2)";

fn open(path: &Path) -> rusqlite::Connection {
    let file = rusqlite::Connection::open(path).expect("a file");
    file.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE heads (id integer PRIMARY KEY, seq integer NOT NULL, payload text);
         CREATE TABLE events (id integer PRIMARY KEY, head integer, payload text);
         CREATE TABLE others (id integer PRIMARY KEY, head integer, payload text);",
    )
    .expect("a schema");
    for id in 0..ROWS {
        file.execute("INSERT INTO heads VALUES (?1, 0, '')", [id])
            .expect("a row");
    }
    file
}

fn write(file: &rusqlite::Connection, id: i64) {
    for text in [UPDATE, INSERT, OTHER] {
        let mut prepared = file.prepare_cached(text).expect("a statement");
        prepared.execute((id, PAYLOAD)).expect("a write");
    }
}

/// One caller writes by itself; several hand their writes to one thread, which commits them together.
pub(crate) fn sqlite(path: &Path, callers: usize, span: Duration) -> Timed {
    let file = open(path);
    if callers == 1 {
        return alone(&file, span);
    }
    let (sender, jobs) = mpsc::channel::<(i64, tokio::sync::oneshot::Sender<()>)>();
    let writer = std::thread::spawn(move || {
        while let Ok(first) = jobs.recv() {
            file.execute_batch("BEGIN IMMEDIATE").expect("a begin");
            let mut done = Vec::new();
            let mut next = Some(first);
            while let Some((id, waits)) = next.take() {
                file.prepare_cached("SAVEPOINT job")
                    .expect("sql")
                    .execute([])
                    .expect("sql");
                write(&file, id);
                file.prepare_cached("RELEASE job")
                    .expect("sql")
                    .execute([])
                    .expect("sql");
                done.push(waits);
                if done.len() < 64 {
                    next = jobs.try_recv().ok();
                }
            }
            file.execute_batch("COMMIT").expect("a commit");
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
                tokio::spawn(async move {
                    let mut each = Vec::new();
                    let ends = Instant::now() + span;
                    while Instant::now() < ends {
                        let timed = Instant::now();
                        let (waits, answer) = tokio::sync::oneshot::channel();
                        sender
                            .send((caller as i64 % ROWS, waits))
                            .expect("a writer");
                        answer.await.expect("an answer");
                        each.push(timed.elapsed());
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

fn alone(file: &rusqlite::Connection, span: Duration) -> Timed {
    let mut timed = Timed::default();
    let (began, worked) = (Instant::now(), cpu());
    while began.elapsed() < span {
        let one = Instant::now();
        file.prepare_cached("BEGIN IMMEDIATE")
            .expect("sql")
            .execute([])
            .expect("sql");
        write(file, timed.each.len() as i64 % ROWS);
        file.prepare_cached("COMMIT")
            .expect("sql")
            .execute([])
            .expect("sql");
        timed.each.push(one.elapsed());
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

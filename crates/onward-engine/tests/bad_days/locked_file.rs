//! Another program holds the file, with a write transaction that it does not end.

use std::time::Instant;

use onward_engine::next::Next;
use onward_engine::{Address, Caller, Engine};

use crate::dice::Dice;
use crate::place::{Kind, Place};
use crate::{in_time, is_unavailable, plans};

/// A connection of somebody else, in a transaction that writes.
struct Lock(rusqlite::Connection);

impl Lock {
    fn on(place: &Place) -> Self {
        let Address::File(path) = &place.address else {
            panic!("only a file can be locked");
        };
        let other = rusqlite::Connection::open(path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(other)
    }

    fn release(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_for_a_locked_file_is_told_so_in_time_and_the_next_call_works_by_itself() {
    let place = Place::new(Kind::Sqlite);
    let (engine, caller) = (place.open().await, Caller::local("me"));
    let command = plans::branching(&engine, &mut Dice::new(1), "locked", 20);
    let plan = engine.create_plan(&caller, command, None).await.unwrap();
    let plan = plan.created.plan;

    let lock = Lock::on(&place);
    let since = Instant::now();
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let (engine, caller) = (engine.clone(), caller.clone());
            tokio::spawn(async move { engine.next_step(&caller, plan, None, false).await })
        })
        .collect();
    in_time(engine.status(&caller, plan, None)).await.unwrap();
    let opened = in_time(Engine::open(&place.address, Default::default())).await;
    let other = opened.expect("a server can start meanwhile");
    in_time(other.status(&caller, plan, None)).await.unwrap();
    for answer in waiting {
        let answer = in_time(answer).await.unwrap();
        is_unavailable(&answer.expect_err("nobody can write"));
    }
    println!(
        "20 calls behind a lock were answered after {:?}",
        since.elapsed()
    );
    lock.release();

    for engine in [&engine, &other] {
        let next = in_time(engine.next_step(&caller, plan, None, false)).await;
        assert!(matches!(next.unwrap(), Next::Started(_)));
    }
    let checked = engine.verify(&caller).await.unwrap();
    assert_eq!(checked.faults, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_passes_is_waited_for_and_nobody_is_told() {
    let place = Place::new(Kind::Sqlite);
    let (engine, caller) = (place.open().await, Caller::local("me"));
    let command = plans::branching(&engine, &mut Dice::new(1), "locked", 20);
    let lock = Lock::on(&place);
    let mut asked = Box::pin(engine.create_plan(&caller, command, None));
    let waits = tokio::time::timeout(std::time::Duration::from_millis(300), &mut asked).await;
    assert!(
        waits.is_err(),
        "it cannot be answered while the file is locked"
    );
    lock.release();
    in_time(asked).await.unwrap();
}

/// The line in which processes wait to write, while somebody at its front has stopped.
fn stop_the_line(place: &Place) -> std::fs::File {
    let Address::File(path) = &place.address else {
        panic!("only those who share a file stand in line");
    };
    let mut name = path.clone().into_os_string();
    name.push("-line");
    let line = std::fs::File::options().append(true).open(name).unwrap();
    line.lock().unwrap();
    line
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_stands_in_a_line_that_does_not_move_is_told_so_in_time_and_it_is_never_done() {
    let place = Place::new(Kind::Sqlite);
    let (engine, caller) = (place.open().await, Caller::local("me"));
    let mut dice = Dice::new(1);
    let command = plans::branching(&engine, &mut dice, "before", 20);
    let before = engine.create_plan(&caller, command, None).await.unwrap();
    let stopped = stop_the_line(&place);
    let command = plans::branching(&engine, &mut dice, "given up", 20);
    let given_up = command.plan;
    let why = in_time(engine.create_plan(&caller, command, None)).await;
    is_unavailable(&why.expect_err("the line does not move"));
    in_time(engine.status(&caller, before.created.plan, None))
        .await
        .expect("whoever reads stands in no line");

    stopped.unlock().unwrap();
    let next = in_time(engine.next_step(&caller, before.created.plan, None, false)).await;
    assert!(matches!(next.unwrap(), Next::Started(_)));
    let status = engine.status(&caller, given_up, None).await;
    status.expect_err("what was given up is not done later");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_ends_in_time_where_the_line_does_not_move() {
    let place = Place::new(Kind::Sqlite);
    let (engine, caller) = (place.open().await, Caller::local("me"));
    let stopped = stop_the_line(&place);
    let command = plans::branching(&engine, &mut Dice::new(1), "given up", 20);
    let other = engine.clone();
    let asked = tokio::spawn(async move { other.create_plan(&caller, command, None).await });
    in_time(engine.close()).await;
    is_unavailable(&in_time(asked).await.unwrap().expect_err("nobody wrote it"));
    drop(stopped);
}

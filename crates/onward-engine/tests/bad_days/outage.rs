//! The server crashes in the middle of work, stays away, and comes back.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use onward_core::PlanStatus;
use onward_core::policy::OnStall;
use onward_engine::{Caller, Engine};
use onward_testbed::{Cluster, psql};
use tokio::task::JoinSet;

use crate::busy::{Agent, Open};
use crate::dice::{Dice, seed};
use crate::history::{Line, Telling, Told, What};
use crate::place::Place;
use crate::{LIMIT, are_unavailable, in_time, is_unavailable, plans, promises};

/// What agents of this process were told.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Line>>>);

impl Notes {
    fn telling(&self) -> Telling {
        let notes = self.clone();
        Arc::new(move |line| notes.lock().push(line))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many more lines are such.
    async fn more(&self, wanted: usize, such: fn(&What) -> bool) {
        let ends = Instant::now() + 2 * LIMIT;
        let from = self.lock().len();
        loop {
            let lines = self.lock()[from..].to_vec();
            if lines.iter().filter(|line| such(&line.what)).count() >= wanted {
                return;
            }
            assert!(Instant::now() < ends, "too few in time: {lines:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn is_trouble(what: &What) -> bool {
    matches!(what, What::Told(Told::Trouble { .. }))
}

fn is_done(what: &What) -> bool {
    matches!(
        what,
        What::Told(Told::Completed { .. } | Told::Claimed { .. })
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_and_comes_back_loses_nothing_and_is_found_again() {
    let cluster = Cluster::start();
    let place = Place::on(&cluster);
    let engine = place.open().await;
    let (end, stop) = tokio::sync::watch::channel(false);
    let sweeping = engine.clone();
    let sweep = tokio::spawn(async move { sweeping.keep_sweeping(stop).await });
    let (notes, open, mut dice) = (Notes::default(), Open::default(), Dice::new(seed()));
    let tell = notes.telling();
    let mut agents = JoinSet::new();
    for number in 0..6 {
        let dice = Dice::new(dice.roll());
        agents.spawn(Agent::new(&engine, format!("a{number}"), dice, &tell, &open).work());
    }
    let caller = Caller::local("checker");
    for _ in 0..2 {
        notes.more(30, is_done).await;
        cluster.stop();
        is_unavailable(
            &in_time(engine.verify(&caller))
                .await
                .expect_err("it is away"),
        );
        let command = plans::branching(&engine, &mut dice, "away", 3);
        let made = in_time(engine.create_plan(&caller, command, None)).await;
        is_unavailable(&made.expect_err("it is away"));
        notes.more(20, is_trouble).await;
        cluster.restart();
        notes.more(30, is_done).await;
    }
    agents.shutdown().await;
    let lines = std::mem::take(&mut *notes.lock());
    for line in &lines {
        assert!(Duration::from_micros(line.micros) < LIMIT, "{line:?}");
    }
    are_unavailable(&lines);
    let sum = promises::check(&engine, &caller, &lines).await;
    let longest = lines.iter().map(|line| line.micros).max().unwrap_or(0);
    println!(
        "two crashes: {sum:?}, the longest call took {} ms",
        longest / 1000
    );
    leads_again(&place).await;
    marks_a_stall(&engine, &caller).await;
    end.send_replace(true);
    in_time(sweep).await.unwrap();
}

/// Waits until the sweep leads again, whether or not there is anything to do.
async fn leads_again(place: &Place) {
    let held = "select count(*) from pg_locks where locktype = 'advisory' and granted";
    let ends = Instant::now() + LIMIT;
    while psql(&place.written(), held).as_deref() != Ok("1") {
        assert!(Instant::now() < ends, "nobody has taken the lead again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The sweep goes on: a step that stalls from now on is noticed.
async fn marks_a_stall(engine: &Engine, caller: &Caller) {
    let mut command = plans::branching(engine, &mut Dice::new(1), "stalling", 3);
    command.stall_threshold = Some(Duration::from_millis(20));
    command.on_stall = OnStall::Mark;
    let plan = engine.create_plan(caller, command, None).await.unwrap();
    let plan = plan.created.plan;
    engine.next_step(caller, plan, None, false).await.unwrap();
    let ends = Instant::now() + LIMIT;
    loop {
        let status = engine.status(caller, plan, None).await.unwrap();
        if status.sheet.head.status() == PlanStatus::Stalled {
            return;
        }
        assert!(Instant::now() < ends, "nobody sweeps: {status:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sweep_leads_again_after_a_crash_although_nothing_was_due() {
    let cluster = Cluster::start();
    let place = Place::on(&cluster);
    let engine = place.open().await;
    let (end, stop) = tokio::sync::watch::channel(false);
    let sweeping = engine.clone();
    let sweep = tokio::spawn(async move { sweeping.keep_sweeping(stop).await });
    leads_again(&place).await;
    cluster.restart();
    leads_again(&place).await;
    marks_a_stall(&engine, &Caller::local("checker")).await;
    end.send_replace(true);
    in_time(sweep).await.unwrap();
}

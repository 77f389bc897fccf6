//! The sweep: acts on stalls according to the plans' policies and on reviews at their deadlines,
//! interrupts tool calls that have timed out, and sleeps until the next deadline.
//!
//! Deadlines are in two narrow tables. A plan or session may be checked too early, never too late.
//! One process per database sweeps. After a start, or after a sleep past its deadline, the sweep
//! gives steps and calls that were already inactive one grace period; see [`Watcher`].

mod check;
mod deadlines;
mod of_nodes;
mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use onward_core::policy::CLOCK_TOLERANCE;
use onward_core::watcher::{Watcher, WatcherPolicy};
use onward_core::{PlanId, Timestamp};
use onward_store::{DueChecks, DuePlan, Lead, Pipeline};
use tokio::sync::watch;

use crate::agent::tool_calls::RecoveryReport;
use crate::engine::Engine;
use crate::error::Error;
use check::Checked;
use queue::Queue;

/// Maximum number of plans that a round takes at its start. Those after them are in the next round.
const ROUND_SIZE: u32 = 10_000;
/// Maximum number of plans that become due during a round and are taken per look.
const FRESH_SIZE: u32 = 1_000;
/// Number of plans that are checked at the same time.
const CONCURRENT: usize = 64;
/// Number of sessions with open calls per query.
const BATCH_SIZE: u32 = 256;
/// Interval at which a round looks for what has become due in the meantime.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which changes by other processes are polled: SQLite sends no notifications. On
/// PostgreSQL, notifications arrive sooner.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Delay after an error.
const ERROR_DELAY: Duration = Duration::from_secs(2);

/// Result of one sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepRound {
    /// Number of plans checked.
    pub checked: usize,
    /// Plans that were changed.
    pub changed: Vec<(Arc<str>, PlanId)>,
    /// Plans that could not be checked, with the error. They are retried later.
    pub failed: Vec<(Arc<str>, PlanId, String)>,
    /// Tool calls that were interrupted.
    pub calls: RecoveryReport,
    /// The next deadline.
    pub next_at: Option<Timestamp>,
    /// Duration of the round.
    pub took: Duration,
}

impl SweepRound {
    fn add(&mut self, due: DuePlan, checked: Checked) {
        self.checked += 1;
        match checked {
            Checked::Changed => self.changed.push((due.tenant, due.plan)),
            Checked::Unchanged => {}
            Checked::Failed(why) => self.failed.push((due.tenant, due.plan, why)),
        }
    }
}

/// The pipelines of a round, used in turn.
#[derive(Default)]
struct Lanes {
    first: Pipeline,
    second: Pipeline,
    takes_second: AtomicBool,
}

impl Lanes {
    fn next(&self) -> &Pipeline {
        if self.takes_second.fetch_xor(true, Ordering::Relaxed) {
            &self.second
        } else {
            &self.first
        }
    }
}

/// A part of a round that is done.
enum Done {
    Plan(DuePlan, Checked),
    Calls(Result<RecoveryReport, Error>),
}

/// A round.
struct Work<'a> {
    queue: Queue,
    running: FuturesUnordered<BoxFuture<'a, Done>>,
    /// Whether calls are being checked.
    checks_calls: bool,
    /// Whether a plan that cannot be reached was skipped.
    skipped: bool,
    round: SweepRound,
}

impl<'a> Work<'a> {
    fn begin_calls(&mut self, calls: BoxFuture<'a, Result<RecoveryReport, Error>>) {
        self.running.push(calls.map(Done::Calls).boxed());
        self.checks_calls = true;
    }

    fn add(&mut self, done: Done) -> Result<(), Error> {
        match done {
            Done::Plan(due, checked) => {
                self.queue.done(due.plan);
                self.round.add(due, checked);
            }
            Done::Calls(report) => {
                self.checks_calls = false;
                self.round.calls.add(report?);
            }
        }
        Ok(())
    }
}

impl Engine {
    /// A watcher that starts now.
    pub fn watcher(&self) -> Watcher {
        Watcher::begin(WatcherPolicy::default(), self.now())
    }

    /// One round: checks all plans and tool calls that are due, and acts on the findings.
    ///
    /// Plans of different tenants are checked at the same time, in turn, and so are those that become
    /// due during the round: neither a long backlog nor a plan that cannot be reached delays them.
    pub async fn sweep(&self, watcher: &mut Watcher) -> Result<SweepRound, Error> {
        let began = tokio::time::Instant::now();
        let seen = self.last_sweep_at();
        let Some(now) = self.look(watcher).await? else {
            let next_at = self.now().checked_add(POLL_INTERVAL);
            watcher.sleep_until(next_at.unwrap_or(Timestamp::MAX));
            return Ok(SweepRound {
                next_at,
                ..SweepRound::default()
            });
        };
        let lanes = Lanes::default();
        let mut work = Work {
            queue: Queue::new(Vec::new(), now),
            running: FuturesUnordered::new(),
            checks_calls: false,
            skipped: false,
            round: SweepRound::default(),
        };
        if watcher.must_reschedule() {
            self.reschedule(now, &lanes).await?;
            // Few sessions have open calls, so all of them are checked.
            let calls = self.sweep_calls(*watcher, Timestamp::MAX, u32::MAX);
            work.round.calls.add(calls.await?);
            watcher.rescheduled();
        } else {
            let calls = self.sweep_calls(*watcher, now, BATCH_SIZE);
            work.begin_calls(calls.boxed());
        }
        let mut worked = self.work(watcher, now, seen, &lanes, &mut work).await;
        // After an error, the checks that are running are finished, too.
        while let Some(done) = work.running.next().await {
            worked = worked.and(work.add(done));
        }
        worked?;
        let Work {
            queue,
            skipped,
            mut round,
            ..
        } = work;
        self.sweep_waker.record_overdue(queue.len());
        round.next_at = self.first_due().await?;
        if skipped {
            // What cannot be reached stays due.
            let later = self.now().checked_add(POLL_INTERVAL);
            round.next_at = round.next_at.max(later);
        }
        self.sweep_waker.record_check(self.now());
        watcher.sleep_until(round.next_at.unwrap_or(Timestamp::MAX));
        round.took = began.elapsed();
        Ok(round)
    }

    /// Checks what is due, and what becomes due in the meantime.
    async fn work<'a>(
        &'a self,
        watcher: &mut Watcher,
        now: Timestamp,
        seen: Option<Timestamp>,
        lanes: &'a Lanes,
        work: &mut Work<'a>,
    ) -> Result<(), Error> {
        let mut look_at = tokio::time::Instant::now() + LOOK_INTERVAL;
        let backlog = self.due_until(now).await?;
        let hides_others = backlog.len() >= usize::try_from(ROUND_SIZE).unwrap_or(usize::MAX);
        work.queue = Queue::new(backlog, now);
        if hides_others && let Some(seen) = seen {
            // What became due since the last look does not wait for a later round.
            work.queue.add(self.newly_due(seen, now).await?, now);
        }
        loop {
            while work.running.len() <= CONCURRENT
                && let Some(due) = work.queue.next()
            {
                if self.sweep_waker.is_postponed(due.plan, self.now()) {
                    work.queue.done(due.plan);
                    work.skipped = true;
                } else {
                    let check = self.check_due(due, *watcher, lanes.next());
                    work.running.push(check.boxed());
                }
            }
            self.sweep_waker.record_overdue(work.queue.len());
            tokio::select! {
                done = work.running.next() => match done {
                    Some(done) => work.add(done)?,
                    None => return Ok(()),
                },
                () = tokio::time::sleep_until(look_at) => {}
            }
            // Only a pause in which nothing completes is a sleep.
            watcher.wake(self.now());
            if tokio::time::Instant::now() < look_at {
                continue;
            }
            let now = self.look(watcher).await?;
            look_at = tokio::time::Instant::now() + LOOK_INTERVAL;
            let Some(now) = now else {
                return Ok(());
            };
            let fresh = self.newly_due(work.queue.seen(), now).await?;
            work.queue.add(fresh, now);
            if !work.checks_calls {
                let calls = self.sweep_calls(*watcher, now, BATCH_SIZE);
                work.begin_calls(calls.boxed());
            }
        }
    }

    async fn check_due(&self, due: DuePlan, watcher: Watcher, pipeline: &Pipeline) -> Done {
        let watcher = match due.reachable_since {
            Some(at) => watcher.resumed_at(at),
            None => watcher,
        };
        let checked = self.check(&due, watcher, pipeline).await;
        Done::Plan(due, checked)
    }

    /// Looks at the clock, before the plans that are due by it. `None` if it may be wrong: then nothing
    /// is checked.
    async fn look(&self, watcher: &mut Watcher) -> Result<Option<Timestamp>, Error> {
        // On PostgreSQL, the time of the database counts, not that of this machine.
        self.refresh_clock().await?;
        let now = self.now();
        if self.clock_is_settling() {
            return Ok(None);
        }
        watcher.wake(now);
        self.sweep_waker.record_check(now);
        Ok(Some(now))
    }

    /// Number of plans that were due and not checked when the sweep of this process last looked.
    pub fn overdue_plans(&self) -> usize {
        self.sweep_waker.overdue()
    }

    /// When the sweep of this process last looked for due plans and calls; `None` if another process
    /// sweeps.
    pub fn last_sweep_at(&self) -> Option<Timestamp> {
        self.sweep_waker.last_check()
    }

    /// Sweeps until stopped, whenever no other process on the database does.
    pub async fn run_sweeper(&self, stop: watch::Receiver<bool>) {
        self.run_sweeper_with(stop, |_| {}).await;
    }

    /// [`Self::run_sweeper`] with a callback for every round.
    pub async fn run_sweeper_with(
        &self,
        mut stop: watch::Receiver<bool>,
        mut on_round: impl FnMut(&Result<SweepRound, Error>) + Send,
    ) {
        while !*stop.borrow() {
            let asked_at = self.now();
            let leading = tokio::select! {
                leading = self.store.lead(Lead::Sweep) => leading,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let Ok(mut leading) = leading else {
                if sleep_or_stop(&mut stop, ERROR_DELAY).await {
                    return;
                }
                continue;
            };
            // A long wait counts as a sleep.
            let mut watcher = Watcher::begin(WatcherPolicy::default(), asked_at);
            while !leading.is_lost() {
                let round = tokio::select! {
                    round = self.sweep(&mut watcher) => round,
                    () = leading.lost() => break,
                    _ = stop.wait_for(|stop| *stop) => return,
                };
                on_round(&round);
                let pause = match round {
                    Ok(round) => self.plan_wakeup(round.next_at),
                    // The database is unavailable; due plans and calls stay due.
                    Err(_) => ERROR_DELAY,
                };
                let ended = tokio::select! {
                    ended = self.sleep_until_due(&mut watcher, &mut stop, pause) => ended,
                    () = leading.lost() => false,
                };
                if ended {
                    return;
                }
            }
            // Another process sweeps.
            self.sweep_waker.record_end();
        }
    }

    /// Sleeps, but not past a new deadline. Returns true if stopped.
    async fn sleep_until_due(
        &self,
        watcher: &mut Watcher,
        stop: &mut watch::Receiver<bool>,
        pause: Duration,
    ) -> bool {
        let ends = tokio::time::Instant::now() + pause;
        loop {
            let left = ends.saturating_duration_since(tokio::time::Instant::now());
            let interval = left.min(POLL_INTERVAL);
            tokio::select! {
                () = self.sweep_waker.woken() => return false,
                () = tokio::time::sleep(interval) => {}
                _ = stop.wait_for(|stop| *stop) => return true,
            }
            let now = self.now();
            if left <= POLL_INTERVAL {
                return false;
            }
            // A wake-up that is much later than planned means that the machine slept.
            watcher.wake(now);
            let first = self.first_due().await;
            if first.is_ok() {
                self.sweep_waker.record_check(now);
            }
            if matches!(first, Ok(Some(at)) if at <= now) {
                watcher.sleep_until(now);
                return false;
            }
            watcher.sleep_until(now.checked_add(POLL_INTERVAL).unwrap_or(Timestamp::MAX));
        }
    }

    fn plan_wakeup(&self, next_at: Option<Timestamp>) -> Duration {
        self.sweep_waker.plan(next_at);
        next_at.map_or(Duration::from_secs(3600), |at| at.since(self.now()))
    }

    /// Makes plans due whose next check a wrong clock has planned too late.
    async fn reschedule(&self, now: Timestamp, lanes: &Lanes) -> Result<(), Error> {
        let latest = now.checked_add(CLOCK_TOLERANCE).unwrap_or(Timestamp::MAX);
        let late = self
            .store
            .read_nodes(move |tx| Box::pin(async move { DueChecks(tx).late(now, latest).await }));
        for late in self.in_turn(late.await?).chunks(CONCURRENT) {
            let mut advances = FuturesUnordered::new();
            for due in late {
                advances.push(self.advance(due, now, lanes.next()).boxed());
            }
            while let Some(advanced) = advances.next().await {
                advanced?;
            }
        }
        Ok(())
    }

    async fn advance(
        &self,
        due: &DuePlan,
        now: Timestamp,
        pipeline: &Pipeline,
    ) -> Result<(), Error> {
        let plan = due.plan;
        let advance = self.store.transition_in(pipeline, &due.tenant, move |tx| {
            Box::pin(async move {
                DueChecks(tx).advance(plan, now);
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(advance.await?)
    }

    async fn due_until(&self, until: Timestamp) -> Result<Vec<DuePlan>, Error> {
        let due = self.store.read_nodes(move |tx| {
            Box::pin(async move { DueChecks(tx).due_until(until, ROUND_SIZE).await })
        });
        Ok(self.in_turn(due.await?))
    }

    async fn newly_due(&self, after: Timestamp, until: Timestamp) -> Result<Vec<DuePlan>, Error> {
        let due = self.store.read_nodes(move |tx| {
            Box::pin(async move { DueChecks(tx).newly_due(after, until, FRESH_SIZE).await })
        });
        Ok(self.in_turn(due.await?))
    }

    pub(super) async fn first_due(&self) -> Result<Option<Timestamp>, Error> {
        let first = self
            .store
            .read_nodes(|tx| Box::pin(async { DueChecks(tx).first_due().await }));
        Ok(first
            .await?
            .into_iter()
            .filter_map(|of_node| of_node.read)
            .min())
    }
}

/// Sleeps. Returns true if stopped.
async fn sleep_or_stop(stop: &mut watch::Receiver<bool>, pause: Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(pause) => false,
        _ = stop.wait_for(|stop| *stop) => true,
    }
}

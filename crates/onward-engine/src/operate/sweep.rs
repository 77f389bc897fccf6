//! The sweep: acts on stalls according to the plans' policies and on reviews at their deadlines,
//! interrupts tool calls that have timed out, and sleeps until the next deadline.
//!
//! Deadlines are in two narrow tables. A plan or session may be checked too early, never too late.
//! One process per database sweeps. After a start, or after a sleep past its deadline, the sweep
//! gives steps and calls that were already inactive one grace period; see [`Watcher`].

mod deadlines;

use std::sync::Arc;
use std::time::Duration;

use onward_core::attention::{Word, attention, no_agent_at};
use onward_core::command::HandleStalls;
use onward_core::decide::handle_stalls;
use onward_core::finding::Finding;
use onward_core::next_check::{self, Due};
use onward_core::policy::CLOCK_TOLERANCE;
use onward_core::watcher::{Watcher, WatcherPolicy};
use onward_core::{Command, PlanHead, PlanId, Timestamp};
use onward_store::{
    Cached, DueChecks, DuePlan, Facts, Lead, Notifications, PlanLists, Steps, Transitions, Tx,
};
use tokio::sync::watch;

use crate::agent::tool_calls::{RETRY_AFTER, RecoveryReport};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{CommandContext, CommandOutcome, Target, run};

/// Number of plans per query.
const BATCH_SIZE: u32 = 256;
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
}

impl Engine {
    /// A watcher that starts now.
    pub fn watcher(&self) -> Watcher {
        Watcher::begin(WatcherPolicy::default(), self.now())
    }

    /// One round: checks all plans and tool calls that are due, and acts on the findings.
    pub async fn sweep(&self, watcher: &mut Watcher) -> Result<SweepRound, Error> {
        // On PostgreSQL, the time of the database counts, not that of this machine.
        self.refresh_clock().await?;
        let now = self.now();
        let mut round = SweepRound::default();
        if self.clock_is_settling() {
            // Nothing is checked by a clock that may be wrong.
            round.next_at = now.checked_add(POLL_INTERVAL);
            watcher.sleep_until(round.next_at.unwrap_or(Timestamp::MAX));
            return Ok(round);
        }
        watcher.wake(now);
        // Few sessions have open calls, so all of them are checked if their due times may be wrong.
        let (calls_until, calls_limit) = if watcher.must_reschedule() {
            self.reschedule(now).await?;
            (Timestamp::MAX, u32::MAX)
        } else {
            (now, BATCH_SIZE)
        };
        loop {
            let due = self.due_until(now).await?;
            let full = due.len() >= usize::try_from(BATCH_SIZE).unwrap_or(usize::MAX);
            for plan in due {
                round.checked += 1;
                match self.check_plan(&plan, *watcher, now).await {
                    Ok(true) => round.changed.push((plan.tenant, plan.plan)),
                    Ok(false) => {}
                    Err(
                        error @ Error::Store(
                            onward_store::Error::Unavailable { .. }
                            | onward_store::Error::Overloaded(_),
                        ),
                    ) => {
                        return Err(error);
                    }
                    // One damaged plan must not prevent checks of the others.
                    Err(error) => {
                        self.postpone(&plan, now).await?;
                        round
                            .failed
                            .push((plan.tenant, plan.plan, error.to_string()));
                    }
                }
            }
            if !full {
                break;
            }
        }
        let calls = self.sweep_calls(*watcher, calls_until, calls_limit);
        round.calls = calls.await?;
        watcher.rescheduled();
        round.next_at = self.first_due().await?;
        self.sweep_waker.record_check(now);
        watcher.sleep_until(round.next_at.unwrap_or(Timestamp::MAX));
        Ok(round)
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
            let mut watcher = self.watcher();
            while !leading.is_lost() {
                let round = self.sweep(&mut watcher).await;
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
    async fn reschedule(&self, now: Timestamp) -> Result<(), Error> {
        let latest = now.checked_add(CLOCK_TOLERANCE).unwrap_or(Timestamp::MAX);
        let no_tenant = Arc::from("");
        let late = self.store.read(&no_tenant, move |tx| {
            Box::pin(async move { DueChecks(tx).late(now, latest).await })
        });
        for DuePlan { tenant, plan, .. } in late.await? {
            let advance = self.store.write(&tenant, move |tx| {
                Box::pin(async move {
                    DueChecks(tx).advance(plan, now);
                    Ok::<(), onward_store::Error>(())
                })
            });
            advance.await?;
        }
        Ok(())
    }

    async fn due_until(&self, now: Timestamp) -> Result<Vec<DuePlan>, Error> {
        let no_tenant = Arc::from("");
        let due = self.store.read(&no_tenant, move |tx| {
            Box::pin(async move { DueChecks(tx).due_until(now, BATCH_SIZE).await })
        });
        Ok(due.await?)
    }

    pub(super) async fn first_due(&self) -> Result<Option<Timestamp>, Error> {
        let no_tenant = Arc::from("");
        let first = self.store.read(&no_tenant, |tx| {
            Box::pin(async { DueChecks(tx).first_due().await })
        });
        Ok(first.await?)
    }

    /// Postpones the next check of a plan.
    async fn postpone(&self, due: &DuePlan, now: Timestamp) -> Result<(), Error> {
        let plan = due.plan;
        let later = now.checked_add(RETRY_AFTER).unwrap_or(Timestamp::MAX);
        let postpone = self.store.write(&due.tenant, move |tx| {
            Box::pin(async move {
                Cached(Transitions(tx)).due(plan, Due::At(later));
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(postpone.await?)
    }

    /// Checks one plan, acts on its reviews and stalls, and schedules the next check. Returns true if it acted.
    async fn check_plan(
        &self,
        due: &DuePlan,
        watcher: Watcher,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let caller = Caller::internal(Arc::clone(&due.tenant), "sweep");
        let plan = due.plan;
        let ctx = CommandContext {
            now,
            author: caller.author(None),
            watcher: Some(watcher),
            no_agent_after: self.no_agent_after,
        };
        let acted = self.store.write(&caller.tenant, move |tx| {
            let ctx = ctx.clone();
            Box::pin(async move {
                let command = HandleStalls::default();
                let facts = Facts(tx)
                    .stalls_of(plan, &command, ctx.watcher, now)
                    .await?;
                let Some(mut facts) = facts else {
                    Cached(Transitions(tx)).due(plan, Due::Never);
                    return Ok(false);
                };
                let reviews = deadlines::handle(tx, &facts.head, &ctx).await?;
                if reviews.commit_seq.is_some() {
                    let changed = Facts(tx)
                        .stalls_of(plan, &command, ctx.watcher, now)
                        .await?;
                    facts = changed.unwrap_or(facts);
                }
                add_stall_notifications(tx, &facts, &command, now);
                let command = Command::from(command);
                let target = Target::Plan(plan);
                match run(tx, target, &command, &ctx, reviews.commit_seq).await? {
                    CommandOutcome::Applied(done) => {
                        let has_changed = reviews.commit_seq.is_some() || !done.events.is_empty();
                        let idle = report_no_agent(tx, &done.head, &ctx).await?;
                        let checked = handle_stalls::Facts {
                            changed_at: if has_changed { now } else { facts.changed_at },
                            head: done.head,
                            in_progress: done.steps,
                            watcher: ctx.watcher,
                        };
                        let next = if checked.head.status().is_terminal() {
                            None
                        } else {
                            let next_stall_at = Steps(tx).next_stall_at(plan, now).await?;
                            let stalls = next_check::after_check(&checked, next_stall_at, now);
                            stalls.into_iter().chain(idle).chain(reviews.next_at).min()
                        };
                        Cached(Transitions(tx)).due(plan, next.map_or(Due::Never, Due::At));
                        Ok(has_changed)
                    }
                    CommandOutcome::Rejected { refusal, .. } => Err(Error::from(refusal)),
                    CommandOutcome::NotFound => {
                        Cached(Transitions(tx)).due(plan, Due::Never);
                        Ok(false)
                    }
                }
            })
        });
        acted.await
    }
}

/// Queues a notification for every stall of a plan, unless its policy ignores stalls.
fn add_stall_notifications(
    tx: &mut Tx,
    facts: &handle_stalls::Facts,
    command: &HandleStalls,
    now: Timestamp,
) {
    for stall in handle_stalls::notifiable_stalls(facts, command, now) {
        Notifications(tx).add_notice(facts.head.id, &Finding::from_stall(&stall), now);
    }
}

/// Queues a notification for a plan on which no agent works or can work, once per period without
/// activity. A
/// user's own action delays it: they know the plan. Returns when to check again, if not yet.
async fn report_no_agent(
    tx: &mut Tx,
    head: &PlanHead,
    ctx: &CommandContext,
) -> Result<Option<Timestamp>, Error> {
    let limit = ctx.no_agent_after;
    if no_agent_at(head, ctx.now, limit).is_none() {
        return Ok(None);
    }
    let Some(listed) = PlanLists(tx).listed(head.id, ctx.now).await? else {
        return Ok(None);
    };
    let active_at = listed.sheet.acted_at;
    let Some(due_at) = no_agent_at(head, active_at, limit) else {
        return Ok(None);
    };
    let due_at = match &ctx.watcher {
        Some(watcher) => watcher.deadline(active_at, due_at),
        None => due_at,
    };
    if ctx.now <= due_at {
        return Ok(Some(due_at.next()));
    }
    let attention = attention(head, &listed.facts, ctx.now, limit);
    let finding = match attention.word {
        Word::NoAgent => Finding::no_agent(attention.since),
        Word::Blocked => Finding::blocked(attention.since),
        Word::Stuck
        | Word::NeedsYou
        | Word::Working
        | Word::NotStarted
        | Word::UnfinishedList
        | Word::Done
        | Word::DoneWithFailures
        | Word::Failed
        | Word::Cancelled => return Ok(None),
    };
    Notifications(tx).add_notice(head.id, &finding, ctx.now);
    Ok(None)
}

/// Sleeps. Returns true if stopped.
async fn sleep_or_stop(stop: &mut watch::Receiver<bool>, pause: Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(pause) => false,
        _ = stop.wait_for(|stop| *stop) => true,
    }
}

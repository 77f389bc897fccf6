//! The sweep: acts on stalls by the plans' policies, gives up calls that are past their time, and sleeps
//! until the next instant at which something can change.
//!
//! What to look at, and when, stands in two narrow tables; something may be looked at too early, never
//! too late. Of all processes on a database one sweeps. One that overslept, or has just begun,
//! gives everybody who fell silent before it woke one grace period: [`Watcher`] says whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use onward_core::command::HandleStalls;
use onward_core::decide::handle_stalls;
use onward_core::finding::Finding;
use onward_core::policy::stall_threshold;
use onward_core::watcher::{Watcher, WatcherPolicy};
use onward_core::{Command, PlanHead, PlanId, PlanStatus, Step, Timestamp};
use onward_store::{Due, DuePlan, Lead, Tx};
use tokio::sync::{Notify, watch};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::ledger::Recovered;
use crate::run::{Moment, Outcome, Target, run};

/// How many plans are looked up at once.
const PIECE: u32 = 256;
/// How long a change by another process can stay unnoticed: SQLite tells nobody, so the first row
/// of the table is read this often. On PostgreSQL the others' notifications come sooner.
const LOOK: Duration = Duration::from_secs(1);
/// A plan that cannot be looked at is looked at again after this long.
pub(crate) const LATER: Duration = Duration::from_secs(600);
/// After an error the sweep waits this long before it tries again.
const PAUSE: Duration = Duration::from_secs(2);

/// Wakes the sweep where something is due sooner than it meant to look.
#[derive(Debug)]
pub(crate) struct Alarm {
    planned: AtomicI64,
    bell: Notify,
}

impl Default for Alarm {
    fn default() -> Self {
        Self {
            planned: AtomicI64::new(i64::MIN),
            bell: Notify::new(),
        }
    }
}

impl Alarm {
    pub(crate) fn ring(&self, due: Due) {
        match due {
            Due::By(at) | Due::At(at) => {
                if at.as_millis() < self.planned.load(Ordering::SeqCst) {
                    self.bell.notify_one();
                }
            }
            Due::Unchanged | Due::Never => {}
        }
    }
}

/// What one round of the sweep did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Round {
    /// How many plans were looked at.
    pub looked_at: usize,
    /// The plans that something was done about.
    pub acted_on: Vec<(Arc<str>, PlanId)>,
    /// The plans that could not be looked at, and why. They are tried again later.
    pub failed: Vec<(Arc<str>, PlanId, String)>,
    /// What was done about agents' calls that are past their time.
    pub calls: Recovered,
    /// When there may be something to do again.
    pub next_at: Option<Timestamp>,
}

impl Engine {
    /// A watcher that begins now.
    pub fn watcher(&self) -> Watcher {
        Watcher::begin(WatcherPolicy::default(), self.now())
    }

    /// One round: looks at every plan and every call that is due, and acts on what it finds.
    pub async fn sweep(&self, watcher: &mut Watcher) -> Result<Round, Error> {
        let now = self.now();
        watcher.wake(now);
        let mut round = Round::default();
        loop {
            let due = self.due_until(now).await?;
            let full = due.len() >= usize::try_from(PIECE).unwrap_or(usize::MAX);
            for plan in due {
                round.looked_at += 1;
                match self.look_at(&plan, *watcher, now).await {
                    Ok(true) => round.acted_on.push((plan.tenant, plan.plan)),
                    Ok(false) => {}
                    Err(why @ Error::Store(onward_store::Error::Unavailable { .. })) => {
                        return Err(why);
                    }
                    // One damaged plan must not keep the others from being looked at.
                    Err(why) => {
                        self.put_off(&plan, now).await?;
                        round.failed.push((plan.tenant, plan.plan, why.to_string()));
                    }
                }
            }
            if !full {
                break;
            }
        }
        round.calls = self.sweep_calls(*watcher, now, PIECE).await?;
        round.next_at = self.first_due().await?;
        watcher.sleep_until(round.next_at.unwrap_or(Timestamp::MAX));
        Ok(round)
    }

    /// Sweeps until it is told to stop: as soon as no other process on the database does.
    pub async fn keep_sweeping(&self, stop: watch::Receiver<bool>) {
        self.keep_sweeping_and_tell(stop, |_| {}).await;
    }

    /// The same, and tells of every round.
    pub async fn keep_sweeping_and_tell(
        &self,
        mut stop: watch::Receiver<bool>,
        mut tell: impl FnMut(&Result<Round, Error>) + Send,
    ) {
        while !*stop.borrow() {
            let leading = tokio::select! {
                leading = self.store.lead(Lead::Sweep) => leading,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let Ok(mut leading) = leading else {
                if rest(&mut stop, PAUSE).await {
                    return;
                }
                continue;
            };
            let mut watcher = self.watcher();
            while !leading.is_lost() {
                let round = self.sweep(&mut watcher).await;
                tell(&round);
                let pause = match round {
                    Ok(round) => self.until(round.next_at),
                    // The database is away: what is due stays due.
                    Err(_) => PAUSE,
                };
                let ended = tokio::select! {
                    ended = self.doze(&mut watcher, &mut stop, pause) => ended,
                    () = leading.lost() => false,
                };
                if ended {
                    return;
                }
            }
        }
    }

    /// Sleeps, but not past something that is due sooner. True where the end has come.
    async fn doze(
        &self,
        watcher: &mut Watcher,
        stop: &mut watch::Receiver<bool>,
        pause: Duration,
    ) -> bool {
        let ends = tokio::time::Instant::now() + pause;
        loop {
            let left = ends.saturating_duration_since(tokio::time::Instant::now());
            let nap = left.min(LOOK);
            tokio::select! {
                () = self.alarm.bell.notified() => return false,
                () = tokio::time::sleep(nap) => {}
                _ = stop.wait_for(|stop| *stop) => return true,
            }
            let now = self.now();
            if left <= LOOK {
                return false;
            }
            // Awake, if only to look: a machine that slept is noticed by how late this is.
            watcher.wake(now);
            let sooner = matches!(self.first_due().await, Ok(Some(at)) if at <= now);
            if sooner {
                watcher.sleep_until(now);
                return false;
            }
            watcher.sleep_until(now.checked_add(LOOK).unwrap_or(Timestamp::MAX));
        }
    }

    fn until(&self, next_at: Option<Timestamp>) -> Duration {
        let planned = next_at.map_or(i64::MAX, Timestamp::as_millis);
        self.alarm.planned.store(planned, Ordering::SeqCst);
        next_at.map_or(Duration::from_secs(3600), |at| at.since(self.now()))
    }

    async fn due_until(&self, now: Timestamp) -> Result<Vec<DuePlan>, Error> {
        let nobody = Arc::from("");
        let due = self.store.read(&nobody, move |tx| {
            Box::pin(async move { tx.due_until(now, PIECE).await })
        });
        Ok(due.await?)
    }

    async fn first_due(&self) -> Result<Option<Timestamp>, Error> {
        let nobody = Arc::from("");
        let first = self
            .store
            .read(&nobody, |tx| Box::pin(async { tx.first_due().await }));
        Ok(first.await?)
    }

    /// Looks at a plan again later.
    async fn put_off(&self, due: &DuePlan, now: Timestamp) -> Result<(), Error> {
        let plan = due.plan;
        let later = now.checked_add(LATER).unwrap_or(Timestamp::MAX);
        let put_off = self.store.write(&due.tenant, move |tx| {
            Box::pin(async move {
                tx.due(plan, Due::At(later));
                Ok::<(), onward_store::Error>(())
            })
        });
        Ok(put_off.await?)
    }

    /// Looks at one plan, acts on its stalls, and says when to look again. True where it acted.
    async fn look_at(
        &self,
        due: &DuePlan,
        watcher: Watcher,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let caller = Caller::onward(Arc::clone(&due.tenant), "sweep");
        let plan = due.plan;
        let moment = Moment {
            now,
            author: caller.author(None),
            watcher: Some(watcher),
        };
        let acted = self.store.write(&caller.tenant, move |tx| {
            let moment = moment.clone();
            Box::pin(async move {
                tell_of_stalls(tx, plan, &moment).await?;
                let command = Command::from(HandleStalls::default());
                match run(tx, Target::Plan(plan), &command, &moment, None).await? {
                    Outcome::Done(done) => {
                        let again = look_again(tx, &done.head, &done.steps, &watcher, now).await?;
                        tx.due(plan, again.map_or(Due::Never, Due::At));
                        Ok(!done.events.is_empty())
                    }
                    Outcome::Refused { refusal, .. } => Err(Error::from(refusal)),
                    Outcome::NotFound => {
                        tx.due(plan, Due::Never);
                        Ok(false)
                    }
                }
            })
        });
        acted.await
    }
}

/// Has people told of every stall of a plan, unless its policy is to ignore them.
async fn tell_of_stalls(tx: &mut Tx, plan: PlanId, moment: &Moment) -> Result<(), Error> {
    let Some((head, steps)) = tx.stalls_of(plan, moment.now).await? else {
        return Ok(());
    };
    let in_progress: Vec<&Step> = steps.iter().collect();
    let facts = handle_stalls::Facts {
        plan: &head,
        in_progress: &in_progress,
        watcher: moment.watcher.as_ref(),
    };
    for stall in handle_stalls::told(&facts, &HandleStalls::default(), moment.now) {
        tx.add_notice(plan, &Finding::of_stall(&stall), moment.now);
    }
    Ok(())
}

/// When a plan must be looked at again, if nothing happens to it. Where something does that matters
/// here, the commit says so.
async fn look_again(
    tx: &mut Tx,
    head: &PlanHead,
    stalled: &[Step],
    watcher: &Watcher,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    match head.status() {
        PlanStatus::Planning
        | PlanStatus::Executing
        | PlanStatus::AwaitingReview
        | PlanStatus::Stalled => {}
        PlanStatus::Completed | PlanStatus::Failed => return Ok(None),
    }
    let spared = stalled.iter().filter_map(|step| {
        let threshold = stall_threshold(None, step.spec.stall_threshold, head.stall_threshold);
        let times = step.timestamp();
        let stalls_at = times
            .stalls_at(threshold)
            .filter(|_| step.work().is_some())?;
        let convicted_after = watcher.convicts_after(times.reference(), stalls_at);
        (convicted_after >= now).then(|| convicted_after.next())
    });
    let next = tx.next_stall_at(head.id, now).await?;
    Ok(spared.chain(next.map(Timestamp::next)).min())
}

/// Waits. True where the end has come.
async fn rest(stop: &mut watch::Receiver<bool>, pause: Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(pause) => false,
        _ = stop.wait_for(|stop| *stop) => true,
    }
}

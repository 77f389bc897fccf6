//! Where a plan stands, as `get_plan_status` and `onward plan show` tell it. It reads; it never
//! changes a status.

use std::time::Duration;

use onward_core::policy::stall_threshold;
use onward_core::role::Permission;
use onward_core::{PlanId, PlanStatus, StepId, StepStatus, StepTimestamp, Timestamp};
use onward_store::{Sheet, StepLine, Tx, Which};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// How many steps a list in the answer holds.
pub const SHOWN: u32 = 50;

/// Where a plan stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The plan.
    pub sheet: Sheet,
    /// The status that its steps add up to.
    pub derived: PlanStatus,
    /// Steps past their threshold, lowest order first; the first [`SHOWN`].
    pub stalled: Vec<StalledStep>,
    /// The first step that is in progress or waits for a person.
    pub current: Option<StepLine>,
    /// Completed and skipped steps; the first [`SHOWN`].
    pub completed: Vec<StepLine>,
    /// Pending steps; the first [`SHOWN`].
    pub pending: Vec<StepLine>,
    /// Failed steps; the first [`SHOWN`].
    pub failed: Vec<StepLine>,
    /// When the next step will be past its threshold, if nothing happens.
    pub next_stall_at: Option<Timestamp>,
}

/// A step past its threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StalledStep {
    /// Which step.
    pub step: StepId,
    /// Its place.
    pub order: u32,
    /// Since when it is silent.
    pub since: Timestamp,
    /// How long that is.
    pub elapsed: Duration,
    /// How long it may be.
    pub threshold: Duration,
}

impl Engine {
    /// Where a plan stands; with another threshold than its own, if one is given.
    pub async fn status(
        &self,
        caller: &Caller,
        plan: PlanId,
        threshold: Option<Duration>,
    ) -> Result<Status, Error> {
        caller.allow(Permission::Read)?;
        if threshold.is_some_and(|threshold| threshold.is_zero() || threshold > YEAR) {
            return Err(Error::invalid("thresholdMs", "must be 1 ms to 365 days"));
        }
        let now = self.now();
        let status = self.store.read(&caller.tenant, move |tx| {
            Box::pin(read(tx, plan, threshold, now))
        });
        status.await
    }
}

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

async fn read(
    tx: &mut Tx,
    plan: PlanId,
    threshold: Option<Duration>,
    now: Timestamp,
) -> Result<Status, Error> {
    let sheet = tx.sheet(plan).await?;
    let sheet = sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
    let over = sheet.head.status().is_terminal();
    let own = sheet.head.stall_threshold;
    let (mut stalled, mut next_stall_at) = (Vec::new(), None);
    if !over && threshold.is_some() {
        // Any of them may be past a threshold that is not its own.
        let in_progress = Which::In(StepStatus::InProgress);
        let lines = tx.step_lines(plan, in_progress, 0, u32::MAX >> 1).await?;
        for line in &lines {
            let times = times(line);
            let limit = stall_threshold(threshold, line.stall_threshold, own);
            if times.is_stalled(now, limit) {
                stalled.push(stalled_step(line, limit, now));
            } else {
                let at = times.stalls_at(limit);
                next_stall_at = [next_stall_at, at].into_iter().flatten().min();
            }
        }
        stalled.truncate(usize::try_from(SHOWN).unwrap_or(usize::MAX));
    } else if !over {
        let lines = tx.step_lines(plan, Which::StalledAt(now), 0, SHOWN).await?;
        let limit = |line: &StepLine| stall_threshold(None, line.stall_threshold, own);
        stalled = lines
            .iter()
            .map(|line| stalled_step(line, limit(line), now))
            .collect();
        next_stall_at = tx.next_stall_at(plan, now).await?;
    }
    let mut open = Vec::new();
    for status in [StepStatus::InProgress, StepStatus::AwaitingInput] {
        open.extend(tx.step_lines(plan, Which::In(status), 0, 1).await?);
    }
    Ok(Status {
        derived: sheet.head.counts.derived_status(),
        stalled,
        current: open.into_iter().min_by_key(|line| line.order),
        completed: tx.step_lines(plan, Which::Done, 0, SHOWN).await?,
        pending: tx
            .step_lines(plan, Which::In(StepStatus::Pending), 0, SHOWN)
            .await?,
        failed: tx
            .step_lines(plan, Which::In(StepStatus::Failed), 0, SHOWN)
            .await?,
        next_stall_at,
        sheet,
    })
}

/// What the detector looks at.
fn times(line: &StepLine) -> StepTimestamp {
    StepTimestamp {
        id: line.id,
        status: line.status,
        started_at: line.started_at,
        updated_at: line.updated_at,
        last_progress_at: line.last_progress_at,
    }
}

/// Since when a step is silent.
pub(crate) fn silent_since(line: &StepLine) -> Timestamp {
    times(line).reference()
}

fn stalled_step(line: &StepLine, threshold: Duration, now: Timestamp) -> StalledStep {
    let since = silent_since(line);
    StalledStep {
        step: line.id,
        order: line.order,
        since,
        elapsed: now.since(since),
        threshold,
    }
}

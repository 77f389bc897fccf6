//! Plan status, as returned by `get_plan_status` and `onward plan show`. Read-only.

use std::time::Duration;

use onward_core::attention::{Attention, attention};
use onward_core::budget::Exhausted;
use onward_core::policy::stall_threshold;
use onward_core::role::Permission;
use onward_core::{PlanId, PlanStatus, StepId, StepStatus, Timestamp};
use onward_store::{PlanLists, Plans, Sheet, StepLine, Steps, Tx, Which};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::plan::list::OpenReview;

/// Maximum number of steps in each list of a response.
pub const MAX_LISTED: u32 = 50;

/// A plan's status.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The plan.
    pub sheet: Sheet,
    /// What the plan needs.
    pub attention: Attention,
    /// The exhausted limit of its budget.
    pub exhausted: Option<Exhausted>,
    /// Whether the exhausted budget stops the plan.
    pub stopped_by_budget: bool,
    /// The status derived from the steps' statuses.
    pub derived: PlanStatus,
    /// Stalled steps, lowest order first; the first [`MAX_LISTED`].
    pub stalled: Vec<StalledStep>,
    /// The first step that is in progress or awaiting review.
    pub current: Option<StepLine>,
    /// Completed and skipped steps; the first [`MAX_LISTED`].
    pub completed: Vec<StepLine>,
    /// Pending steps; the first [`MAX_LISTED`].
    pub pending: Vec<StepLine>,
    /// Failed steps; the first [`MAX_LISTED`].
    pub failed: Vec<StepLine>,
    /// When the next step will exceed its threshold without further activity.
    pub next_stall_at: Option<Timestamp>,
    /// Pending reviews, lowest step order first; the first [`MAX_LISTED`].
    pub reviews: Vec<OpenReview>,
    /// The plans that were forked from it, oldest first; at most [`MAX_LISTED`].
    pub forks: Vec<PlanId>,
}

/// A stalled step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StalledStep {
    /// The step.
    pub step: StepId,
    /// Position in the plan.
    pub order: u32,
    /// Time of the last activity.
    pub since: Timestamp,
    /// Time since the last activity.
    pub elapsed: Duration,
    /// The threshold.
    pub threshold: Duration,
}

impl Engine {
    /// A plan's status, optionally with another stall threshold.
    pub async fn status(
        &self,
        caller: &Caller,
        plan: PlanId,
        threshold: Option<Duration>,
    ) -> Result<Status, Error> {
        caller.allow(Permission::Read)?;
        if threshold.is_some_and(|threshold| threshold.is_zero() || threshold > MAX_THRESHOLD) {
            return Err(Error::invalid(
                "thresholdMs",
                "must be between 1 ms and 365 days",
            ));
        }
        let (now, no_agent_after) = (self.now(), self.no_agent_after);
        let status = self.store.read(&caller.tenant, move |tx| {
            Box::pin(read(tx, plan, threshold, now, no_agent_after))
        });
        status.await
    }
}

const MAX_THRESHOLD: Duration = Duration::from_secs(365 * 24 * 60 * 60);

async fn read(
    tx: &mut Tx,
    plan: PlanId,
    threshold: Option<Duration>,
    now: Timestamp,
    no_agent_after: Duration,
) -> Result<Status, Error> {
    let listed = PlanLists(tx).listed(plan, now).await?;
    let listed = listed.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
    let sheet = listed.sheet;
    let attention = attention(&sheet.head, &listed.facts, now, no_agent_after);
    let is_terminal = sheet.head.status().is_terminal();
    let can_stall = !is_terminal && sheet.head.origin.reports_inactivity();
    let plan_threshold = sheet.head.stall_threshold;
    let (mut stalled, mut next_stall_at) = (Vec::new(), None);
    if can_stall && threshold.is_some() {
        // With an overriding threshold, any step in progress may be stalled.
        let in_progress = Which::In(StepStatus::InProgress);
        let lines = Steps(tx)
            .step_lines(plan, in_progress, 0, u32::MAX >> 1)
            .await?;
        for line in &lines {
            let times = line.timestamp();
            let limit = stall_threshold(threshold, line.stall_threshold, plan_threshold);
            if times.is_stalled(now, limit) {
                stalled.push(stalled_step(line, limit, now));
            } else {
                let at = times.stalls_at(limit);
                next_stall_at = [next_stall_at, at].into_iter().flatten().min();
            }
        }
        stalled.truncate(usize::try_from(MAX_LISTED).unwrap_or(usize::MAX));
    } else if can_stall {
        let lines = Steps(tx)
            .step_lines(plan, Which::StalledAt(now), 0, MAX_LISTED)
            .await?;
        let limit = |line: &StepLine| stall_threshold(None, line.stall_threshold, plan_threshold);
        stalled = lines
            .iter()
            .map(|line| stalled_step(line, limit(line), now))
            .collect();
        next_stall_at = Steps(tx).next_stall_at(plan, now).await?;
    }
    let mut open = Vec::new();
    for status in [StepStatus::InProgress, StepStatus::AwaitingInput] {
        open.extend(Steps(tx).step_lines(plan, Which::In(status), 0, 1).await?);
    }
    let reviews = if is_terminal || sheet.head.counts.awaiting_input == 0 {
        Vec::new()
    } else {
        let steps = Steps(tx).under_review(plan, MAX_LISTED).await?;
        let reviews = steps
            .into_iter()
            .filter_map(|step| OpenReview::from_step(plan, step));
        reviews.collect()
    };
    Ok(Status {
        reviews,
        exhausted: sheet.head.exhausted(now),
        stopped_by_budget: can_stall && sheet.head.stopped_by_budget(now).is_some(),
        derived: sheet.head.counts.derived_status(),
        stalled,
        current: open.into_iter().min_by_key(|line| line.order),
        completed: Steps(tx)
            .step_lines(plan, Which::Done, 0, MAX_LISTED)
            .await?,
        pending: Steps(tx)
            .step_lines(plan, Which::In(StepStatus::Pending), 0, MAX_LISTED)
            .await?,
        failed: Steps(tx)
            .step_lines(plan, Which::In(StepStatus::Failed), 0, MAX_LISTED)
            .await?,
        next_stall_at,
        forks: Plans(tx).forks_of(plan, MAX_LISTED).await?,
        attention,
        sheet,
    })
}

fn stalled_step(line: &StepLine, threshold: Duration, now: Timestamp) -> StalledStep {
    let since = line.timestamp().reference();
    StalledStep {
        step: line.id,
        order: line.order,
        since,
        elapsed: now.since(since),
        threshold,
    }
}

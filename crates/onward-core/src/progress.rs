//! Step counts, progress and the derived plan status.
//!
//! Both need only the number of steps in each status, so their cost does not depend on the size of
//! the plan. `failed` and `stalled` are never derived: commands set them.

use crate::plan_status::PlanStatus;
use crate::step::StepStatus;

/// The number of steps in each status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Not claimed.
    pub pending: u32,
    /// Claimed by an agent.
    pub in_progress: u32,
    /// Awaiting review.
    pub awaiting_input: u32,
    /// Completed with a result.
    pub completed: u32,
    /// Skipped.
    pub skipped: u32,
    /// Failed.
    pub failed: u32,
    /// Ended and replaced by a successor. The other counts do not include these steps.
    pub superseded: u32,
}

impl Counts {
    /// The number of steps in this status.
    pub const fn get(&self, status: StepStatus) -> u32 {
        match status {
            StepStatus::Pending => self.pending,
            StepStatus::InProgress => self.in_progress,
            StepStatus::AwaitingInput => self.awaiting_input,
            StepStatus::Completed => self.completed,
            StepStatus::Skipped => self.skipped,
            StepStatus::Failed => self.failed,
        }
    }

    /// The number of steps without the superseded ones.
    pub const fn total(&self) -> u32 {
        self.pending
            .saturating_add(self.in_progress)
            .saturating_add(self.awaiting_input)
            .saturating_add(self.terminal())
    }

    /// The highest order: the number of all steps, with the superseded ones.
    pub const fn last_order(&self) -> u32 {
        self.total().saturating_add(self.superseded)
    }

    /// The number of terminal steps without the superseded ones.
    pub const fn terminal(&self) -> u32 {
        self.completed
            .saturating_add(self.skipped)
            .saturating_add(self.failed)
    }

    /// Progress in percent: `round(100 × (completed + skipped) / total)`, halves rounded up; 0
    /// without steps.
    ///
    /// Failed steps do not count, so a completed plan with a failed step is below 100.
    pub const fn progress(&self) -> u32 {
        let total = self.total() as u64;
        if total == 0 {
            return 0;
        }
        let done = self.completed.saturating_add(self.skipped) as u64;
        ((200 * done + total) / (2 * total)) as u32
    }

    /// The plan status derived from the steps. The first matching rule applies.
    pub const fn derived_status(&self) -> PlanStatus {
        if self.total() == 0 {
            PlanStatus::Planning
        } else if self.terminal() == self.total() {
            PlanStatus::Completed
        } else if self.awaiting_input > 0 {
            PlanStatus::AwaitingReview
        } else if self.in_progress > 0 || self.terminal() > 0 || self.superseded > 0 {
            PlanStatus::Executing
        } else {
            PlanStatus::Planning
        }
    }

    /// Adds a step.
    pub(crate) fn add(&mut self, status: StepStatus) {
        let count = self.slot(status);
        *count = count.saturating_add(1);
    }

    /// Removes a step.
    pub(crate) fn remove(&mut self, status: StepStatus) {
        let count = self.slot(status);
        *count = count.saturating_sub(1);
    }

    /// Replaces a terminal step by a pending one.
    pub(crate) fn supersede(&mut self, from: StepStatus) {
        self.shift(from, StepStatus::Pending);
        self.superseded = self.superseded.saturating_add(1);
    }

    /// Moves a step to another status.
    pub(crate) fn shift(&mut self, from: StepStatus, to: StepStatus) {
        self.remove(from);
        self.add(to);
    }

    fn slot(&mut self, status: StepStatus) -> &mut u32 {
        match status {
            StepStatus::Pending => &mut self.pending,
            StepStatus::InProgress => &mut self.in_progress,
            StepStatus::AwaitingInput => &mut self.awaiting_input,
            StepStatus::Completed => &mut self.completed,
            StepStatus::Skipped => &mut self.skipped,
            StepStatus::Failed => &mut self.failed,
        }
    }
}

impl FromIterator<StepStatus> for Counts {
    fn from_iter<I: IntoIterator<Item = StepStatus>>(statuses: I) -> Self {
        let mut counts = Counts::default();
        for status in statuses {
            counts.add(status);
        }
        counts
    }
}

/// The plan status derived from these steps; see [`Counts::derived_status`].
///
/// ```
/// use onward_core::{PlanStatus, StepStatus, derive_plan_status};
///
/// let steps = [StepStatus::Completed, StepStatus::InProgress, StepStatus::Pending];
/// assert_eq!(derive_plan_status(steps), PlanStatus::Executing);
/// // A failed step does not fail its plan.
/// assert_eq!(derive_plan_status([StepStatus::Failed]), PlanStatus::Completed);
/// ```
pub fn derive_plan_status(steps: impl IntoIterator<Item = StepStatus>) -> PlanStatus {
    steps.into_iter().collect::<Counts>().derived_status()
}

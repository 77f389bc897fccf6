//! How far a plan is, and which status its steps add up to.
//!
//! Both need only how many steps are in each status, so a plan of 10,000 steps answers from six
//! numbers. Neither ever says `failed` or `stalled`: those are decided by somebody, not derived.

use crate::plan::PlanStatus;
use crate::step::StepStatus;

/// How many steps of a plan are in each status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Not handed out.
    pub pending: u32,
    /// Claimed by an agent.
    pub in_progress: u32,
    /// Waiting for a person.
    pub awaiting_input: u32,
    /// Done, with a result.
    pub completed: u32,
    /// Passed over.
    pub skipped: u32,
    /// Given up.
    pub failed: u32,
}

impl Counts {
    /// The count of one status.
    pub const fn of(&self, status: StepStatus) -> u32 {
        match status {
            StepStatus::Pending => self.pending,
            StepStatus::InProgress => self.in_progress,
            StepStatus::AwaitingInput => self.awaiting_input,
            StepStatus::Completed => self.completed,
            StepStatus::Skipped => self.skipped,
            StepStatus::Failed => self.failed,
        }
    }

    /// All steps.
    pub const fn total(&self) -> u32 {
        self.pending
            .saturating_add(self.in_progress)
            .saturating_add(self.awaiting_input)
            .saturating_add(self.terminal())
    }

    /// Steps that will not change any more.
    pub const fn terminal(&self) -> u32 {
        self.completed
            .saturating_add(self.skipped)
            .saturating_add(self.failed)
    }

    /// `round(100 × (completed + skipped) / total)`, halves up; 0 where there are no steps.
    ///
    /// Failed steps do not count, so a completed plan with a failed step shows less than 100.
    pub const fn progress(&self) -> u32 {
        let total = self.total() as u64;
        if total == 0 {
            return 0;
        }
        let done = self.completed.saturating_add(self.skipped) as u64;
        ((200 * done + total) / (2 * total)) as u32
    }

    /// The status that the steps add up to: the first rule that fits.
    pub const fn derived_status(&self) -> PlanStatus {
        if self.total() == 0 {
            PlanStatus::Planning
        } else if self.terminal() == self.total() {
            PlanStatus::Completed
        } else if self.awaiting_input > 0 {
            PlanStatus::AwaitingReview
        } else if self.in_progress > 0 || self.terminal() > 0 {
            PlanStatus::Executing
        } else {
            PlanStatus::Planning
        }
    }

    /// A step came into being.
    pub(crate) fn add(&mut self, status: StepStatus) {
        let count = self.slot(status);
        *count = count.saturating_add(1);
    }

    /// A step went out of this status.
    pub(crate) fn take(&mut self, status: StepStatus) {
        let count = self.slot(status);
        *count = count.saturating_sub(1);
    }

    /// A step went from one status to another.
    pub(crate) fn shift(&mut self, from: StepStatus, to: StepStatus) {
        self.take(from);
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

/// The status that these steps add up to; see [`Counts::derived_status`].
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

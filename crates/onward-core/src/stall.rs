//! Is anybody still working on this step? The detector for steps.
//!
//! It reports and changes nothing; what is done about a stall is decided in
//! [`decide::handle_stalls`](crate::decide::handle_stalls), by the plan's policy. A step stalls
//! *after* its threshold: exactly at it, it is alive. Only a step in progress can stall: one that
//! waits for a person waits rightly, however long.
//!
//! The detector knows nothing of how steps are stored: give it the timestamps of your own steps, with
//! ids of your own type.
//!
//! ```
//! use std::time::Duration;
//! use onward_core::{StepStatus, StepTimestamp, Timestamp, detect_stalled_steps, next_stall_at};
//!
//! let minute = |m: i64| Timestamp::from_millis(m * 60_000);
//! let steps = [
//!     // Taken on at minute 0, and silent since.
//!     StepTimestamp {
//!         id: "fetch",
//!         status: StepStatus::InProgress,
//!         started_at: Some(minute(0)),
//!         updated_at: minute(0),
//!         last_progress_at: None,
//!     },
//!     // Taken on at the same time, but it reported at minute 20.
//!     StepTimestamp {
//!         id: "parse",
//!         status: StepStatus::InProgress,
//!         started_at: Some(minute(0)),
//!         updated_at: minute(20),
//!         last_progress_at: Some(minute(20)),
//!     },
//! ];
//! let threshold = Duration::from_secs(30 * 60);
//!
//! assert_eq!(detect_stalled_steps(&steps, minute(31), threshold), ["fetch"]);
//! // Nobody has to poll: until then the answer stays the same.
//! assert_eq!(next_stall_at(&steps, minute(31), threshold), Some(minute(50)));
//! ```

use std::time::Duration;

use crate::id::StepId;
use crate::step::{Step, StepStatus};
use crate::time::Timestamp;

/// What the detector looks at. `Id` is whatever names a step where it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTimestamp<Id = StepId> {
    /// Which step.
    pub id: Id,
    /// Where it stands.
    pub status: StepStatus,
    /// When its current claim began.
    pub started_at: Option<Timestamp>,
    /// When anything about it last changed; counts only where `started_at` is missing.
    pub updated_at: Timestamp,
    /// The last sign of life.
    pub last_progress_at: Option<Timestamp>,
}

impl<Id> StepTimestamp<Id> {
    /// The instant from which the silence is counted.
    pub fn reference(&self) -> Timestamp {
        let began_at = self.started_at.unwrap_or(self.updated_at);
        self.last_progress_at
            .map_or(began_at, |progress_at| progress_at.max(began_at))
    }

    /// The last instant at which the step is alive without a further sign. `None`: it cannot stall,
    /// because it is not in progress, or because that instant lies past the end of time.
    pub fn stalls_at(&self, threshold: Duration) -> Option<Timestamp> {
        match self.status {
            StepStatus::InProgress => self.reference().checked_add(threshold),
            StepStatus::Pending
            | StepStatus::AwaitingInput
            | StepStatus::Completed
            | StepStatus::Skipped
            | StepStatus::Failed => None,
        }
    }

    /// Whether the step has been silent for longer than the threshold.
    pub fn is_stalled(&self, now: Timestamp, threshold: Duration) -> bool {
        self.stalls_at(threshold)
            .is_some_and(|stalls_at| now > stalls_at)
    }
}

impl Step {
    /// What the stall detector looks at.
    pub fn timestamp(&self) -> StepTimestamp {
        StepTimestamp {
            id: self.id(),
            status: self.status(),
            started_at: self.work().map(|work| work.started_at),
            updated_at: self.updated_at,
            last_progress_at: self.work().and_then(|work| work.last_progress_at),
        }
    }
}

/// A finding: a step that nobody works on any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Which step.
    pub step: StepId,
    /// Which of its attempts.
    pub attempt: u32,
    /// Since when it has been silent.
    pub since: Timestamp,
}

/// The steps that are stalled, in the order in which they were given.
pub fn detect_stalled_steps<Id: Clone>(
    steps: &[StepTimestamp<Id>],
    now: Timestamp,
    threshold: Duration,
) -> Vec<Id> {
    steps
        .iter()
        .filter(|step| step.is_stalled(now, threshold))
        .map(|step| step.id.clone())
        .collect()
}

/// Whether any step is stalled.
pub fn is_plan_stalled<Id>(
    steps: &[StepTimestamp<Id>],
    now: Timestamp,
    threshold: Duration,
) -> bool {
    steps.iter().any(|step| step.is_stalled(now, threshold))
}

/// When the answer of [`detect_stalled_steps`] could next change: the last instant at which all the
/// steps that are alive now still are. `None`: it stays as it is, if nothing happens.
///
/// The answer is the same up to and including that instant; whoever sleeps sleeps until the
/// [`next`](Timestamp::next) one.
pub fn next_stall_at<Id>(
    steps: &[StepTimestamp<Id>],
    now: Timestamp,
    threshold: Duration,
) -> Option<Timestamp> {
    steps
        .iter()
        .filter_map(|step| step.stalls_at(threshold))
        .filter(|stalls_at| now <= *stalls_at)
        .min()
}

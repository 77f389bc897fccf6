//! The stall detector for steps.
//!
//! It reports stalls and changes nothing; [`decide::handle_stalls`](crate::decide::handle_stalls)
//! acts on them according to the plan's policy. A step is stalled *after* its threshold, not
//! exactly at it. Only a step in progress can stall; a step awaiting review cannot.
//!
//! The detector does not depend on the storage of steps: pass the timestamps of your steps, with
//! ids of any type.
//!
//! ```
//! use std::time::Duration;
//! use onward_core::{StepStatus, StepTimestamp, Timestamp, detect_stalled_steps, next_stall_at};
//!
//! let minute = |m: i64| Timestamp::from_millis(m * 60_000);
//! let steps = [
//!     // Claimed at minute 0, no activity since.
//!     StepTimestamp {
//!         id: "fetch",
//!         status: StepStatus::InProgress,
//!         started_at: Some(minute(0)),
//!         updated_at: minute(0),
//!         last_progress_at: None,
//!     },
//!     // Claimed at minute 0, progress reported at minute 20.
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
//! // No polling: the result cannot change before this time.
//! assert_eq!(next_stall_at(&steps, minute(31), threshold), Some(minute(50)));
//! ```

use std::time::Duration;

use crate::id::StepId;
use crate::policy::{
    CLOCK_TOLERANCE, first_seen_interval, seen_interval, seen_interval_of_limit, stall_threshold,
};
use crate::step::{Step, StepStatus};
use crate::time::Timestamp;

/// The detector's input for one step. `Id` is the caller's id type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTimestamp<Id = StepId> {
    /// The step's id.
    pub id: Id,
    /// The status.
    pub status: StepStatus,
    /// When the current claim began.
    pub started_at: Option<Timestamp>,
    /// The last change. Used only if `started_at` is missing.
    pub updated_at: Timestamp,
    /// The last activity.
    pub last_progress_at: Option<Timestamp>,
}

impl<Id> StepTimestamp<Id> {
    /// The start of the inactivity.
    pub fn reference(&self) -> Timestamp {
        let began_at = self.started_at.unwrap_or(self.updated_at);
        self.last_progress_at
            .map_or(began_at, |progress_at| progress_at.max(began_at))
    }

    /// Whether a wrong clock has written the reference: it is in the future.
    pub fn is_ahead_of(&self, now: Timestamp) -> bool {
        self.reference().since(now) > CLOCK_TOLERANCE
    }

    /// The last time at which the step is not yet stalled without further activity. `None` if the
    /// step is not in progress or the time is out of range.
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

    /// Whether the step has been inactive for longer than the threshold.
    pub fn is_stalled(&self, now: Timestamp, threshold: Duration) -> bool {
        is_past(self.stalls_at(threshold), now)
    }

    /// Whether a session event at `now` is recorded as activity of the step. `limit` is the step's
    /// [`silence_limit`](Step::silence_limit).
    pub fn records_event(&self, limit: Duration, is_monitored: bool, now: Timestamp) -> bool {
        let interval = if is_monitored {
            seen_interval_of_limit(limit)
        } else {
            // Recording the first event makes the step a monitored one.
            first_seen_interval(limit)
        };
        now.since(self.reference()) >= interval || self.is_ahead_of(now)
    }
}

/// Whether this time has passed. False if there is none.
pub fn is_past(at: Option<Timestamp>, now: Timestamp) -> bool {
    at.is_some_and(|at| now > at)
}

impl Step {
    /// The input of the stall detector.
    pub fn timestamp(&self) -> StepTimestamp {
        StepTimestamp {
            id: self.id(),
            status: self.status(),
            started_at: self.work().map(|work| work.started_at),
            updated_at: self.updated_at,
            last_progress_at: self.work().and_then(|work| work.last_progress_at),
        }
    }

    /// The last time at which the step is not yet stalled, by its own threshold or that of its
    /// plan. `None` if it is not in progress.
    pub fn stalls_at(&self, plan_threshold: Option<Duration>) -> Option<Timestamp> {
        let limit = self.silence_limit(None, plan_threshold);
        self.timestamp().stalls_at(limit)
    }

    /// Whether the step is past its own threshold or that of its plan.
    pub fn is_stalled(&self, plan_threshold: Option<Duration>, now: Timestamp) -> bool {
        is_past(self.stalls_at(plan_threshold), now)
    }

    /// Whether the session that holds the step has ended.
    pub fn is_orphaned(&self) -> bool {
        self.work().is_some_and(|work| work.orphaned_at.is_some())
    }

    /// Whether another session can take over the step: its session has ended, or, if requested, it
    /// is stalled.
    pub fn can_be_taken_over(
        &self,
        include_stalled: bool,
        plan_threshold: Option<Duration>,
        now: Timestamp,
    ) -> bool {
        self.is_orphaned() || (include_stalled && self.is_stalled(plan_threshold, now))
    }

    /// How long after the last recorded activity the step is stalled. `call` overrides the
    /// thresholds of the step and the plan, and applies to the recorded activity.
    ///
    /// Events of a monitored session are recorded at intervals: an unrecorded event may be one
    /// interval later than the last record, and the session must not count as inactive before the
    /// threshold has passed since then.
    pub fn silence_limit(
        &self,
        call: Option<Duration>,
        plan_threshold: Option<Duration>,
    ) -> Duration {
        let threshold = stall_threshold(call, self.spec.stall_threshold, plan_threshold);
        let is_monitored = self.work().is_some_and(|work| work.monitored);
        if is_monitored && call.is_none() {
            threshold.saturating_add(seen_interval(threshold))
        } else {
            threshold
        }
    }
}

/// A stalled step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// The step.
    pub step: StepId,
    /// The attempt number.
    pub attempt: u32,
    /// The start of the inactivity.
    pub since: Timestamp,
}

/// The ids of the stalled steps, in input order.
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

/// The next time at which the result of [`detect_stalled_steps`] can change without new activity.
/// `None` if it cannot.
///
/// The result is the same up to and including that time. A monitor sleeps until the
/// [`next`](Timestamp::next) millisecond.
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

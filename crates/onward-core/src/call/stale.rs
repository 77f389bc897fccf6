//! Timeouts of calls.
//!
//! Only a running call can be stale. A call that awaits approval has no timeout; its timeout starts
//! with the approval. A call is stale *after* its timeout and the grace period, not exactly at the
//! end of them. All times, including `now`, are in the recorder's clock.
//!
//! [`owner`](super::owner) detects dead owners, which need no timeout.

use std::time::Duration;

use super::{CallStatus, Limit};
use crate::time::Timestamp;
use crate::watcher::Watcher;

/// The default timeout of a call.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// The grace period after the timeout, so that the tool can report its own timeout first.
pub const STALE_GRACE: Duration = Duration::from_secs(30);

/// Timeout settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallPolicy {
    /// See [`DEFAULT_CALL_TIMEOUT`].
    pub default_timeout: Duration,
    /// See [`STALE_GRACE`].
    pub grace: Duration,
}

impl Default for CallPolicy {
    fn default() -> Self {
        Self {
            default_timeout: DEFAULT_CALL_TIMEOUT,
            grace: STALE_GRACE,
        }
    }
}

impl CallPolicy {
    /// The timeout of a call, or `None` if it has none.
    pub fn timeout(self, limit: Limit) -> Option<Duration> {
        match limit {
            Limit::Unspecified => Some(self.default_timeout),
            Limit::After(Duration::ZERO) => Some(self.default_timeout),
            Limit::After(timeout) | Limit::Yields(timeout) => Some(timeout),
            Limit::Never => None,
        }
    }

    /// The longest of several limits, for calls whose results arrive together.
    pub fn longest(self, limits: impl IntoIterator<Item = Limit>) -> Limit {
        let span = |limit: &Limit| self.timeout(*limit).unwrap_or(Duration::MAX);
        limits.into_iter().max_by_key(span).unwrap_or_default()
    }
}

/// The detector's input for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimestamp {
    /// The status.
    pub status: CallStatus,
    /// When it started. Without it, the call is never stale.
    pub started_at: Option<Timestamp>,
    /// The last activity.
    pub last_progress_at: Option<Timestamp>,
    /// The timeout of this call.
    pub limit: Limit,
    /// The grace period after the timeout, if it is not the default.
    pub grace: Option<Duration>,
}

impl CallTimestamp {
    /// The start of the inactivity.
    pub fn reference(&self) -> Option<Timestamp> {
        let started_at = self.started_at?;
        Some(
            self.last_progress_at
                .map_or(started_at, |progress_at| progress_at.max(started_at)),
        )
    }

    /// The last time at which the monitor must not interrupt the call, with a grace period after
    /// the monitor slept. `None` if the call is never stale.
    pub fn deadline(&self, policy: CallPolicy, watcher: &Watcher) -> Option<Timestamp> {
        let limit_at = stale_at(self, policy)?;
        Some(watcher.deadline(self.reference()?, limit_at))
    }
}

/// The last time at which the call is not yet stale without further activity. `None` if the call is
/// not running, has no start time or no timeout, or the time is out of range.
pub fn stale_at(call: &CallTimestamp, policy: CallPolicy) -> Option<Timestamp> {
    match call.status {
        CallStatus::Running => {
            let grace = call.grace.unwrap_or(policy.grace);
            let timeout = policy.timeout(call.limit)?;
            call.reference()?.checked_add(timeout.checked_add(grace)?)
        }
        CallStatus::Requested
        | CallStatus::AwaitingApproval
        | CallStatus::Completed
        | CallStatus::Failed
        | CallStatus::Denied
        | CallStatus::Cancelled
        | CallStatus::Interrupted => None,
    }
}

/// Whether the call has exceeded its timeout and the grace period.
pub fn is_stale(call: &CallTimestamp, now: Timestamp, policy: CallPolicy) -> bool {
    stale_at(call, policy).is_some_and(|stale_at| now > stale_at)
}

/// The next time at which one of the calls can become stale. The result of the check is the same up
/// to and including that time; a monitor sleeps until the [`next`](Timestamp::next) millisecond.
pub fn next_stale_at<'a>(
    calls: impl IntoIterator<Item = &'a CallTimestamp>,
    now: Timestamp,
    policy: CallPolicy,
) -> Option<Timestamp> {
    calls
        .into_iter()
        .filter_map(|call| stale_at(call, policy))
        .filter(|stale_at| now <= *stale_at)
        .min()
}

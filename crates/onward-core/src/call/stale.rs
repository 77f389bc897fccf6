//! Has this call been silent for longer than it may be? The clock of the detector.
//!
//! Only a running call can be stale: one that waits for a person waits rightly, however long, and its
//! clock begins anew when it may go on. A call is stale *after* its limit and the grace: exactly then it
//! is alive. Times are the recorder's own, `now` included: a watcher whose clock differs asks with the
//! recorder's.
//!
//! The proof that needs no waiting, a dead owner, is the other half: [`owner`](super::owner).

use std::time::Duration;

use super::{CallStatus, Limit};
use crate::time::Timestamp;
use crate::watcher::Watcher;

/// How long a call may take, where neither it nor its tool says otherwise.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a call may take beyond its timeout: its own end of it comes first.
pub const STALE_GRACE: Duration = Duration::from_secs(30);

/// What an owner may set.
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
    /// The timeout that applies to a call; `None`: it has none.
    pub fn timeout(self, limit: Limit) -> Option<Duration> {
        match limit {
            Limit::Unsaid => Some(self.default_timeout),
            Limit::After(Duration::ZERO) => Some(self.default_timeout),
            Limit::After(timeout) => Some(timeout),
            Limit::Never => None,
        }
    }

    /// The longest of some limits: that of calls whose results come together, so that none can come
    /// before the slowest.
    pub fn longest(self, limits: impl IntoIterator<Item = Limit>) -> Limit {
        let span = |limit: &Limit| self.timeout(*limit).unwrap_or(Duration::MAX);
        limits.into_iter().max_by_key(span).unwrap_or_default()
    }
}

/// What the detector looks at: a call of yours, wherever it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimestamp {
    /// Where it stands.
    pub status: CallStatus,
    /// When it began; without it there is no verdict.
    pub started_at: Option<Timestamp>,
    /// Its last sign of life.
    pub last_progress_at: Option<Timestamp>,
    /// The timeout that applies to this very call.
    pub limit: Limit,
}

impl CallTimestamp {
    /// The instant from which the silence is counted.
    pub fn reference(&self) -> Option<Timestamp> {
        let started_at = self.started_at?;
        Some(
            self.last_progress_at
                .map_or(started_at, |progress_at| progress_at.max(started_at)),
        )
    }

    /// The last instant at which the call must still be let alone by a watcher that may have slept
    /// itself. `None`: it is never stale.
    pub fn convicted_after(&self, policy: CallPolicy, watcher: &Watcher) -> Option<Timestamp> {
        let limit_at = stale_at(self, policy)?;
        Some(watcher.convicts_after(self.reference()?, limit_at))
    }
}

/// The last instant at which the call is alive without a further sign; it is stale after it. `None`:
/// never, because it does not run, nobody knows since when it does, it has no timeout, or that instant
/// lies past the end of time.
pub fn stale_at(call: &CallTimestamp, policy: CallPolicy) -> Option<Timestamp> {
    match call.status {
        CallStatus::Running => call
            .reference()?
            .checked_add(policy.timeout(call.limit)?.checked_add(policy.grace)?),
        CallStatus::Requested
        | CallStatus::AwaitingApproval
        | CallStatus::Completed
        | CallStatus::Failed
        | CallStatus::Denied
        | CallStatus::Cancelled
        | CallStatus::Interrupted => None,
    }
}

/// Whether the call has been silent for longer than it may be.
pub fn is_stale(call: &CallTimestamp, now: Timestamp, policy: CallPolicy) -> bool {
    stale_at(call, policy).is_some_and(|stale_at| now > stale_at)
}

/// When the first of the calls that are alive now could become stale. The answer is the same up to and
/// including that instant; whoever sleeps sleeps until the [`next`](Timestamp::next) one.
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

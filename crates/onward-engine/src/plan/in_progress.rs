//! A step in progress, as responses list it.

use std::time::Duration;

use onward_core::id::SessionId;
use onward_core::{Step, StepId, Timestamp};
use onward_store::StepLine;

/// A step that an agent is working on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepInProgress {
    /// The step.
    pub step: StepId,
    /// Position in the plan.
    pub order: u32,
    /// Time since the last activity.
    pub elapsed: Duration,
    /// Whether the step has exceeded its threshold.
    pub stalled: bool,
    /// When the step counts as stalled if nothing happens.
    pub stalls_at: Option<Timestamp>,
    /// The session that holds the claim, if the agent reported one.
    pub session: Option<SessionId>,
}

impl StepInProgress {
    pub(crate) fn new(line: &StepLine, now: Timestamp) -> Self {
        Self {
            step: line.id,
            order: line.order,
            elapsed: now.since(line.timestamp().reference()),
            stalled: line.is_stalled(now),
            stalls_at: line.stalls_at,
            session: line.session.clone(),
        }
    }

    pub(super) fn replayed(step: &Step, plan_threshold: Option<Duration>, now: Timestamp) -> Self {
        let stalls_at = step.stalls_at(plan_threshold);
        Self {
            step: step.id(),
            order: step.order,
            elapsed: now.since(step.timestamp().reference()),
            stalled: step.is_stalled(plan_threshold, now),
            stalls_at,
            session: step.claim().and_then(|claim| claim.session.clone()),
        }
    }
}

//! A change of a plan, as the engine has computed it. `plan/transition` translates it into statements.

use std::time::Duration;

use onward_core::branch::Branch;
use onward_core::next_check::Due;
use onward_core::transition::{QueueChange, StepAfter};
use onward_core::{Event, PlanHead, StepId, Timestamp};

use crate::row::event::Author;
use crate::row::plan::VersionTag;

/// Longer than the statement timeout. A due time further ahead than this does not become due during
/// a commit.
const QUIET: Duration = Duration::from_secs(60);

/// A change of a plan.
#[derive(Debug)]
pub struct Commit<'a> {
    /// Number of events that the plan had before.
    pub before: u64,
    /// Sequence number of the first event of the transaction, of which this may be a later part.
    pub commit_seq: u64,
    /// Head of the plan, with the events applied.
    pub head: &'a PlanHead,
    /// The changed steps, with the events applied.
    pub steps: &'a [StepAfter],
    /// The branches whose references change, with the events applied.
    pub branches: &'a [Branch],
    /// A step that no other step depends on, if the caller knows one.
    pub independent: Option<StepId>,
    /// The events.
    pub events: &'a [Event],
    /// Time of the events.
    pub at: Timestamp,
    /// Author of the change.
    pub author: &'a Author,
    /// Whether an agent or a user caused the change, not the sweep.
    pub acted: bool,
    /// When the sweep must check the plan.
    pub due: Due,
    /// The change to the queue of the plan's project.
    pub queue: QueueChange,
    /// Whether the plan's budget or its use has changed.
    pub budget_changed: bool,
}

/// A version of a plan that a transaction has written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) tag: VersionTag,
    /// Length of its audit entries.
    pub(crate) bytes: usize,
}

impl Commit<'_> {
    /// Whether an event changes more than the audit trail.
    pub(crate) fn changes_plan(&self) -> bool {
        self.events.iter().any(Event::changes_plan)
    }

    /// Whether an event may add a branch or a review to the plan.
    pub(crate) fn adds_context(&self) -> bool {
        let adds = |event: &Event| {
            matches!(
                event,
                Event::PlanModified { .. } | Event::UserReviewed { .. }
            )
        };
        self.events.iter().any(adds)
    }

    /// Time of the action by an agent or a user, if this is one.
    pub(crate) fn acted_at(&self) -> Option<Timestamp> {
        self.acted.then_some(self.at)
    }

    /// Time of the activity of an agent, if there is any.
    pub(crate) fn worked_at(&self) -> Option<Timestamp> {
        let worked = self.acted && self.events.iter().any(Event::is_agent_activity);
        worked.then_some(self.at)
    }

    /// No sweep changes a due time after this instant while the commit is being written.
    pub(crate) fn quiet_until(&self) -> Option<Timestamp> {
        self.at.checked_add(QUIET)
    }
}

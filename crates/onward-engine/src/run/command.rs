//! The input and the result of the execution loop.

use std::time::Duration;

use onward_core::id::SessionId;
use onward_core::next_check::Due;
use onward_core::watcher::Watcher;
use onward_core::{Event, PlanHead, PlanId, Refusal, Step, StepId, Timestamp};
use onward_store::Author;

use crate::error::Error;

/// The plan or step that a command applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Plan(PlanId),
    Step(StepId),
}

/// Time, author and monitor of a command.
#[derive(Debug, Clone)]
pub(crate) struct CommandContext {
    pub(crate) now: Timestamp,
    pub(crate) author: Author,
    /// The monitor that issued the command, if it may have been asleep.
    pub(crate) watcher: Option<Watcher>,
    /// How long a plan with a ready step may be without agent activity.
    pub(crate) no_agent_after: Duration,
}

/// Result of executing a command.
#[derive(Debug)]
pub(crate) enum CommandOutcome {
    /// The core accepted the command. `events` is empty if there was nothing to change.
    Applied(Applied),
    /// A rule rejects the command. Nothing was written.
    Rejected { refusal: Refusal, head: PlanHead },
    /// The plan or step does not exist.
    NotFound,
}

/// An accepted command.
#[derive(Debug)]
pub(crate) struct Applied {
    /// The plan's head after the command.
    pub(crate) head: PlanHead,
    /// The loaded steps after the command.
    pub(crate) steps: Vec<Step>,
    /// The events of the command.
    pub(crate) events: Vec<Event>,
    /// Sequence number of the transaction's first event.
    pub(crate) commit_seq: u64,
    /// When the sweep must check the plan next.
    pub(crate) due: Due,
    /// The calling session, as reported or inferred from the claim.
    pub(crate) session: Option<SessionId>,
}

impl Applied {
    pub(crate) fn step(&self, id: StepId) -> Option<&Step> {
        self.steps.iter().find(|step| step.id() == id)
    }
}

/// A decision that contradicts the loaded facts.
pub(super) fn inconsistent_decision(error: impl std::fmt::Display) -> Error {
    Error::Store(onward_store::Error::refused(format!(
        "the decision does not match the loaded facts: {error}"
    )))
}

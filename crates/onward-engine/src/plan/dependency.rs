//! The outcomes of the steps that a step depends on, for the agent that works on it.

use onward_core::step::StepState;
use onward_core::{Step, StepId, StepStatus};
use onward_store::{StepLine, Steps, Tx};

use crate::error::Error;

/// Maximum number of dependencies in a response.
const MAX_DEPENDENCIES: usize = 50;

/// A step that another one depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The step.
    pub step: StepId,
    /// Its order.
    pub order: u32,
    /// Its status.
    pub status: StepStatus,
    /// The beginning of its result.
    pub result_summary: Option<String>,
    /// Why it failed.
    pub reason: Option<String>,
}

/// The dependencies with these ids, sorted by order.
pub(crate) async fn dependencies(tx: &mut Tx, needed: &[StepId]) -> Result<Vec<Dependency>, Error> {
    if needed.is_empty() {
        return Ok(Vec::new());
    }
    let shown = needed.get(..MAX_DEPENDENCIES).unwrap_or(needed);
    let lines = Steps(tx).lines_of(shown).await?;
    Ok(lines.into_iter().map(Dependency::new).collect())
}

impl Dependency {
    fn new(line: StepLine) -> Self {
        Self {
            step: line.id,
            order: line.order,
            status: line.status,
            result_summary: line.result_summary,
            reason: line.failure.map(|reason| reason.to_string()),
        }
    }

    /// Restores what an earlier response stated. The result of a completed step does not change, so it
    /// is not replayed.
    pub(crate) fn replay(&mut self, step: &Step) {
        self.order = step.order;
        self.status = step.status();
        if self.status != StepStatus::Completed {
            self.result_summary = None;
        }
        self.reason = if let StepState::Failed { reason, .. } = &step.state {
            Some(reason.to_string())
        } else {
            None
        };
    }
}

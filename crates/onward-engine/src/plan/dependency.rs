//! The outcomes of the steps that a step depends on, for the agent that works on it.

use onward_core::{StepId, StepStatus};
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
}

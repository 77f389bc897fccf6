//! The definition of a step that redoes another one.

use super::NewStep;
use crate::id::StepId;

/// The separator between a step's instructions and the reason for redoing it. Stored with the step.
const REDO_REASON: &str = "\n\n---\n\nRedo reason: ";

impl NewStep {
    /// The successor of this step: the same step with a new id, other dependencies, and the reason
    /// in its instructions.
    pub fn redone(&self, id: StepId, depends_on: Vec<StepId>, reason: &str) -> Self {
        Self {
            id,
            instructions: format!("{}{REDO_REASON}{reason}", self.instructions),
            depends_on,
            supersedes: Some(self.id),
            ..self.clone()
        }
    }
}

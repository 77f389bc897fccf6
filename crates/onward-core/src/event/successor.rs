//! The successor of a redone step.

use crate::id::BranchId;
use crate::step::{NewStep, StepStatus};

/// A step that redoes a terminal step. Its position is directly after that step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Successor {
    /// The successor, with the superseded step in `supersedes`.
    pub step: NewStep,
    /// The order of the superseded step before the change.
    pub order: u32,
    /// The status of the superseded step.
    pub from: StepStatus,
    /// The branches after the superseded step that are now after the successor.
    pub branches: Vec<BranchId>,
}

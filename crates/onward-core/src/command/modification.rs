//! Changes to the step list, a branch, one step or the plan.

use super::{BranchSpec, PlanUpdate, StepSpec, StepUpdate};
use crate::budget::Budget;
use crate::id::StepId;

/// A change to the step list, a branch or one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Modification {
    /// Insert steps.
    AddSteps {
        /// The new steps.
        steps: Vec<StepSpec>,
        /// The order of the step before them; 0 inserts at the front. Default: append.
        insert_after: Option<u32>,
    },
    /// Remove a pending step.
    RemoveStep {
        /// The step.
        step: StepId,
    },
    /// Reorder all steps.
    ReorderSteps {
        /// All steps in the new order.
        steps: Vec<StepId>,
    },
    /// Replace a step's instructions.
    UpdateInstructions {
        /// The step.
        step: StepId,
        /// The new instructions.
        instructions: String,
    },
    /// Replace a step's title and instructions.
    RenameStep {
        /// The step.
        step: StepId,
        /// The new title.
        title: String,
        /// The new instructions.
        instructions: String,
    },
    /// Change the definition of a pending step.
    UpdateStep {
        /// The step.
        step: StepId,
        /// The new values.
        update: StepUpdate,
    },
    /// Change the project, the labels or the priority of the plan.
    UpdatePlan {
        /// The new values.
        update: PlanUpdate,
    },
    /// Set, change or remove the budget of the plan.
    SetBudget {
        /// The new limits.
        budget: Option<Budget>,
        /// Whether a person sets it. An agent cannot raise or remove a budget.
        by_person: bool,
    },
    /// Fail a step.
    FailStep {
        /// The step.
        step: StepId,
        /// The reason.
        reason: Option<String>,
    },
    /// Skip a pending step. Only a person does.
    SkipStep {
        /// The step.
        step: StepId,
    },
    /// Release a claimed step so that it can be claimed again.
    RequeueStep {
        /// The step.
        step: StepId,
    },
    /// Add a branch.
    AddBranch {
        /// The branch.
        branch: BranchSpec,
    },
    /// Redo a terminal step: add a successor that supersedes it.
    RedoStep {
        /// The step.
        step: StepId,
        /// The reason, which the agent receives with the instructions.
        reason: String,
        /// Also redo the completed steps that depend on it, directly or indirectly.
        cascade: bool,
        /// New ids for the successors. Unused ids are ignored.
        ids: Vec<StepId>,
    },
}

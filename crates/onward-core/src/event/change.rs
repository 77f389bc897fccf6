//! The changes of a plan's definition: its creation and modifications.

use std::sync::Arc;

use super::{Created, Successor};
use crate::branch::Branch;
use crate::budget::{Budget, Used};
use crate::id::StepId;
use crate::routing::Routing;
use crate::step::NewStep;

/// A change to a plan's steps or branches.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The plan was created.
    Created(Box<Created>),
    /// Steps were inserted.
    StepsAdded {
        /// The order of the step before them; 0 for the start of the plan.
        after: u32,
        /// The inserted steps.
        steps: Arc<[NewStep]>,
    },
    /// A pending step was removed with its branches.
    StepRemoved {
        /// The step.
        step: StepId,
    },
    /// The steps were reordered.
    StepsReordered {
        /// All steps in the new order.
        steps: Arc<[StepId]>,
    },
    /// A step's instructions were replaced.
    InstructionsUpdated {
        /// The step.
        step: StepId,
        /// The new instructions.
        instructions: String,
    },
    /// A step's title and instructions were replaced.
    StepRenamed {
        /// The step.
        step: StepId,
        /// The new title.
        title: String,
        /// The new instructions.
        instructions: String,
    },
    /// The definition of a pending step was changed.
    StepUpdated {
        /// The new definition.
        step: Arc<NewStep>,
    },
    /// The project, the labels or the priority of the plan were changed.
    PlanUpdated {
        /// The new values.
        routing: Routing,
    },
    /// The budget of the plan was set, changed or removed.
    BudgetSet {
        /// The new limits.
        budget: Option<Budget>,
        /// What the plan has used so far.
        used: Used,
    },
    /// A caller failed a step. A separate event changes the step.
    StepFailed {
        /// The step.
        step: StepId,
    },
    /// A person skipped a step. A separate event changes the step.
    StepSkipped {
        /// The step.
        step: StepId,
    },
    /// A caller requeued a step. A separate event changes the step.
    StepRequeued {
        /// The step.
        step: StepId,
    },
    /// A branch was added.
    BranchAdded {
        /// The branch.
        branch: Branch,
    },
    /// Terminal steps were superseded by pending successors. Pending steps and branches that
    /// referred to a superseded step refer to its successor.
    StepRedone {
        /// The step that the caller redoes.
        step: StepId,
        /// The caller's reason.
        reason: String,
        /// The successors of the step and, with `cascade`, of its completed dependents, sorted by
        /// order.
        successors: Arc<[Successor]>,
    },
}

impl Change {
    /// The value in the audit trail: the action of `modify_plan`, or `created`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Change::Created(_) => "created",
            Change::StepsAdded { .. } => "add_steps",
            Change::StepRemoved { .. } => "remove_step",
            Change::StepsReordered { .. } => "reorder_steps",
            Change::InstructionsUpdated { .. } => "update_step_instructions",
            Change::StepRenamed { .. } => "rename_step",
            Change::StepUpdated { .. } => "update_step",
            Change::PlanUpdated { .. } => "update_plan",
            Change::BudgetSet { .. } => "set_budget",
            Change::StepFailed { .. } => "fail_step",
            Change::StepSkipped { .. } => "skip_step",
            Change::StepRequeued { .. } => "requeue_step",
            Change::BranchAdded { .. } => "add_branch",
            Change::StepRedone { .. } => "redo_step",
        }
    }
}

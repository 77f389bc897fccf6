//! Changes the step list, a branch or one step. One file per action.
//!
//! Allowed only while a plan is `planning` or `executing`; a user's change to a stalled plan
//! resumes it first. After the change the plan's status is derived again: failing the last open
//! step completes the plan.
//!
//! The actions need different facts; [`needs`] returns them.

mod add_branch;
mod add_steps;
mod fail_step;
mod remove_step;
mod reorder_steps;
mod requeue_step;
mod update_instructions;

use std::collections::BTreeSet;

use super::check::Check;
use super::draft::Draft;
use super::resolve::{self, OrderFacts, ReferencedStep};
use crate::command::{ActionSpec, Modification, ModifyPlan, StepRef};
use crate::event::{Event, ResumedBy};
use crate::id::{BranchId, StepId};
use crate::plan::{PlanHead, PlanStatus};
use crate::refusal::Refusal;
use crate::step::Step;
use crate::time::Timestamp;

/// The facts that a modification needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`Facts::step`](field@Facts::step). If it does not exist, return [`Refusal::StepNotFound`].
    pub step: Option<StepId>,
    /// [`Facts::dependents`] and [`Facts::needed_by`] of that step.
    pub references: bool,
    /// [`Facts::taken`]: which of these ids the plan already has.
    pub fresh: Vec<StepId>,
    /// [`Facts::orders`]: the steps with these orders that exist.
    pub orders: BTreeSet<u32>,
    /// [`Facts::target`], if it exists.
    pub target: Option<StepId>,
    /// [`Facts::branches_after`] of the step with this order.
    pub branches_after: Option<u32>,
    /// [`Facts::list`].
    pub list: bool,
}

/// The required facts. Fields that [`needs`] does not request may be empty.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a PlanHead,
    /// The step to change.
    pub step: Option<&'a Step>,
    /// The steps that depend on it.
    pub dependents: &'a [StepId],
    /// The branches that refer to it, except those after it.
    pub needed_by: &'a [BranchId],
    /// The new ids that the plan or one of its branches already uses.
    pub taken: &'a [StepId],
    /// Steps referenced by order.
    pub orders: &'a OrderFacts,
    /// The step that a `skip_to` references by id.
    pub target: Option<ReferencedStep>,
    /// The number of branches after the step.
    pub branches_after: usize,
    /// All steps, sorted by order.
    pub list: &'a [StepId],
}

/// The facts that this modification needs.
pub fn needs(modification: &Modification, plan: &PlanHead) -> Needs {
    match modification {
        Modification::AddSteps {
            steps,
            insert_after,
        } => Needs {
            orders: add_steps::insertion(plan, steps, *insert_after).existing_orders(steps),
            fresh: steps.iter().map(|step| step.id).collect(),
            ..Needs::default()
        },
        Modification::RemoveStep { step } => Needs {
            step: Some(*step),
            references: true,
            ..Needs::default()
        },
        Modification::ReorderSteps { .. } => Needs {
            list: true,
            ..Needs::default()
        },
        Modification::UpdateInstructions { step, .. }
        | Modification::FailStep { step, .. }
        | Modification::RequeueStep { step } => Needs {
            step: Some(*step),
            ..Needs::default()
        },
        Modification::AddBranch { branch } => Needs {
            orders: resolve::branch_orders(branch),
            target: match &branch.action {
                ActionSpec::SkipTo(StepRef::Id(id)) => Some(*id),
                ActionSpec::SkipTo(StepRef::Order(_))
                | ActionSpec::Continue
                | ActionSpec::AddSteps(_)
                | ActionSpec::Fail { .. } => None,
            },
            fresh: match &branch.action {
                ActionSpec::AddSteps(steps) => steps.iter().map(|step| step.id).collect(),
                ActionSpec::Continue | ActionSpec::SkipTo(_) | ActionSpec::Fail { .. } => {
                    Vec::new()
                }
            },
            branches_after: Some(branch.after_order),
            ..Needs::default()
        },
    }
}

/// Decides the command.
pub fn decide(
    facts: &Facts<'_>,
    command: &ModifyPlan,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let mut check = Check::default();
    check.remark("modificationRationale", command.rationale.as_deref());
    check.finish()?;
    let mut draft = Draft::new(facts.plan, now);
    match facts.plan.status() {
        PlanStatus::Planning | PlanStatus::Executing => {}
        PlanStatus::Stalled if command.resume => {
            draft.push(Event::PlanResumed {
                by: ResumedBy::User,
            })?;
        }
        status @ (PlanStatus::Stalled
        | PlanStatus::AwaitingReview
        | PlanStatus::Completed
        | PlanStatus::Failed) => return Err(Refusal::PlanNotModifiable(status)),
    }
    let (change, follow_up) = match &command.modification {
        Modification::AddSteps {
            steps,
            insert_after,
        } => add_steps::decide(facts, steps, *insert_after)?,
        Modification::RemoveStep { step } => remove_step::decide(facts, *step)?,
        Modification::ReorderSteps { steps } => reorder_steps::decide(facts, steps)?,
        Modification::UpdateInstructions { step, instructions } => {
            update_instructions::decide(facts, *step, instructions)?
        }
        Modification::FailStep { step, reason } => {
            fail_step::decide(facts, *step, reason.as_deref())?
        }
        Modification::RequeueStep { step } => requeue_step::decide(facts, *step)?,
        Modification::AddBranch { branch } => add_branch::decide(facts, branch)?,
    };
    draft.push(Event::PlanModified {
        change,
        rationale: command.rationale.clone(),
    })?;
    if let Some(event) = follow_up {
        draft.push(event)?;
    }
    draft.finish()
}

impl<'a> Facts<'a> {
    fn step(&self, id: StepId) -> Result<&'a Step, Refusal> {
        self.step
            .filter(|step| step.id() == id)
            .ok_or(Refusal::StepNotFound(id))
    }
}

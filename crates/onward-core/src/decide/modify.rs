//! Change the list of steps and branches, or one step in it. One file per action.
//!
//! Only while a plan is `planning` or `executing`; a person who acts on a stalled plan resumes it in
//! the same breath. After any of them the plan's status is derived again: failing the last open step
//! completes the plan.
//!
//! The actions look at different things, so [`needs`] says what this one looks at.

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
use super::resolve::{self, OrderFacts, Referenced};
use crate::command::{ActionSpec, Modification, ModifyPlan, StepRef};
use crate::event::{Event, ResumedBy};
use crate::id::{BranchId, StepId};
use crate::plan::{PlanHead, PlanStatus};
use crate::refusal::Refusal;
use crate::step::Step;
use crate::time::Timestamp;

/// What must be looked up for a modification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The [step](field@Facts::step) of the facts. Where there is none, that is [`Refusal::StepNotFound`].
    pub step: Option<StepId>,
    /// [`Facts::dependents`] and [`Facts::needed_by`] of that step.
    pub references: bool,
    /// [`Facts::taken`]: those of these ids that the plan has already.
    pub fresh: Vec<StepId>,
    /// [`Facts::orders`]: these, where they exist.
    pub orders: BTreeSet<u32>,
    /// [`Facts::target`], where it exists.
    pub target: Option<StepId>,
    /// [`Facts::branches_after`] the step with this order.
    pub branches_after: Option<u32>,
    /// [`Facts::list`].
    pub list: bool,
}

/// What must be known; what [`needs`] does not name may be left empty.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a PlanHead,
    /// The step that it is about.
    pub step: Option<&'a Step>,
    /// The steps that depend on it.
    pub dependents: &'a [StepId],
    /// The branches that need it, beside those that stand after it.
    pub needed_by: &'a [BranchId],
    /// Which ids that the command brings are steps of the plan already, or of one of its branches.
    pub taken: &'a [StepId],
    /// Steps that are named by their order.
    pub orders: &'a OrderFacts,
    /// The step that a `skip_to` names by its id.
    pub target: Option<Referenced>,
    /// How many branches the step has that one is added to.
    pub branches_after: usize,
    /// All steps, in their order.
    pub list: &'a [StepId],
}

/// What must be looked up.
pub fn needs(modification: &Modification, plan: &PlanHead) -> Needs {
    match modification {
        Modification::AddSteps {
            steps,
            insert_after,
        } => Needs {
            orders: add_steps::insertion(plan, steps, *insert_after).own_orders(steps),
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

/// Decides whether the plan is changed, and what follows.
pub fn decide(
    facts: &Facts<'_>,
    command: &ModifyPlan,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let mut check = Check::default();
    check.remark("modificationRationale", command.rationale.as_deref());
    check.done()?;
    let mut draft = Draft::of(facts.plan, now);
    match facts.plan.status() {
        PlanStatus::Planning | PlanStatus::Executing => {}
        PlanStatus::Stalled if command.resume => {
            draft.push(Event::PlanResumed {
                by: ResumedBy::Person,
            })?;
        }
        status @ (PlanStatus::Stalled
        | PlanStatus::AwaitingReview
        | PlanStatus::Completed
        | PlanStatus::Failed) => return Err(Refusal::PlanNotModifiable(status)),
    }
    let decided = match &command.modification {
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
    let (change, follows) = decided;
    draft.push(Event::PlanModified {
        change,
        rationale: command.rationale.clone(),
    })?;
    if let Some(event) = follows {
        draft.push(event)?;
    }
    draft.settle()
}

impl<'a> Facts<'a> {
    fn step(&self, id: StepId) -> Result<&'a Step, Refusal> {
        self.step
            .filter(|step| step.id() == id)
            .ok_or(Refusal::StepNotFound(id))
    }
}

//! Changes the step list, a branch, one step or the plan. One file per action.
//!
//! Allowed only while a plan is `planning` or `executing`; a user's change to a stalled plan
//! resumes it first. The budget can be changed until the plan ends. After the change the plan's status is derived again: failing the last open
//! step completes the plan.
//!
//! A change to one step checks the claim token; the other changes ignore it.
//!
//! The actions need different facts; [`needs`] returns them.

mod add_branch;
mod add_steps;
mod facts;
mod fail_step;
mod redo_step;
mod remove_step;
mod rename_step;
mod reorder_steps;
mod requeue_step;
mod set_budget;
mod skip_step;
mod update_instructions;
mod update_plan;
mod update_step;

use super::check::Check;
use super::claim;
use super::draft::Draft;
use super::resolve;
use crate::command::{ActionSpec, Modification, ModifyPlan};
use crate::event::{Event, ResumedBy};
use crate::plan::{PlanHead, PlanStatus};
use crate::refusal::Refusal;
use crate::time::Timestamp;

pub use facts::{Facts, Needs, StepOutline};
pub use redo_step::redirected_branches;
pub(super) use redo_step::{is_spent, last_successor};

/// The facts that this modification needs.
pub fn needs(modification: &Modification, plan: &PlanHead) -> Needs {
    match modification {
        Modification::AddSteps { steps, .. } => Needs {
            orders: resolve::existing_orders(plan.counts.last_order(), steps),
            ids: resolve::existing_ids(steps),
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
        | Modification::RenameStep { step, .. }
        | Modification::FailStep { step, .. }
        | Modification::SkipStep { step }
        | Modification::RequeueStep { step } => Needs {
            step: Some(*step),
            ..Needs::default()
        },
        Modification::UpdatePlan { .. } => Needs::default(),
        Modification::SetBudget { .. } => Needs {
            used: true,
            ..Needs::default()
        },
        Modification::UpdateStep { step, update } => Needs {
            step: Some(*step),
            outline: update.depends_on.is_some(),
            ..Needs::default()
        },
        Modification::RedoStep { step, ids, .. } => Needs {
            step: Some(*step),
            fresh: ids.clone(),
            outline: true,
            ..Needs::default()
        },
        Modification::AddBranch { branch } => Needs {
            orders: resolve::branch_orders(plan.counts.last_order(), branch),
            ids: resolve::branch_ids(branch),
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
pub fn decide(facts: &Facts, command: &ModifyPlan, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let mut check = Check::default();
    check.remark("modificationRationale", command.rationale.as_deref());
    check.finish()?;
    let mut draft = Draft::new(&facts.head, now);
    let sets_budget = matches!(command.modification, Modification::SetBudget { .. });
    match facts.head.status() {
        PlanStatus::Planning | PlanStatus::Executing => {}
        PlanStatus::Stalled | PlanStatus::AwaitingReview if sets_budget => {}
        PlanStatus::Stalled if command.resume => {
            draft.push(Event::PlanResumed {
                by: ResumedBy::User,
            })?;
        }
        status @ (PlanStatus::Stalled
        | PlanStatus::AwaitingReview
        | PlanStatus::Completed
        | PlanStatus::Failed) => {
            let exhausted = facts.head.stopped_by_budget(now);
            let refusal = exhausted.map(Refusal::BudgetExhausted);
            return Err(refusal.unwrap_or(Refusal::PlanNotModifiable(status)));
        }
    }
    if let Some(step) = &facts.step {
        claim::check_claim(step, command.token.as_ref())?;
    }
    let (change, follow_up) = match &command.modification {
        Modification::AddSteps {
            steps,
            insert_after,
        } => add_steps::decide(facts, steps, *insert_after)?,
        Modification::RemoveStep { step } => remove_step::decide(facts, *step)?,
        Modification::ReorderSteps { steps } => reorder_steps::decide(facts, steps)?,
        Modification::UpdateInstructions { step, instructions } => {
            update_instructions::decide(facts, *step, instructions, command)?
        }
        Modification::RenameStep {
            step,
            title,
            instructions,
        } => rename_step::decide(facts, *step, title, instructions)?,
        Modification::UpdatePlan { update } => update_plan::decide(facts, update)?,
        Modification::SetBudget { budget, by_person } => {
            set_budget::decide(facts, budget.as_ref(), *by_person, now)?
        }
        Modification::UpdateStep { step, update } => update_step::decide(facts, *step, update)?,
        Modification::FailStep { step, reason } => {
            fail_step::decide(facts, *step, reason.as_deref())?
        }
        Modification::SkipStep { step } => skip_step::decide(facts, *step)?,
        Modification::RequeueStep { step } => requeue_step::decide(facts, *step)?,
        Modification::AddBranch { branch } => add_branch::decide(facts, branch)?,
        Modification::RedoStep {
            step,
            reason,
            cascade,
            ids,
        } => redo_step::decide(facts, *step, reason, *cascade, ids)?,
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

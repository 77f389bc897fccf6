//! Plans: creation, changes to the lists of steps and branches, stalls, and failure.
//!
//! The keys of a created plan are those of `create_research_plan`, with ids instead of orders:
//! orders change, and the audit trail must stay correct.

use onward_core::StepId;
use onward_core::event::{Change, Created};
use onward_core::plan::{Brief, PlanFailure};
use onward_core::policy::OnStall;
use onward_core::stall::Stall;

use super::read::Fields;
use super::write::Details;
use super::{Undecodable, branch, step};

const CHANGES: [&str; 8] = [
    "created",
    "add_steps",
    "remove_step",
    "reorder_steps",
    "update_step_instructions",
    "fail_step",
    "requeue_step",
    "add_branch",
];

const FAILURE_KINDS: [&str; 3] = ["branch", "rejected", "abandoned"];

/// Change of the lists; its `action` is already in the details.
pub(super) fn change(details: Details, change: &Change) -> Details {
    match change {
        Change::Created(plan) => created(details, plan),
        Change::StepsAdded { after, steps } => details
            .with("insertAfterOrder", *after)
            .with_objects("steps", steps, step::new_step),
        Change::StepsReordered { steps } => details.with_texts("stepIds", steps),
        Change::InstructionsUpdated { instructions, .. } => {
            details.with("instructions", instructions.as_str())
        }
        Change::BranchAdded { branch } => details.with("branch", branch::branch(branch)),
        Change::StepRemoved { .. } | Change::StepFailed { .. } | Change::StepRequeued { .. } => {
            details
        }
    }
}

/// `step` returns the step that the change concerns, or an error if there is none.
pub(super) fn read_change(
    fields: &Fields<'_>,
    step: impl FnOnce() -> Result<StepId, Undecodable>,
) -> Result<Change, Undecodable> {
    match fields.get("action")? {
        "created" => Ok(Change::Created(Box::new(read_created(fields)?))),
        "add_steps" => Ok(Change::StepsAdded {
            after: fields.get("insertAfterOrder")?,
            steps: fields.objects("steps", step::read_new_step)?,
        }),
        "remove_step" => Ok(Change::StepRemoved { step: step()? }),
        "reorder_steps" => Ok(Change::StepsReordered {
            steps: fields.list("stepIds")?,
        }),
        "update_step_instructions" => Ok(Change::InstructionsUpdated {
            step: step()?,
            instructions: fields.get("instructions")?,
        }),
        "fail_step" => Ok(Change::StepFailed { step: step()? }),
        "requeue_step" => Ok(Change::StepRequeued { step: step()? }),
        "add_branch" => Ok(Change::BranchAdded {
            branch: branch::read_branch(&fields.object("branch")?)?,
        }),
        other => Err(fields.none_of("action", other, &CHANGES)),
    }
}

fn created(details: Details, plan: &Created) -> Details {
    let brief = &plan.brief;
    let notes = brief.output_formatting_notes.as_deref();
    details
        .with_text("planId", plan.plan)
        .with("name", brief.name.as_str())
        .with("researchQuestion", brief.research_question.as_str())
        .with_some("planDesignRationale", brief.design_rationale.as_deref())
        .with_some("outputFormattingNotes", notes)
        .with_objects("steps", &plan.steps, step::new_step)
        .with_objects("branchingConditions", &plan.branches, branch::branch)
        .with_span("stallThresholdMs", plan.stall_threshold)
        .with("onStall", plan.on_stall.as_str())
        .with_session(plan.session.as_ref())
}

fn read_created(fields: &Fields<'_>) -> Result<Created, Undecodable> {
    Ok(Created {
        plan: fields.get("planId")?,
        brief: Brief {
            name: fields.get("name")?,
            research_question: fields.get("researchQuestion")?,
            design_rationale: fields.get_some("planDesignRationale")?,
            output_formatting_notes: fields.get_some("outputFormattingNotes")?,
        },
        steps: fields.objects("steps", step::read_new_step)?,
        branches: fields.objects("branchingConditions", branch::read_branch)?,
        stall_threshold: fields.get_some("stallThresholdMs")?,
        on_stall: fields.word("onStall", &OnStall::ALL, OnStall::as_str)?,
        session: fields.get_some("sessionId")?,
    })
}

pub(super) fn stall(stall: &Stall) -> Details {
    Details::default()
        .with_text("stepId", stall.step)
        .with("attempt", stall.attempt)
        .with_text("since", stall.since)
}

pub(super) fn read_stall(fields: &Fields<'_>) -> Result<Stall, Undecodable> {
    Ok(Stall {
        step: fields.get("stepId")?,
        attempt: fields.get("attempt")?,
        since: fields.get("since")?,
    })
}

/// As for a step, `reason` is absent if none was given.
pub(super) fn failure(details: Details, reason: &PlanFailure) -> Details {
    let (kind, text) = match reason {
        PlanFailure::Branch(text) => ("branch", text),
        PlanFailure::Rejected(text) => ("rejected", text),
        PlanFailure::Abandoned(text) => ("abandoned", text),
    };
    details
        .with("kind", kind)
        .with_some("reason", text.as_deref())
}

pub(super) fn read_failure(fields: &Fields<'_>) -> Result<PlanFailure, Undecodable> {
    let text = fields.get_some("reason")?;
    match fields.get("kind")? {
        "branch" => Ok(PlanFailure::Branch(text)),
        "rejected" => Ok(PlanFailure::Rejected(text)),
        "abandoned" => Ok(PlanFailure::Abandoned(text)),
        other => Err(fields.none_of("kind", other, &FAILURE_KINDS)),
    }
}

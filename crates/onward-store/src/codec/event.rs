//! All events, to their details and back. The name and the step have separate columns.
//!
//! `from` and `to` are present whenever a step changes its status, and when a plan does and the
//! event contains the previous status. Parts of steps, branches, plans and reviews are in the
//! modules of those names.

use std::sync::Arc;

use onward_core::event::{ProgressSource, RequeueReason, ResumedBy};
use onward_core::id::SkillExecutionId;
use onward_core::{Code, Event, PlanStatus, StepId, StepStatus};

use super::read::{Fields, every, none_of};
use super::write::Details;
use super::{Undecodable, branch, plan, review, step};

every!(SOURCES: ProgressSource = Reported, Written, Seen);
every!(REQUEUE_REASONS: RequeueReason = Manual, Stalled, TakenOver);
every!(RESUMED_BY: ResumedBy = NextStep, LateResult, Progress, User);

const FEEDBACK_DELIVERED: &str = "feedback_delivered";

pub(super) fn details(event: &Event) -> Details {
    let details = Details::default().with_some("action", event.action());
    match event {
        Event::PlanModified { change, rationale } => {
            plan::change(details, change).with_some("rationale", rationale.as_deref())
        }
        Event::StepStarted { claim, .. } => {
            let details = details.moved(StepStatus::Pending, StepStatus::InProgress);
            step::claim(details, claim)
        }
        Event::StepCompleted {
            from,
            result,
            verdicts,
            session,
            ..
        } => step::result(details.moved(from, StepStatus::Completed), result)
            .with_objects("branches", verdicts, branch::verdict)
            .with_session(session.as_ref()),
        Event::StepFailed { from, reason, .. } => {
            step::fail_reason(details.moved(from, StepStatus::Failed), reason)
        }
        Event::StepSkipped { from, by, .. } => {
            step::skip_cause(details.moved(from, StepStatus::Skipped), *by)
        }
        Event::StepRequeued { attempt, .. } => details
            .moved(StepStatus::InProgress, StepStatus::Pending)
            .with("attempt", *attempt),
        Event::StepProgressed {
            note,
            percent,
            session,
            ..
        } => details
            .with_some("note", note.as_deref())
            .with_some("percent", *percent)
            .with_session(session.as_ref()),
        Event::FeedbackDelivered { session, .. } => details.with_session(session.as_ref()),
        Event::BranchTaken { branch, effect, .. } => {
            branch::effect(details.with_text("branchId", branch), effect)
        }
        Event::UserReviewed { review, action, .. } => {
            review::action(details.with_text("reviewId", review), action)
        }
        Event::SessionResumed { session } => details.with_session(Some(session)),
        Event::SkillStarted { execution, skill } => skill_of(details, execution, skill),
        Event::SkillCompleted {
            execution,
            skill,
            error,
        } => skill_of(details, execution, skill).with_some("errorMessage", error.as_deref()),
        Event::PlanStalled { stalls } => details
            .moved(PlanStatus::Executing, PlanStatus::Stalled)
            .with_objects("stalls", stalls, plan::stall),
        Event::PlanResumed { .. } => details.moved(PlanStatus::Stalled, PlanStatus::Executing),
        Event::PlanCompleted => details.moved(PlanStatus::Executing, PlanStatus::Completed),
        Event::PlanFailed { reason } => {
            plan::failure(details.with_text("to", PlanStatus::Failed), reason)
        }
        Event::LateResultKept {
            artifact,
            rejection,
            ..
        } => details
            .with_text("artifactId", artifact)
            .with("refused", rejection.as_str()),
    }
}

fn skill_of(details: Details, execution: &SkillExecutionId, skill: &str) -> Details {
    details
        .with_text("executionId", execution)
        .with("skillName", skill)
}

/// `step` is the one stored with the event. The caller checks that it is the step of the event.
pub(super) fn read(
    name: &str,
    step: Option<StepId>,
    fields: &Fields<'_>,
) -> Result<Event, Undecodable> {
    let step = || {
        step.ok_or_else(|| Undecodable {
            path: String::new(),
            why: format!("`{name}` requires a step, but is stored without one"),
        })
    };
    match name {
        "plan_modified" => Ok(Event::PlanModified {
            change: plan::read_change(fields, step)?,
            rationale: fields.get_some("rationale")?,
        }),
        "step_started" => Ok(Event::StepStarted {
            step: step()?,
            claim: step::read_claim(fields)?,
        }),
        "step_completed" => step_completed(step()?, fields),
        "step_failed" => Ok(Event::StepFailed {
            step: step()?,
            from: from(fields)?,
            reason: step::read_fail_reason(fields)?,
        }),
        "step_skipped" => Ok(Event::StepSkipped {
            step: step()?,
            from: from(fields)?,
            by: step::read_skip_cause(fields)?,
        }),
        "step_requeued" => Ok(Event::StepRequeued {
            step: step()?,
            attempt: fields.get("attempt")?,
            reason: fields.word("action", REQUEUE_REASONS, RequeueReason::as_str)?,
        }),
        "step_progressed" => step_progressed(step()?, fields),
        "branch_taken" => Ok(Event::BranchTaken {
            branch: fields.get("branchId")?,
            step: step()?,
            effect: branch::read_effect(fields)?,
        }),
        "user_reviewed" => Ok(Event::UserReviewed {
            step: step()?,
            review: fields.get("reviewId")?,
            action: review::read_action(fields)?,
        }),
        "late_result_kept" => Ok(Event::LateResultKept {
            step: step()?,
            artifact: fields.get("artifactId")?,
            rejection: fields.word("refused", &Code::ALL, Code::as_str)?,
        }),
        _ => without_step(name, fields),
    }
}

/// Events about the whole plan.
fn without_step(name: &str, fields: &Fields<'_>) -> Result<Event, Undecodable> {
    match name {
        "session_resumed" => Ok(Event::SessionResumed {
            session: fields.get("sessionId")?,
        }),
        "skill_started" => Ok(Event::SkillStarted {
            execution: fields.get("executionId")?,
            skill: fields.get("skillName")?,
        }),
        "skill_completed" => Ok(Event::SkillCompleted {
            execution: fields.get("executionId")?,
            skill: fields.get("skillName")?,
            error: fields.get_some("errorMessage")?,
        }),
        "plan_stalled" => Ok(Event::PlanStalled {
            stalls: fields.objects("stalls", plan::read_stall)?,
        }),
        "plan_resumed" => Ok(Event::PlanResumed {
            by: fields.word("action", RESUMED_BY, ResumedBy::as_str)?,
        }),
        "plan_completed" => Ok(Event::PlanCompleted),
        "plan_failed" => Ok(Event::PlanFailed {
            reason: plan::read_failure(fields)?,
        }),
        other => Err(Undecodable {
            path: String::new(),
            why: none_of("the name of the event", other, &Event::NAMES),
        }),
    }
}

fn from(fields: &Fields<'_>) -> Result<StepStatus, Undecodable> {
    fields.word("from", &StepStatus::ALL, StepStatus::as_str)
}

fn step_completed(step: StepId, fields: &Fields<'_>) -> Result<Event, Undecodable> {
    Ok(Event::StepCompleted {
        step,
        from: from(fields)?,
        result: Arc::new(step::read_result(fields)?),
        verdicts: fields.objects("branches", branch::read_verdict)?,
        session: fields.get_some("sessionId")?,
    })
}

fn step_progressed(step: StepId, fields: &Fields<'_>) -> Result<Event, Undecodable> {
    let session = fields.get_some("sessionId")?;
    if fields.get::<&str>("action")? == FEEDBACK_DELIVERED {
        return Ok(Event::FeedbackDelivered { step, session });
    }
    Ok(Event::StepProgressed {
        step,
        source: fields.word("action", SOURCES, ProgressSource::as_str)?,
        note: fields.get_some("note")?,
        percent: fields.get_some("percent")?,
        session,
    })
}

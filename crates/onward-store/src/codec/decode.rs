//! Converts the mirror of details to an event. The counterpart is `encode.rs`.
//!
//! Keys for readers only are not used: a constant `from` or `to`, and a `reason` that the `kind`
//! implies.

use std::borrow::Cow;
use std::sync::Arc;

use onward_core::branch::Effect;
use onward_core::event::{
    Change, Created, Decision, ProgressSource, RequeueReason, ResumedBy, ReviewAction,
};
use onward_core::id::{ClaimToken, SessionId};
use onward_core::plan::{Brief, Origin, PlanFailure};
use onward_core::policy::{OnDependencyFailure, OnStall};
use onward_core::routing::Routing;
use onward_core::step::{Claim, FailReason, SkipCause, StepResult};
use onward_core::{Code, Event, Json, PlanStatus, StepId, StepStatus};

use super::details::Details;
use super::part::{ACTIONS, each};
use super::review;
use super::scalar::{Priority, values};
use super::{Undecodable, required, unknown, word};

/// Actions of `plan_modified`.
const CHANGES: [&str; 13] = [
    "created",
    "add_steps",
    "remove_step",
    "reorder_steps",
    "update_step_instructions",
    "rename_step",
    "update_step",
    "update_plan",
    "set_budget",
    "fail_step",
    "requeue_step",
    "add_branch",
    "redo_step",
];

type Owned = Details<'static, String, Json>;

/// `step` is the one stored with the event. The caller checks that it is the step of the event.
pub(super) fn event(
    name: &str,
    step: Option<StepId>,
    details: Owned,
) -> Result<Event, Undecodable> {
    let step = || {
        let why = || format!("`{name}` requires a step, but is stored without one");
        step.ok_or_else(|| Undecodable::new("", why()))
    };
    match name {
        "plan_modified" => change(step, details),
        "step_started" => Ok(Event::StepStarted {
            step: step()?,
            claim: Claim {
                attempt: required("attempt", details.attempt)?,
                token: ClaimToken::new(required("claimToken", details.claim_token)?),
                session: details.session_id.map(SessionId::new),
            },
        }),
        "step_completed" => completed(step()?, details),
        "step_failed" => Ok(Event::StepFailed {
            step: step()?,
            from: word("from", details.from, &StepStatus::ALL, StepStatus::as_str)?,
            reason: {
                let kind = required("kind", details.kind)?;
                FailReason::from_kind(&kind, text(details.reason))
                    .ok_or_else(|| unknown("kind", &kind, &FailReason::KINDS))?
            },
        }),
        "step_skipped" => Ok(Event::StepSkipped {
            step: step()?,
            from: word("from", details.from, &StepStatus::ALL, StepStatus::as_str)?,
            by: match required("by", details.by)?.as_str() {
                "branch" => SkipCause::Branch(required("branchId", details.branch_id)?.0),
                "review" => SkipCause::Review(required("reviewId", details.review_id)?.0),
                "person" => SkipCause::Person,
                other => return Err(unknown("by", other, &["branch", "review", "person"])),
            },
        }),
        "step_requeued" => Ok(Event::StepRequeued {
            step: step()?,
            attempt: required("attempt", details.attempt)?,
            reason: word(
                "action",
                details.action,
                &RequeueReason::ALL,
                RequeueReason::as_str,
            )?,
        }),
        "step_progressed" => progressed(step()?, details),
        "step_orphaned" => Ok(Event::StepOrphaned {
            step: step()?,
            session: details.session_id.map(SessionId::new),
        }),
        "branch_taken" => taken(step()?, details),
        "user_reviewed" => reviewed(step()?, details),
        "late_result_kept" => Ok(Event::LateResultKept {
            step: step()?,
            artifact: required("artifactId", details.artifact_id)?.0,
            rejection: word("refused", details.refused, &Code::ALL, Code::as_str)?,
            attempt: details.attempt,
        }),
        _ => without_step(name, details),
    }
}

/// Events about the whole plan.
fn without_step(name: &str, details: Owned) -> Result<Event, Undecodable> {
    Ok(match name {
        "session_resumed" => Event::SessionResumed {
            session: SessionId::new(required("sessionId", details.session_id)?),
        },
        "skill_started" => Event::SkillStarted {
            execution: required("executionId", details.execution_id)?.0,
            skill: required("skillName", details.skill_name)?,
        },
        "skill_completed" => Event::SkillCompleted {
            execution: required("executionId", details.execution_id)?.0,
            skill: required("skillName", details.skill_name)?,
            error: details.error_message,
        },
        "budget_exhausted" => Event::BudgetExhausted {
            exhausted: required("exhausted", details.exhausted)?.into(),
        },
        "plan_stalled" => Event::PlanStalled {
            stalls: each(required("stalls", details.stalls)?),
        },
        "plan_resumed" => Event::PlanResumed {
            by: word("action", details.action, &ResumedBy::ALL, ResumedBy::as_str)?,
        },
        "plan_completed" => Event::PlanCompleted,
        "plan_status_changed" => Event::PlanStatusChanged {
            from: word("from", details.from, &PlanStatus::ALL, PlanStatus::as_str)?,
            to: word("to", details.to, &PlanStatus::ALL, PlanStatus::as_str)?,
        },
        "plan_failed" => Event::PlanFailed {
            from: word("from", details.from, &PlanStatus::ALL, PlanStatus::as_str)?,
            reason: {
                let kind = required("kind", details.kind)?;
                PlanFailure::from_kind(&kind, text(details.reason))
                    .ok_or_else(|| unknown("kind", &kind, &PlanFailure::KINDS))?
            },
        },
        other => {
            let names = Event::NAMES.join("`, `");
            let why = format!("unknown event `{other}`: expected one of `{names}`");
            return Err(Undecodable::new("", why));
        }
    })
}

fn text(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned)
}

/// `step` returns the step that the change concerns, or an error if there is none.
fn change(
    step: impl FnOnce() -> Result<StepId, Undecodable>,
    details: Owned,
) -> Result<Event, Undecodable> {
    let rationale = details.rationale.clone();
    let change = match required("action", details.action.as_deref())? {
        "created" => Change::Created(Box::new(created(details)?)),
        "add_steps" => Change::StepsAdded {
            after: required("insertAfterOrder", details.insert_after_order)?,
            steps: each(required("steps", details.steps)?),
        },
        "remove_step" => Change::StepRemoved { step: step()? },
        "reorder_steps" => Change::StepsReordered {
            steps: values(required("stepIds", details.step_ids)?),
        },
        "update_step_instructions" => Change::InstructionsUpdated {
            step: step()?,
            instructions: required("instructions", details.instructions)?,
        },
        "rename_step" => Change::StepRenamed {
            step: step()?,
            title: required("title", details.title)?,
            instructions: required("instructions", details.instructions)?,
        },
        "update_plan" => Change::PlanUpdated {
            routing: routing(details.project_key, details.labels, details.priority),
        },
        "set_budget" => Change::BudgetSet {
            budget: details.budget.map(Into::into),
            used: required("used", details.used)?.into(),
        },
        "update_step" => Change::StepUpdated {
            step: Arc::new(required("step", details.step)?.into()),
        },
        "fail_step" => Change::StepFailed { step: step()? },
        "skip_step" => Change::StepSkipped { step: step()? },
        "requeue_step" => Change::StepRequeued { step: step()? },
        "redo_step" => Change::StepRedone {
            step: step()?,
            reason: required("reason", text(details.reason))?,
            successors: each(required("successors", details.successors)?),
        },
        "add_branch" => Change::BranchAdded {
            branch: required("branch", details.branch)?.branch("branch")?,
        },
        other => return Err(unknown("action", other, &CHANGES)),
    };
    Ok(Event::PlanModified { change, rationale })
}

fn created(details: Owned) -> Result<Created, Undecodable> {
    let branches = required("branchingConditions", details.branching_conditions)?;
    let branches = (branches.into_iter().enumerate())
        .map(|(index, json)| json.branch(&format!("branchingConditions[{index}]")));
    Ok(Created {
        plan: required("planId", details.plan_id)?.0,
        origin: match details.origin {
            None => Origin::default(),
            origin => word("origin", origin, &Origin::ALL, Origin::as_str)?,
        },
        brief: Brief {
            name: required("name", details.name)?,
            research_question: required("researchQuestion", details.research_question)?,
            design_rationale: details.plan_design_rationale,
            output_formatting_notes: details.output_formatting_notes,
            forked_from: details.forked_from.map(Into::into),
        },
        steps: each(required("steps", details.steps)?),
        branches: branches.collect::<Result<_, _>>()?,
        stall_threshold: details.stall_threshold_ms.map(Into::into),
        on_stall: word("onStall", details.on_stall, &OnStall::ALL, OnStall::as_str)?,
        on_dependency_failure: details
            .on_dependency_failure
            .map_or(OnDependencyFailure::default(), |policy| policy.0),
        session: details.session_id.map(SessionId::new),
        routing: routing(details.project_key, details.labels, details.priority),
        budget: details.budget.map(Into::into),
    })
}

fn routing(
    project_key: Option<String>,
    labels: Option<Vec<String>>,
    priority: Option<Priority>,
) -> Routing {
    Routing {
        project_key,
        labels: labels.unwrap_or_default(),
        priority: Priority::or_default(priority),
    }
}

fn completed(step: StepId, mut details: Owned) -> Result<Event, Undecodable> {
    let from = details.from.take();
    Ok(Event::StepCompleted {
        step,
        from: word("from", from, &StepStatus::ALL, StepStatus::as_str)?,
        verdicts: each(required("branches", details.branches.take())?),
        session: details.session_id.take().map(SessionId::new),
        result: result(details)?,
    })
}

fn result(details: Owned) -> Result<Arc<StepResult>, Undecodable> {
    Ok(Arc::new(StepResult {
        summary: required("resultSummary", details.result_summary)?,
        data: details.result,
        confidence: details.confidence,
        report: details.step_execution_report,
        formatting_notes: details.output_formatting_notes,
        evidence: each(details.evidence.unwrap_or_default()),
    }))
}

fn progressed(step: StepId, details: Owned) -> Result<Event, Undecodable> {
    let session = details.session_id.map(SessionId::new);
    if details.action.as_deref() == Some("feedback_delivered") {
        return Ok(Event::FeedbackDelivered { step, session });
    }
    Ok(Event::StepProgressed {
        step,
        source: word(
            "action",
            details.action,
            &ProgressSource::ALL,
            ProgressSource::as_str,
        )?,
        note: details.note,
        percent: details.percent,
        session,
    })
}

fn taken(step: StepId, details: Owned) -> Result<Event, Undecodable> {
    let action = required("action", details.action)?;
    let effect = match (details.no_effect, action.as_str()) {
        (Some(reason), _) => Effect::Nothing { reason: reason.0 },
        (None, "continue") => Effect::Continued,
        (None, "skip_to") => Effect::Skipped {
            target: required("targetStepId", details.target_step_id)?.0,
            steps: values(required("skippedStepIds", details.skipped_step_ids)?),
        },
        (None, "add_steps") => Effect::Added {
            steps: each(required("steps", details.steps)?),
        },
        (None, "fail") => Effect::FailedPlan {
            reason: text(details.reason),
        },
        (None, other) => return Err(unknown("action", other, &ACTIONS)),
    };
    if effect.action() != action {
        return Err(unknown("action", &action, &[effect.action()]));
    }
    Ok(Event::BranchTaken {
        branch: required("branchId", details.branch_id)?.0,
        step,
        effect,
    })
}

fn reviewed(step: StepId, mut details: Owned) -> Result<Event, Undecodable> {
    let id = required("reviewId", details.review_id.take())?.0;
    let action = if details.action.as_deref() == Some("review_requested") {
        let (summary, questions) = (details.summary.take(), details.questions.take());
        let session = details.session_id.take().map(SessionId::new);
        let scope = details.scope.take().map(|scope| scope.0);
        let by = details.review_by.take().map(|by| by.0);
        let options = review::options(
            details.fields.take(),
            details.due_at.take(),
            details.on_deadline.take(),
            details.assignee.take(),
        );
        let result = details.result_summary.is_some().then(|| result(details));
        let result = result.transpose()?;
        let of_result = result.as_ref().map(|result| result.summary.clone());
        ReviewAction::Requested {
            summary: required("summary", of_result.or(summary))?,
            questions: required("questions", questions)?,
            session,
            scope: scope.unwrap_or_default(),
            by,
            result,
            options,
        }
    } else {
        ReviewAction::Decided {
            decision: word("action", details.action, &Decision::ALL, Decision::as_str)?,
            feedback: details.feedback,
            answers: details.answers,
            by: review::parse_decided_by(details.by, details.recipient)?,
        }
    };
    Ok(Event::UserReviewed {
        step,
        review: id,
        action,
    })
}

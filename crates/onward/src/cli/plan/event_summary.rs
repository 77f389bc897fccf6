//! One-line summaries of audit events. `--json` prints the complete event.

use onward_core::branch::{BranchVerdict, Effect};
use onward_core::event::{Change, ProgressSource, RequeueReason, ResumedBy, ReviewAction};
use onward_core::step::SkipCause;
use onward_core::{Event, Timestamp};

use crate::output::format::{count, duration};
use crate::output::status::plan_label;

/// Summarizes an event that happened at a time.
pub(super) fn summarize(event: &Event, at: Timestamp) -> String {
    match event {
        Event::PlanModified { change, rationale } => {
            with_reason(changed(change), rationale.as_deref())
        }
        Event::StepStarted { claim, .. } => format!("attempt {}", claim.attempt),
        Event::StepCompleted {
            result, verdicts, ..
        } => completed(&result.summary, result.confidence, verdicts),
        Event::StepFailed { reason, .. } => reason.to_string(),
        Event::StepSkipped { by, .. } => match by {
            SkipCause::Branch(_) => "by a branch".to_owned(),
            SkipCause::Review(_) => "by a reviewer".to_owned(),
        },
        Event::StepRequeued {
            attempt, reason, ..
        } => {
            let why = match reason {
                RequeueReason::Manual => "released by a user",
                RequeueReason::Stalled => "stuck",
                RequeueReason::TakenOver => "stuck, taken over by another agent",
            };
            format!("{why}; next is attempt {attempt}")
        }
        Event::StepProgressed {
            source,
            note,
            percent,
            ..
        } => progressed(*source, note.as_deref(), *percent),
        Event::FeedbackDelivered { .. } => "changed instructions delivered to the agent".to_owned(),
        Event::BranchTaken { effect, .. } => branch_taken(effect),
        Event::UserReviewed { action, .. } => match action {
            ReviewAction::Requested { summary, .. } => format!("requested: {summary}"),
            ReviewAction::Decided { decision, feedback } => {
                with_reason(decision.to_string(), feedback.as_deref())
            }
        },
        Event::SessionResumed { session } => format!("session {session}"),
        Event::SkillStarted { skill, .. } => format!("{skill} started"),
        Event::SkillCompleted { skill, error, .. } => match error {
            Some(error) => format!("{skill} failed: {error}"),
            None => format!("{skill} completed"),
        },
        Event::PlanStalled { stalls } => {
            let steps = u64::try_from(stalls.len()).unwrap_or(u64::MAX);
            let stuck = count(steps, "step stuck", "steps stuck");
            let longest = stalls.iter().map(|stall| at.since(stall.since)).max();
            longest.map_or(stuck.clone(), |longest| {
                format!("{stuck}, no update for {}", duration(longest))
            })
        }
        Event::PlanResumed { by } => match by {
            ResumedBy::NextStep => "an agent requested the next step",
            ResumedBy::LateResult => "late result submitted",
            ResumedBy::Progress => "progress reported",
            ResumedBy::User => "by a user",
        }
        .to_owned(),
        Event::PlanCompleted => "all steps ended".to_owned(),
        Event::PlanFailed { reason, .. } => reason.to_string(),
        Event::PlanStatusChanged { from, to } => {
            format!("from {} to {}", plan_label(*from), plan_label(*to))
        }
        Event::LateResultKept {
            artifact,
            rejection: refused,
            ..
        } => format!("rejected ({refused}), stored as artifact {artifact}"),
    }
}

fn with_reason(text: String, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{text}: {reason}"),
        None => text,
    }
}

fn changed(change: &Change) -> String {
    let number = |all: usize| u64::try_from(all).unwrap_or(u64::MAX);
    match change {
        Change::Created(created) => {
            let steps = count(number(created.steps.len()), "step", "steps");
            match created.branches.len() {
                0 => format!("created: {steps}"),
                branches => {
                    let branches = count(number(branches), "branch", "branches");
                    format!("created: {steps}, {branches}")
                }
            }
        }
        Change::StepsAdded { after, steps } => {
            let steps = count(number(steps.len()), "step", "steps");
            format!("{steps} added after step {after}")
        }
        Change::StepRemoved { .. } => "step removed".to_owned(),
        Change::StepsReordered { .. } => "steps reordered".to_owned(),
        Change::InstructionsUpdated { .. } => "instructions updated".to_owned(),
        Change::StepFailed { .. } => "step failed by a user".to_owned(),
        Change::StepRequeued { .. } => "step released by a user".to_owned(),
        Change::BranchAdded { branch } => {
            format!(
                "branch added: {} if {}",
                branch.action,
                branch.condition.source()
            )
        }
    }
}

fn completed(summary: &str, confidence: Option<f64>, verdicts: &[BranchVerdict]) -> String {
    let mut text = summary.to_owned();
    if let Some(confidence) = confidence {
        text = format!("confidence {confidence}; {text}");
    }
    for verdict in verdicts {
        if let Some(error) = &verdict.error {
            text = format!(
                "{text}; condition `{}` failed and counts as false: {error}",
                verdict.condition
            );
        }
    }
    text
}

fn progressed(source: ProgressSource, note: Option<&str>, percent: Option<f64>) -> String {
    let text = match source {
        ProgressSource::Reported => "progress",
        ProgressSource::Written => "data stored",
        ProgressSource::Seen => "session active",
    };
    let text = match percent {
        Some(percent) => format!("{text}, {percent}%"),
        None => text.to_owned(),
    };
    with_reason(text, note)
}

fn branch_taken(effect: &Effect) -> String {
    let number = |all: usize| u64::try_from(all).unwrap_or(u64::MAX);
    match effect {
        Effect::Continued => "branch: continue".to_owned(),
        Effect::Skipped { steps, .. } => {
            let steps = count(number(steps.len()), "step", "steps");
            format!("branch: {steps} skipped")
        }
        Effect::Added { steps } => {
            format!(
                "branch: {} added",
                count(number(steps.len()), "step", "steps")
            )
        }
        Effect::FailedPlan { reason } => {
            with_reason("branch: plan failed".to_owned(), reason.as_deref())
        }
        Effect::Nothing { reason } => format!("branch: no effect, {reason}"),
    }
}

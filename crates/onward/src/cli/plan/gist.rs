//! An event of the trail in a few words, for people. What exactly happened stands in the JSON.

use onward_core::branch::{Effect, Verdict};
use onward_core::event::{Change, RequeueReason, ResumedBy, ReviewAction, Sign};
use onward_core::step::SkipCause;
use onward_core::{Event, Timestamp};

use crate::output::words::{count, span};

/// What happened, and when.
pub(super) fn of(event: &Event, at: Timestamp) -> String {
    match event {
        Event::PlanModified { change, rationale } => with(changed(change), rationale.as_deref()),
        Event::StepStarted { claim, .. } => format!("attempt {}", claim.attempt),
        Event::StepCompleted {
            result, verdicts, ..
        } => completed(&result.summary, result.confidence, verdicts),
        Event::StepFailed { reason, .. } => reason.to_string(),
        Event::StepSkipped { by, .. } => match by {
            SkipCause::Branch(_) => "passed over by a branch".to_owned(),
            SkipCause::Review(_) => "passed over by a person".to_owned(),
        },
        Event::StepRequeued {
            attempt, reason, ..
        } => {
            let why = match reason {
                RequeueReason::ByHand => "by hand",
                RequeueReason::Stalled => "it stalled",
                RequeueReason::TakenOver => "it stalled, and another agent takes it",
            };
            format!("handed back: {why}; attempt {attempt} comes next")
        }
        Event::StepProgressed {
            sign,
            note,
            percent,
            ..
        } => progressed(*sign, note.as_deref(), *percent),
        Event::FeedbackDelivered { .. } => "the agent was told of the feedback".to_owned(),
        Event::BranchTaken { effect, .. } => taken(effect),
        Event::UserReviewed { action, .. } => match action {
            ReviewAction::Requested { summary, .. } => format!("asks: {summary}"),
            ReviewAction::Decided { decision, feedback } => {
                with(decision.to_string(), feedback.as_deref())
            }
        },
        Event::SessionResumed { session } => format!("{session} takes it up"),
        Event::SkillStarted { skill, .. } => format!("{skill} begins"),
        Event::SkillCompleted { skill, error, .. } => match error {
            Some(error) => format!("{skill} failed: {error}"),
            None => format!("{skill} ended"),
        },
        Event::PlanStalled { stalls } => {
            let steps = u64::try_from(stalls.len()).unwrap_or(u64::MAX);
            let silent = count(steps, "step is silent", "steps are silent");
            let longest = stalls.iter().map(|stall| at.since(stall.since)).max();
            longest.map_or(silent.clone(), |longest| {
                format!("{silent}, for {}", span(longest))
            })
        }
        Event::PlanResumed { by } => match by {
            ResumedBy::NextStep => "an agent asked for the next step",
            ResumedBy::LateResult => "a result came late",
            ResumedBy::Progress => "a step showed that it is alive",
            ResumedBy::Person => "by a person",
        }
        .to_owned(),
        Event::PlanCompleted => "every step is over".to_owned(),
        Event::PlanFailed { reason } => reason.to_string(),
        Event::LateResultKept {
            artifact, refused, ..
        } => format!("refused as {refused}, kept as artifact {artifact}"),
    }
}

fn with(what: String, why: Option<&str>) -> String {
    match why {
        Some(why) => format!("{what}: {why}"),
        None => what,
    }
}

fn changed(change: &Change) -> String {
    let number = |all: usize| u64::try_from(all).unwrap_or(u64::MAX);
    match change {
        Change::Created(created) => {
            let steps = count(number(created.steps.len()), "step", "steps");
            match created.branches.len() {
                0 => format!("made, with {steps}"),
                branches => {
                    let branches = count(number(branches), "branch", "branches");
                    format!("made, with {steps} and {branches}")
                }
            }
        }
        Change::StepsAdded { after, steps } => {
            let steps = count(number(steps.len()), "step", "steps");
            format!("{steps} added after step {after}")
        }
        Change::StepRemoved { .. } => "step taken out".to_owned(),
        Change::StepsReordered { .. } => "steps put in another order".to_owned(),
        Change::InstructionsUpdated { .. } => "instructions replaced".to_owned(),
        Change::StepFailed { .. } => "step failed by hand".to_owned(),
        Change::StepRequeued { .. } => "step handed back by hand".to_owned(),
        Change::BranchAdded { branch } => {
            format!(
                "branch added: {} if {}",
                branch.action,
                branch.condition.source()
            )
        }
    }
}

fn completed(summary: &str, confidence: Option<f64>, verdicts: &[Verdict]) -> String {
    let mut text = summary.to_owned();
    if let Some(confidence) = confidence {
        text = format!("confidence {confidence}; {text}");
    }
    for verdict in verdicts {
        if let Some(error) = &verdict.error {
            text = format!("{text}; `{}` counted as false: {error}", verdict.condition);
        }
    }
    text
}

fn progressed(sign: Sign, note: Option<&str>, percent: Option<f64>) -> String {
    let sign = match sign {
        Sign::Reported => "sign of life",
        Sign::Written => "something was written about it",
        Sign::Seen => "its session was seen",
    };
    let sign = match percent {
        Some(percent) => format!("{sign}, {percent}%"),
        None => sign.to_owned(),
    };
    with(sign, note)
}

fn taken(effect: &Effect) -> String {
    let number = |all: usize| u64::try_from(all).unwrap_or(u64::MAX);
    match effect {
        Effect::Continued => "branch: go on".to_owned(),
        Effect::Skipped { steps, .. } => {
            let steps = count(number(steps.len()), "step", "steps");
            format!("branch: {steps} passed over")
        }
        Effect::Added { steps } => {
            format!(
                "branch: {} added",
                count(number(steps.len()), "step", "steps")
            )
        }
        Effect::FailedPlan { reason } => {
            with("branch: the plan fails".to_owned(), reason.as_deref())
        }
        Effect::Nothing { why } => format!("branch: nothing done, {why}"),
    }
}

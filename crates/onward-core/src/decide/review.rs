//! Decides a review. `approve` completes the step with the result under review, or with the review's
//! summary, and evaluates its branches; `reject` fails the step and the plan; `modify` returns the step to its agent with the
//! feedback; `skip` skips the step. A review of the plan's start is approved or rejected, and approval
//! releases the step without a result. Repeating a decision returns no events, and the caller repeats
//! its first response. A decision link works once: repeating its decision is rejected.
//!
//! The review of a gate is decided by a person or, if the gate allows it, by an agent in another
//! session than the one that did the work. An agent that may not decide reviews may decide only
//! those of the second kind.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::check::Check;
use super::claim;
use super::draft::Draft;
use super::facts::{StepFacts, With};
use super::finish::{self, Completion, Outcome};
use crate::command::{DecideReview, Reviewer};
use crate::event::{
    Decided, DecidedBy, Decision, Event, RequeueReason, ResumedBy, ReviewAction, answers_line,
};
use crate::json::Json;
use crate::plan::{PlanFailure, PlanStatus};
use crate::policy::{MAX_INSTRUCTIONS, MAX_NAME};
use crate::refusal::Refusal;
use crate::role::{Forbidden, Permission, Role};
use crate::step::{
    FailReason, IllegalStepTransition, Review, ReviewBy, ReviewScope, SkipCause, Step, StepCause,
    StepResult, StepStatus,
};
use crate::time::Timestamp;

/// The facts to load with the step.
pub const FACTS: With = With::Decision;

/// Decides the command.
pub fn decide(
    facts: &StepFacts,
    command: &DecideReview,
    now: Timestamp,
) -> Result<Outcome, Refusal> {
    let StepFacts {
        head: plan,
        step,
        branches,
        ..
    } = facts;
    let mut check = Check::default();
    check.remark("feedback", command.feedback.as_deref());
    if let Reviewer::Link { recipient } = &command.reviewer {
        check.text("recipient", recipient, MAX_NAME);
    }
    check.finish()?;
    claim::check_claim(step, command.token.as_ref())?;
    let feedback = feedback(command);
    let repeated = |decided: &Decided| {
        !matches!(command.reviewer, Reviewer::Link { .. })
            && decided.decision == command.decision
            && decided.feedback == feedback
            && is_repeated(decided.answers.as_ref(), &command.answers)
            && command.review.is_none_or(|review| review == decided.review)
    };
    if facts.decided.as_ref().is_some_and(repeated) {
        return Ok(Outcome::Events(Vec::new()));
    }
    check_reviewer(step, command)?;
    if plan.status().is_terminal() {
        return Err(Refusal::PlanIsTerminal(plan.status()));
    }
    let review = open_review(step, command)?;
    check_decision(review, command.decision)?;
    check_deadline(review, command, now)?;
    let mut check = Check::default();
    let is_complete = command.decision == Decision::Approve;
    let answers = check.answers(&review.options.fields, &command.answers, is_complete);
    check.finish()?;
    if command.decision == Decision::Modify {
        let text = feedback.as_deref().ok_or(Refusal::FeedbackRequired)?;
        let actual = step.spec.instructions.chars().count() + text.chars().count();
        if actual > MAX_INSTRUCTIONS {
            let what = "characters of instructions and feedback";
            return Err(Refusal::LimitExceeded {
                what,
                limit: MAX_INSTRUCTIONS,
                actual,
            });
        }
    }
    let mut draft = Draft::new(plan, now);
    // Another step of the plan stalled during a review of scope `step`.
    if plan.status() == PlanStatus::Stalled {
        draft.push(Event::PlanResumed {
            by: ResumedBy::Review,
        })?;
    }
    draft.push(Event::UserReviewed {
        step: step.id(),
        review: review.id,
        action: ReviewAction::Decided {
            decision: command.decision,
            feedback: feedback.clone(),
            answers: (!answers.is_empty()).then(|| Value::Object(answers.clone()).into()),
            by: decided_by(&command.reviewer),
        },
    })?;
    let from = StepStatus::AwaitingInput;
    match command.decision {
        Decision::Approve if review.scope == ReviewScope::Start => {
            draft.push(Event::StepRequeued {
                step: step.id(),
                attempt: step.attempt(),
                reason: RequeueReason::Approved,
            })?;
            Ok(Outcome::Events(draft.into_events()))
        }
        Decision::Approve => {
            let result = match &review.result {
                Some(result) => Arc::clone(result),
                None => Arc::new(StepResult::from_review(review.summary.clone(), &answers)),
            };
            let completion = Completion {
                step,
                from,
                attempt: step.attempt(),
                result,
                session: None,
            };
            finish::complete(draft, completion, branches)
        }
        Decision::Reject => {
            let reason = FailReason::Rejected(feedback.clone());
            draft.push(Event::StepFailed {
                step: step.id(),
                from,
                reason,
            })?;
            draft.fail_plan(PlanFailure::Rejected(feedback))?;
            Ok(Outcome::Events(draft.into_events()))
        }
        Decision::Modify => Ok(Outcome::Events(draft.into_events())),
        Decision::Skip => {
            let by = SkipCause::Review(review.id);
            draft.push(Event::StepSkipped {
                step: step.id(),
                from,
                by,
            })?;
            Ok(Outcome::Events(draft.finish()?))
        }
    }
}

fn decided_by(reviewer: &Reviewer) -> DecidedBy {
    match reviewer {
        Reviewer::Person | Reviewer::Agent { .. } => DecidedBy::Reviewer,
        Reviewer::Policy => DecidedBy::Policy,
        Reviewer::Link { recipient } => DecidedBy::Link {
            recipient: recipient.clone(),
        },
    }
}

/// The reviewer's feedback. With `modify`, the agent gets the answers with it.
fn feedback(command: &DecideReview) -> Option<String> {
    let text = command.feedback.clone();
    let text = text.filter(|text| !text.trim().is_empty());
    if command.decision != Decision::Modify || command.answers.is_empty() {
        return text;
    }
    let answers = Value::Object(command.answers.clone());
    let parts = text.into_iter().chain([answers_line(&answers)]);
    Some(parts.collect::<Vec<_>>().join("\n\n"))
}

/// Whether these answers were given before. Defaults were added to the stored ones.
fn is_repeated(stored: Option<&Json>, given: &Map<String, Value>) -> bool {
    let stored = stored.and_then(Json::parse).unwrap_or_default();
    given
        .iter()
        .all(|(name, answer)| stored.get(name) == Some(answer))
}

/// Rejects a decision that a review of this scope does not have.
fn check_decision(review: &Review, decision: Decision) -> Result<(), Refusal> {
    let decisions = Decision::on(review.scope);
    if decisions.contains(&decision) {
        return Ok(());
    }
    let names: Vec<String> = decisions.iter().map(|name| format!("`{name}`")).collect();
    let mut check = Check::default();
    check.issue(
        "decision",
        format!(
            "must be {}: the start of the plan is under review",
            names.join(" or ")
        ),
    );
    check.finish()
}

/// The policy decides only at the deadline, and only as the review states.
fn check_deadline(review: &Review, command: &DecideReview, now: Timestamp) -> Result<(), Refusal> {
    if command.reviewer != Reviewer::Policy {
        return Ok(());
    }
    let due = review
        .options
        .deadline
        .filter(|deadline| deadline.at <= now);
    let decision = due.and_then(|deadline| Decision::at_deadline(deadline.action));
    if decision == Some(command.decision) {
        Ok(())
    } else {
        Err(Refusal::ReviewNotPending(review.id))
    }
}

/// Whether the reviewer may decide.
fn check_reviewer(step: &Step, command: &DecideReview) -> Result<(), Refusal> {
    let Reviewer::Agent { permitted } = command.reviewer else {
        return Ok(());
    };
    match step
        .open_review()
        .and_then(|review| Some((review, review.by?)))
    {
        None if permitted => Ok(()),
        None => Err(Refusal::Forbidden(Forbidden {
            role: Role::Agent,
            permission: Permission::DecideReview,
        })),
        Some((review, ReviewBy::OtherSession)) if is_other_session(step, review, command) => Ok(()),
        Some((_, by)) => Err(Refusal::NotReviewer(by)),
    }
}

/// Whether an agent decides in another session than those that held the claim and submitted the
/// result. If neither is known, the agent cannot be distinguished from them.
fn is_other_session(step: &Step, review: &Review, command: &DecideReview) -> bool {
    let holder = step.claim().and_then(|claim| claim.session.as_ref());
    let mut workers = holder.into_iter().chain(&review.session).peekable();
    let is_known = workers.peek().is_some();
    let Some(session) = command.session.as_ref().filter(|_| command.token.is_none()) else {
        return false;
    };
    is_known && workers.all(|worker| worker != session)
}

/// The pending review, if it is the one that the command names.
fn open_review<'s>(step: &'s Step, command: &DecideReview) -> Result<&'s Review, Refusal> {
    let cause = match command.decision {
        Decision::Approve => StepCause::Approve,
        Decision::Reject => StepCause::Reject,
        Decision::Modify => StepCause::Revise,
        Decision::Skip => StepCause::ReviewSkip,
    };
    let illegal = IllegalStepTransition {
        from: step.status(),
        cause,
    };
    let review = step.open_review().ok_or(illegal)?;
    match command.review {
        Some(named) if named != review.id => Err(Refusal::ReviewNotPending(named)),
        Some(_) | None => Ok(review),
    }
}

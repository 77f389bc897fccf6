//! Requests a review. The step waits for the decision and cannot stall meanwhile; with the scope
//! `plan`, the plan waits as well. Repeating the request while the review is open returns no events.

use super::check::Check;
use super::claim;
use super::draft::Draft;
use super::facts::StepFacts;
use crate::command::RequestReview;
use crate::event::{Event, ReviewAction};
use crate::policy::{MAX_NAME, MAX_QUESTIONS, MAX_REMARK, MAX_SUMMARY, MAX_THRESHOLD};
use crate::refusal::Refusal;
use crate::step::{OnDeadline, ReviewBy, ReviewOptions, ReviewScope, Step, StepCause};
use crate::time::Timestamp;

/// Decides the command.
pub fn decide(
    facts: &StepFacts,
    command: &RequestReview,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let StepFacts {
        head: plan, step, ..
    } = facts;
    let mut check = Check::default();
    check.text("summary", &command.summary, MAX_SUMMARY);
    if command.questions.len() > MAX_QUESTIONS {
        let message = format!(
            "has {} questions, at most {MAX_QUESTIONS} are allowed",
            command.questions.len()
        );
        check.issue("questions", message);
    }
    check.fields(&command.options.fields);
    check_options(&mut check, step, &command.options, now);
    if command.scope == ReviewScope::Start {
        check.issue("scope", "must be `plan` or `step`");
    }
    for (index, question) in command.questions.iter().enumerate() {
        check.text(&format!("questions[{index}]"), question, MAX_REMARK);
    }
    check.finish()?;
    let (token, session) = (command.token.as_ref(), command.session.as_ref());
    claim::check_claim(step, token)?;
    if plan.status().is_terminal() {
        return Err(Refusal::PlanIsTerminal(plan.status()));
    }
    if is_repetition(step, command) {
        return Ok(Vec::new());
    }
    let mut draft = Draft::new(plan, now);
    if !claim::reclaim(&mut draft, step, token, session)? {
        step.status().after(StepCause::RequestReview)?;
    }
    draft.push(Event::UserReviewed {
        step: step.id(),
        review: command.review,
        action: ReviewAction::Requested {
            summary: command.summary.clone(),
            questions: command.questions.clone(),
            session: claim::calling_session(step, token, session),
            scope: command.scope,
            // Approval completes the step without its gates, which only a person may waive.
            by: step.spec.gates.is_some().then_some(ReviewBy::Person),
            result: None,
            options: command.options.clone(),
        },
    })?;
    draft.finish()
}

/// Checks the deadline and the assignee.
fn check_options(check: &mut Check, step: &Step, options: &ReviewOptions, now: Timestamp) {
    if let Some(assignee) = &options.assignee {
        check.text("assignee", assignee, MAX_NAME);
    }
    let Some(deadline) = &options.deadline else {
        return;
    };
    let latest = now.checked_add(MAX_THRESHOLD).unwrap_or(Timestamp::MAX);
    if deadline.at <= now || deadline.at > latest {
        check.issue("dueAt", "must be in the future, at most 365 days from now");
    }
    if deadline.action == OnDeadline::Approve {
        if options.fields.iter().any(|field| field.default.is_none()) {
            let message = "must not be `approve`: a field has no default";
            check.issue("onDeadline", message);
        }
        if step.spec.gates.is_some() {
            let message = "must not be `approve`: only a person may waive the gates of the step";
            check.issue("onDeadline", message);
        }
    }
}

/// Whether the same review is already open.
fn is_repetition(step: &Step, command: &RequestReview) -> bool {
    step.open_review().is_some_and(|review| {
        review.summary == command.summary
            && review.questions == command.questions
            && review.scope == command.scope
            && is_same(&review.options, &command.options)
            && review.result.is_none()
    })
}

/// Whether the optional parts are those of the same request. The deadline may be relative to the time
/// of the request, so that a retry has a later one.
fn is_same(open: &ReviewOptions, requested: &ReviewOptions) -> bool {
    let action = |options: &ReviewOptions| options.deadline.map(|deadline| deadline.action);
    open.fields == requested.fields
        && open.assignee == requested.assignee
        && action(open) == action(requested)
}

//! Ask a person. The step waits, and with it the plan; no clock runs while it does.

use super::check::Check;
use super::draft::Draft;
use super::take_up;
use crate::command::RequestReview;
use crate::event::{Event, ReviewAction};
use crate::plan::PlanHead;
use crate::policy::{MAX_QUESTIONS, MAX_REMARK, MAX_SUMMARY};
use crate::refusal::Refusal;
use crate::step::{Step, StepCause};
use crate::time::Timestamp;

/// What must be known.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a PlanHead,
    /// The step.
    pub step: &'a Step,
}

/// Decides whether the person is asked.
pub fn decide(
    facts: &Facts<'_>,
    command: &RequestReview,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let Facts { plan, step } = *facts;
    let mut check = Check::default();
    check.text("summary", &command.summary, MAX_SUMMARY);
    if command.questions.len() > MAX_QUESTIONS {
        let message = format!(
            "has {} questions, at most {MAX_QUESTIONS}",
            command.questions.len()
        );
        check.issue("questions", message);
    }
    for (place, question) in command.questions.iter().enumerate() {
        check.text(&format!("questions[{place}]"), question, MAX_REMARK);
    }
    check.done()?;
    let (token, session) = (command.token.as_ref(), command.session.as_ref());
    take_up::voice(step, token)?;
    if plan.status().is_terminal() {
        return Err(Refusal::PlanIsTerminal(plan.status()));
    }
    let mut draft = Draft::of(plan, now);
    if !take_up::take_up_again(&mut draft, step, token, session)? {
        step.status().after(StepCause::AskReview)?;
    }
    draft.push(Event::UserReviewed {
        step: step.id(),
        review: command.review,
        action: ReviewAction::Requested {
            summary: command.summary.clone(),
            questions: command.questions.clone(),
            session: command.session.clone(),
        },
    })?;
    Ok(draft.done())
}

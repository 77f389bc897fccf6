//! Review requests and decisions.
//!
//! A request and the decision `modify` change the status of the step, so they contain `from` and
//! `to`. After the other decisions, a separate event of the step contains them.

use onward_core::StepStatus;
use onward_core::event::{Decision, ReviewAction};

use super::Undecodable;
use super::read::Fields;
use super::write::Details;

const REQUESTED: &str = "review_requested";

/// Request or decision; its `action` is already in the details.
pub(super) fn action(details: Details, action: &ReviewAction) -> Details {
    match action {
        ReviewAction::Requested {
            summary,
            questions,
            session,
        } => details
            .moved(StepStatus::InProgress, StepStatus::AwaitingInput)
            .with("summary", summary.as_str())
            .with_texts("questions", questions)
            .with_session(session.as_ref()),
        ReviewAction::Decided { decision, feedback } => match decision {
            Decision::Modify => details.moved(StepStatus::AwaitingInput, StepStatus::InProgress),
            Decision::Approve | Decision::Reject | Decision::Skip => details,
        }
        .with_some("feedback", feedback.as_deref()),
    }
}

pub(super) fn read_action(fields: &Fields<'_>) -> Result<ReviewAction, Undecodable> {
    let word = fields.get("action")?;
    if word == REQUESTED {
        return Ok(ReviewAction::Requested {
            summary: fields.get("summary")?,
            questions: fields.list("questions")?,
            session: fields.get_some("sessionId")?,
        });
    }
    let decision = Decision::ALL
        .into_iter()
        .find(|decision| decision.as_str() == word)
        .ok_or_else(|| {
            let decisions = Decision::ALL.map(Decision::as_str);
            fields.none_of("action", word, &[&[REQUESTED], &decisions[..]].concat())
        })?;
    Ok(ReviewAction::Decided {
        decision,
        feedback: fields.get_some("feedback")?,
    })
}

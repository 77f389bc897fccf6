//! Requests the approval of a plan's start: a review of scope `start` that a person decides. The first
//! open step of the plan carries it, so that it is listed, sent and decided like any other review.

use std::fmt::Write as _;

use super::draft::Draft;
use crate::event::{Created, Event, ReviewAction};
use crate::id::ReviewId;
use crate::refusal::Refusal;
use crate::step::{NewStep, ReviewBy, ReviewOptions, ReviewScope};

/// Steps that the summary lists.
const MAX_LISTED: usize = 40;
/// Characters of a step without a title in the summary.
const MAX_LINE: usize = 120;

/// Requests the approval of a new plan. `open` contains its steps without a result.
pub(super) fn request<'s>(
    draft: &mut Draft,
    created: &Created,
    open: impl Iterator<Item = &'s NewStep> + Clone,
    review: ReviewId,
) -> Result<(), Refusal> {
    let Some(first) = open.clone().next() else {
        return Ok(());
    };
    draft.push(Event::UserReviewed {
        step: first.id,
        review,
        action: ReviewAction::Requested {
            summary: summary(created, open),
            questions: Vec::new(),
            session: created.session.clone(),
            scope: ReviewScope::Start,
            by: Some(ReviewBy::Person),
            result: None,
            options: ReviewOptions::default(),
        },
    })
}

/// The goal and the open steps, as Markdown.
fn summary<'s>(created: &Created, open: impl Iterator<Item = &'s NewStep> + Clone) -> String {
    let mut text = created.brief.research_question.clone();
    text.push_str("\n\nSteps:\n\n");
    let total = open.clone().count();
    for (number, step) in (1..).zip(open).take(MAX_LISTED) {
        let _ = writeln!(text, "{number}. {}", line(step));
    }
    if total > MAX_LISTED {
        let _ = writeln!(text, "\n… and {} more", total - MAX_LISTED);
    }
    text
}

fn line(step: &NewStep) -> String {
    if let Some(title) = &step.title {
        return title.clone();
    }
    let first = step.instructions.trim().lines().next().unwrap_or_default();
    if first.chars().count() <= MAX_LINE {
        return first.to_owned();
    }
    first.chars().take(MAX_LINE).chain(['…']).collect()
}

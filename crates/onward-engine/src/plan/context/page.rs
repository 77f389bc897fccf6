//! A step's texts in pages. A response that truncates a text names the call for the next page.

use onward_core::{PlanId, StepId};
use onward_store::{Contexts, Tx};

use super::budget::fitting;
use crate::error::Error;

/// Cost of the response apart from the text.
const BASE_COST: usize = 400;

/// A text of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The instructions.
    Instructions,
    /// The result summary.
    ResultSummary,
    /// The structured result, as JSON.
    Result,
    /// The execution report, as JSON.
    Report,
    /// The formatting notes for the plan's output.
    FormattingNotes,
    /// The open review request, as JSON.
    Review,
    /// The evidence, as JSON.
    Evidence,
}

/// A page of a text. Positions are in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPage {
    /// The step.
    pub step: StepId,
    /// Its plan.
    pub plan: PlanId,
    /// The characters from the requested position on.
    pub content: String,
    /// Length of the whole text.
    pub total: usize,
    /// Position of the next page, if there is one.
    pub next: Option<usize>,
}

pub(super) async fn read(
    tx: &mut Tx,
    plan: PlanId,
    step: StepId,
    part: Part,
    offset: usize,
    max_chars: usize,
) -> Result<TextPage, Error> {
    let texts = Contexts(tx).step_texts(step).await?;
    let Some(texts) = texts.filter(|texts| texts.plan == plan) else {
        return Err(Error::StepNotFound {
            step: step.to_string(),
            kept: None,
        });
    };
    let text = match part {
        Part::Instructions => Some(texts.instructions),
        Part::ResultSummary => texts.result_summary,
        Part::Result => texts.result,
        Part::Report => texts.report,
        Part::FormattingNotes => texts.notes,
        Part::Review => texts.review,
        Part::Evidence => texts.evidence,
    };
    let text = text.unwrap_or_default();
    let start = text
        .char_indices()
        .nth(offset)
        .map_or(text.len(), |(at, _)| at);
    let rest = text.get(start..).unwrap_or_default();
    let end = fitting(rest, max_chars.saturating_sub(BASE_COST).max(1));
    let content = rest.get(..end).unwrap_or_default().to_owned();
    let next = (end < rest.len()).then(|| offset.saturating_add(content.chars().count()));
    Ok(TextPage {
        step,
        plan: texts.plan,
        content,
        total: text.chars().count(),
        next,
    })
}

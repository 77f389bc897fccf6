//! Steps: specification, claim, result, failure and skip.
//!
//! The `reason` is stored next to the `kind` of the end, and is absent if the caller sent none, so
//! the reason "rejected" differs from no reason.

use onward_core::step::{Claim, FailReason, NewStep, SkipCause, StepResult, StepType};

use super::read::Fields;
use super::write::Details;
use super::{CLAIM_TOKEN, Undecodable};

pub(super) fn new_step(step: &NewStep) -> Details {
    Details::default()
        .with_text("stepId", step.id)
        .with("stepType", step.step_type.as_str())
        .with_some("title", step.title.as_deref())
        .with("instructions", step.instructions.as_str())
        .with_texts("dependsOn", &step.depends_on)
        .with_span("stallThresholdMs", step.stall_threshold)
        .with("maxAttempts", step.max_attempts)
}

pub(super) fn read_new_step(fields: &Fields<'_>) -> Result<NewStep, Undecodable> {
    Ok(NewStep {
        id: fields.get("stepId")?,
        step_type: fields.word("stepType", &StepType::ALL, StepType::as_str)?,
        title: fields.get_some("title")?,
        instructions: fields.get("instructions")?,
        depends_on: fields.list("dependsOn")?,
        stall_threshold: fields.get_some("stallThresholdMs")?,
        max_attempts: fields.get("maxAttempts")?,
    })
}

pub(super) fn claim(details: Details, claim: &Claim) -> Details {
    details
        .with("attempt", claim.attempt)
        .with(CLAIM_TOKEN, claim.token.as_str())
        .with_session(claim.session.as_ref())
}

pub(super) fn read_claim(fields: &Fields<'_>) -> Result<Claim, Undecodable> {
    Ok(Claim {
        attempt: fields.get("attempt")?,
        token: fields.get(CLAIM_TOKEN)?,
        session: fields.get_some("sessionId")?,
    })
}

/// The result is flat among the other details: an enclosing object would nest its data deeper than
/// on the wire, and the depth limit of a parser could then reject what it accepted before.
pub(super) fn result(details: Details, result: &StepResult) -> Details {
    details
        .with("resultSummary", result.summary.as_str())
        .with_some("result", result.data.clone())
        .with_some("confidence", result.confidence)
        .with_some("stepExecutionReport", result.report.clone())
        .with_some("outputFormattingNotes", result.formatting_notes.as_deref())
}

pub(super) fn read_result(fields: &Fields<'_>) -> Result<StepResult, Undecodable> {
    Ok(StepResult {
        summary: fields.get("resultSummary")?,
        data: fields.get_some("result")?,
        confidence: fields.get_some("confidence")?,
        report: fields.get_some("stepExecutionReport")?,
        formatting_notes: fields.get_some("outputFormattingNotes")?,
    })
}

const FAIL_KINDS: [&str; 4] = ["by_hand", "stalled", "attempts_used_up", "rejected"];

pub(super) fn fail_reason(details: Details, reason: &FailReason) -> Details {
    match reason {
        FailReason::Manual(text) => details
            .with("kind", "by_hand")
            .with_some("reason", text.as_deref()),
        FailReason::Stalled => details.with("kind", "stalled").with_text("reason", reason),
        FailReason::AttemptsExhausted => details
            .with("kind", "attempts_used_up")
            .with_text("reason", reason),
        FailReason::Rejected(text) => details
            .with("kind", "rejected")
            .with_some("reason", text.as_deref()),
    }
}

pub(super) fn read_fail_reason(fields: &Fields<'_>) -> Result<FailReason, Undecodable> {
    match fields.get("kind")? {
        "by_hand" => Ok(FailReason::Manual(fields.get_some("reason")?)),
        "stalled" => Ok(FailReason::Stalled),
        "attempts_used_up" => Ok(FailReason::AttemptsExhausted),
        "rejected" => Ok(FailReason::Rejected(fields.get_some("reason")?)),
        other => Err(fields.none_of("kind", other, &FAIL_KINDS)),
    }
}

pub(super) fn skip_cause(details: Details, by: SkipCause) -> Details {
    match by {
        SkipCause::Branch(id) => details.with("by", "branch").with_text("branchId", id),
        SkipCause::Review(id) => details.with("by", "review").with_text("reviewId", id),
    }
}

pub(super) fn read_skip_cause(fields: &Fields<'_>) -> Result<SkipCause, Undecodable> {
    match fields.get("by")? {
        "branch" => fields.get("branchId").map(SkipCause::Branch),
        "review" => fields.get("reviewId").map(SkipCause::Review),
        other => Err(fields.none_of("by", other, &["branch", "review"])),
    }
}

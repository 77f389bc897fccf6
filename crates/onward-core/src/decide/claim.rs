//! Claim checks for results, progress reports and review requests.
//!
//! A call with the current token, or without a token, belongs to the current attempt. Any other
//! token is superseded: it is accepted only for a pending step that no other session has claimed.

use super::draft::Draft;
use crate::event::Event;
use crate::id::{ClaimToken, SessionId};
use crate::refusal::Refusal;
use crate::step::{Claim, Step, StepStatus};

/// The claim that a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClaimStatus {
    /// The step's current or last claim.
    Current,
    /// The step has no claim: it was requeued or never claimed.
    Unclaimed,
}

/// Checks the caller's token. Rejects a superseded claim.
pub(super) fn check_claim(step: &Step, token: Option<&ClaimToken>) -> Result<ClaimStatus, Refusal> {
    match (step.claim(), token) {
        (None, _) if step.status() == StepStatus::Pending => Ok(ClaimStatus::Unclaimed),
        (_, None) => Ok(ClaimStatus::Current),
        (Some(claim), Some(token)) if claim.token == *token => Ok(ClaimStatus::Current),
        (_, Some(_)) => Err(Refusal::ClaimSuperseded {
            attempt: step.attempt(),
            status: step.status(),
        }),
    }
}

/// The claim for a pending step: the next attempt, with the given token.
pub(super) fn next_claim(step: &Step, token: &ClaimToken, session: Option<&SessionId>) -> Claim {
    Claim {
        attempt: step.attempt(),
        token: token.clone(),
        session: session.cloned(),
    }
}

/// Whether the step was requeued, has not been claimed since, and had this token before.
pub(super) fn can_reclaim(step: &Step, token: Option<&ClaimToken>) -> bool {
    step.status() == StepStatus::Pending
        && token.is_some_and(|token| step.superseded.contains(token))
}

/// Claims a requeued step again for its previous agent. Returns whether it did.
pub(super) fn reclaim(
    draft: &mut Draft,
    step: &Step,
    token: Option<&ClaimToken>,
    session: Option<&SessionId>,
) -> Result<bool, Refusal> {
    match token.filter(|_| can_reclaim(step, token)) {
        Some(token) => {
            let claim = next_claim(step, token, session);
            draft.push(Event::StepStarted {
                step: step.id(),
                claim,
            })?;
            Ok(true)
        }
        None => Ok(false),
    }
}

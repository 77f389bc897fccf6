//! Claim checks for calls on a step.
//!
//! A call with the current token, or without a token, belongs to the current attempt. A token that
//! was issued for an earlier attempt is superseded: it is accepted only for a pending step that no
//! other session has claimed. A token that was never issued for the step is rejected in every
//! status, because the caller has probably confused two steps.

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

/// Checks the caller's token. Rejects a superseded claim and a token of another step.
pub(super) fn check_claim(step: &Step, token: Option<&ClaimToken>) -> Result<ClaimStatus, Refusal> {
    let unclaimed = step.status() == StepStatus::Pending;
    match token {
        None if unclaimed => Ok(ClaimStatus::Unclaimed),
        None => Ok(ClaimStatus::Current),
        Some(token) if is_current(step, token) => Ok(ClaimStatus::Current),
        Some(token) if !step.superseded.contains(token) => Err(Refusal::ClaimNotIssued),
        Some(_) if unclaimed => Ok(ClaimStatus::Unclaimed),
        Some(_) => Err(Refusal::ClaimSuperseded {
            attempt: step.attempt(),
            status: step.status(),
        }),
    }
}

fn is_current(step: &Step, token: &ClaimToken) -> bool {
    step.claim().is_some_and(|claim| claim.token == *token)
}

/// The session of a call on a step: the reported one, or the session of the claim whose token the
/// call contains.
pub fn calling_session(
    step: &Step,
    token: Option<&ClaimToken>,
    reported: Option<&SessionId>,
) -> Option<SessionId> {
    let inferred = || {
        let proven = token.is_some_and(|token| is_current(step, token));
        step.claim()?.session.as_ref().filter(|_| proven)
    };
    reported.or_else(inferred).cloned()
}

/// Whether the token or the session proves that a call comes from the holder of the step's claim.
pub(super) fn is_holder(
    step: &Step,
    token: Option<&ClaimToken>,
    reported: Option<&SessionId>,
) -> bool {
    let holder = step.claim().and_then(|claim| claim.session.as_ref());
    match token {
        Some(token) => is_current(step, token),
        None => reported.is_some() && holder == reported,
    }
}

/// Delivers a change of the instructions with the response to the holder. A caller without token
/// and session cannot be distinguished from it.
pub(super) fn deliver(
    draft: &mut Draft,
    step: &Step,
    token: Option<&ClaimToken>,
    reported: Option<&SessionId>,
) -> Result<(), Refusal> {
    let undelivered = step.work().is_some_and(|work| work.undelivered.is_some());
    let is_anonymous = token.is_none() && reported.is_none();
    if undelivered && (is_anonymous || is_holder(step, token, reported)) {
        draft.push(Event::FeedbackDelivered {
            step: step.id(),
            session: calling_session(step, token, reported),
        })?;
    }
    Ok(())
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

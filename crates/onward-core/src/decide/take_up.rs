//! Under which claim does something come? The rule that results, progress reports and review requests
//! share.
//!
//! The current token, or none at all, is the current attempt's. Any other token is superseded: it
//! still counts where the step is open and nobody else has claimed it, and is refused otherwise.

use crate::id::{ClaimToken, SessionId};
use crate::refusal::Refusal;
use crate::step::{Claim, Step, StepStatus};

/// Who may speak for a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Voice {
    /// The claim that the step is in, or ended in.
    Current,
    /// Nobody has a claim on it. It was handed back, and whoever had it before still speaks for it;
    /// or it was never handed out.
    Unclaimed,
}

/// Whether the caller may speak for the step.
pub(super) fn voice(step: &Step, token: Option<&ClaimToken>) -> Result<Voice, Refusal> {
    match (step.claim(), token) {
        (None, _) if step.status() == StepStatus::Pending => Ok(Voice::Unclaimed),
        (None, _) | (Some(_), None) => Ok(Voice::Current),
        (Some(claim), Some(token)) if claim.token == *token => Ok(Voice::Current),
        (Some(claim), Some(_)) => Err(Refusal::ClaimSuperseded {
            attempt: claim.attempt,
            status: step.status(),
        }),
    }
}

/// The claim under which a step that nobody has is taken up: it is the next attempt, with the token
/// that the caller already holds where there is one.
pub(super) fn claim(step: &Step, token: &ClaimToken, session: Option<&SessionId>) -> Claim {
    Claim {
        attempt: step.attempt(),
        token: token.clone(),
        session: session.cloned(),
    }
}

/// The superseded token by which an agent takes a step up again that was handed back. A step that was
/// never handed out has none.
pub(super) fn returning<'t>(step: &Step, token: Option<&'t ClaimToken>) -> Option<&'t ClaimToken> {
    token.filter(|_| step.status() == StepStatus::Pending && step.attempt() > 1)
}

//! Under which claim does something come? The rule that results, progress reports and review requests
//! share.
//!
//! The current token, or none at all, is the current attempt's. Any other token is superseded: it
//! still counts where the step is open and nobody else has claimed it, and is refused otherwise.

use super::draft::Draft;
use crate::event::Event;
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
        (_, None) => Ok(Voice::Current),
        (Some(claim), Some(token)) if claim.token == *token => Ok(Voice::Current),
        (_, Some(_)) => Err(Refusal::ClaimSuperseded {
            attempt: step.attempt(),
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

/// Whether the step was handed back, nobody else has it, and this is a token that it had before.
pub(super) fn is_returning(step: &Step, token: Option<&ClaimToken>) -> bool {
    step.status() == StepStatus::Pending
        && token.is_some_and(|token| step.superseded.contains(token))
}

/// Takes a step up again for an agent that comes back to it, and says whether it did.
pub(super) fn take_up_again(
    draft: &mut Draft,
    step: &Step,
    token: Option<&ClaimToken>,
    session: Option<&SessionId>,
) -> Result<bool, Refusal> {
    match token.filter(|_| is_returning(step, token)) {
        Some(token) => {
            let claim = claim(step, token, session);
            draft.push(Event::StepStarted {
                step: step.id(),
                claim,
            })?;
            Ok(true)
        }
        None => Ok(false),
    }
}

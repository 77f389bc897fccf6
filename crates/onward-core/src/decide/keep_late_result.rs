//! Records that a rejected result is stored as an artifact. The plan does not change, so the
//! command is allowed in every status. [`Command::late_result`](crate::Command::late_result)
//! returns the content to store.
//!
//! If the input was invalid, the holder of the claim can correct it and submit again. Until then,
//! the step refers to the artifact; the accepted result supersedes it.

use crate::command::KeepLateResult;
use crate::event::Event;
use crate::id::ClaimToken;
use crate::refusal::Code;
use crate::step::Step;

/// The event to record.
pub fn decide(command: &KeepLateResult) -> Vec<Event> {
    let KeepLateResult {
        step,
        artifact,
        rejection,
        attempt,
    } = *command;
    vec![Event::LateResultKept {
        step,
        artifact,
        rejection,
        attempt,
    }]
}

/// The step's current attempt, if the caller holds it and can correct the rejected input. A missing
/// token counts as the current one, as for a result.
pub fn correctable_attempt(
    step: &Step,
    token: Option<&ClaimToken>,
    rejection: Code,
) -> Option<u32> {
    let claim = &step.claimed_work()?.claim;
    let is_holder = token.is_none_or(|token| *token == claim.token);
    (rejection == Code::InvalidInput && is_holder).then_some(claim.attempt)
}

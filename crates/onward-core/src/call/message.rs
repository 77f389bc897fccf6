//! Messages about interrupted calls, for the model and for the operator.
//!
//! The model gets only information that it can act on; the operator gets all details. The text for
//! the model depends only on cause and timeout, so that prompt caches stay valid. No message claims
//! that the call succeeded or that a user cancelled it.

use std::time::Duration;

use super::{Call, CallPolicy, Cause, OwnerExit};

/// The synthetic error result for the model. `timeout` is the call's timeout, if it had one.
pub fn for_model(cause: Cause, timeout: Option<Duration>) -> String {
    match cause {
        Cause::NotStarted => {
            "This call was not executed: it never started. Repeat it if it is still needed."
                .to_owned()
        }
        Cause::OutcomeUnknown => {
            "The outcome of this call is unknown: it started, but no result was received. Check \
             its effects before repeating it. Repeat it without checking only if it is read-only."
                .to_owned()
        }
        Cause::TimedOut => {
            let within = timeout.map_or_else(
                || "in time".to_owned(),
                |timeout| format!("within {}", seconds(timeout)),
            );
            format!(
                "No result was received {within}. The call may still be running. Check its \
                 effects before repeating it."
            )
        }
    }
}

/// The result of a call that continues in the background: the agent has answered the model.
pub const IN_BACKGROUND: &str = "(the call returned to the model before the command ended; the command continued in the background)";

/// The message for the operator: the cause, and the owner. The record of the call has its times.
pub fn for_operator(
    call: &Call,
    cause: Cause,
    policy: CallPolicy,
    owner_exit: Option<OwnerExit>,
) -> String {
    let mut text = match cause {
        Cause::NotStarted => format!("not started: the call was `{}`", call.state.status()),
        Cause::OutcomeUnknown => format!("outcome unknown: the call was `{}`", call.state.status()),
        Cause::TimedOut => {
            let timeout = policy.timeout(call.limit).unwrap_or(policy.default_timeout);
            format!(
                "timed out: no result within {} and a grace period of {}",
                seconds(timeout),
                seconds(call.grace.unwrap_or(policy.grace))
            )
        }
    };
    match (&call.owner, owner_exit) {
        (Some(owner), Some(exit)) => text.push_str(&format!(
            "; owner process {} on `{}` is dead: {exit}",
            owner.process, owner.host
        )),
        (Some(owner), None) => text.push_str(&format!(
            "; owner process {} on `{}`",
            owner.process, owner.host
        )),
        (None, _) => text.push_str("; owner unknown"),
    }
    text
}

/// A duration in seconds, without trailing zeros.
fn seconds(span: Duration) -> String {
    format!("{} s", span.as_millis() as f64 / 1000.0)
}

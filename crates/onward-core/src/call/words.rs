//! What is said about a call that will not answer, to two audiences.
//!
//! The model reads what it can act upon, and nothing of who watched, stored or repaired; the operator
//! reads everything. The same cause gives the same bytes every time, so that prompt caches hold. Nobody
//! is told that the call succeeded, and nobody that a person called it off.

use std::time::Duration;

use super::{Call, CallPolicy, Cause, Death};
use crate::time::Timestamp;

/// What the model is told in place of a result. It goes out as an error. `timeout` is the one that
/// applied to the call, where it had one.
pub fn for_model(cause: Cause, timeout: Option<Duration>) -> String {
    match cause {
        Cause::NotStarted => {
            "This call was not carried out: it never began. Make it again if it is still needed."
                .to_owned()
        }
        Cause::OutcomeUnknown => {
            "The outcome of this call is unknown: it had begun, and no result \
             was received. Check what it did before making it again; only a call that merely reads \
             may simply be repeated."
                .to_owned()
        }
        Cause::TimedOut => {
            let within = timeout.map_or_else(
                || "in time".to_owned(),
                |timeout| format!("within {}", seconds(timeout)),
            );
            format!(
                "No answer came {within}. The call may still be running; check what it did before \
                 making it again."
            )
        }
    }
}

/// What the operator is told: why the call was given up, and on what grounds.
pub fn for_operator(
    call: &Call,
    cause: Cause,
    policy: CallPolicy,
    death: Option<Death>,
    now: Timestamp,
) -> String {
    let mut text = match cause {
        Cause::NotStarted => format!("not started: it was `{}`", call.state.status()),
        Cause::OutcomeUnknown => format!("outcome unknown: it was `{}`", call.state.status()),
        Cause::TimedOut => {
            let timeout = policy.timeout(call.limit).unwrap_or(policy.default_timeout);
            format!(
                "timed out: no answer within {} and {} of grace",
                seconds(timeout),
                seconds(policy.grace)
            )
        }
    };
    if let Some(reference) = call.timestamp().reference() {
        let silence = seconds(now.since(reference));
        text.push_str(&format!(
            "; last sign of life at {reference}, {silence} ago"
        ));
    }
    match (&call.owner, death) {
        (Some(owner), Some(death)) => text.push_str(&format!(
            "; its owner, process {} on `{}`, is dead: {death}",
            owner.process, owner.host
        )),
        (Some(owner), None) => text.push_str(&format!(
            "; its owner is process {} on `{}`",
            owner.process, owner.host
        )),
        (None, _) => text.push_str("; its owner is unknown"),
    }
    text
}

/// A span in seconds, as short as it can be said.
fn seconds(span: Duration) -> String {
    format!("{} s", span.as_millis() as f64 / 1000.0)
}

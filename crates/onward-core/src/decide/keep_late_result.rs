//! Records that a rejected result is stored as an artifact. The plan does not change, so the
//! command is allowed in every status. [`Command::late_result`](crate::Command::late_result)
//! returns the content to store.

use crate::command::KeepLateResult;
use crate::event::Event;

/// The event to record.
pub fn decide(command: &KeepLateResult) -> Vec<Event> {
    let KeepLateResult {
        step,
        artifact,
        rejection,
    } = *command;
    vec![Event::LateResultKept {
        step,
        artifact,
        rejection,
    }]
}

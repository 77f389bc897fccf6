//! A refused result is kept beside the plan, and the trail says where. It changes nothing about the
//! plan, so it fits every status. What is to be kept, [`Command::late_result`](crate::Command::late_result)
//! says.

use crate::command::KeepLateResult;
use crate::event::Event;

/// What is noted.
pub fn decide(command: &KeepLateResult) -> Vec<Event> {
    let KeepLateResult {
        step,
        artifact,
        refused,
    } = *command;
    vec![Event::LateResultKept {
        step,
        artifact,
        refused,
    }]
}

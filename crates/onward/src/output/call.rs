//! A call of the ledger in words for people, the same at the terminal and on the dashboard.
//!
//! What was given up never looks like a success: it says so first, then why.

use onward_core::Timestamp;
use onward_core::call::{CallState, Cause, is_stale, stale_at};
use onward_engine::CallRecord;
use onward_engine::ledger::POLICY;

use super::words;

/// What a person should know of a call, in a few words.
pub(crate) fn standing(record: &CallRecord, now: Timestamp) -> String {
    let times = record.call.timestamp();
    match record.call.state {
        CallState::Requested => format!("asked for {}", words::ago(now, record.requested_at)),
        CallState::AwaitingApproval { asked_at, .. } => {
            let waits = words::span(now.since(asked_at));
            format!("waits for a person for {waits}; no clock runs")
        }
        CallState::Running(run) => {
            let age = words::span(now.since(run.started_at));
            match stale_at(&times, POLICY) {
                None => format!("running for {age}; it has no timeout"),
                Some(_) if is_stale(&times, now, POLICY) => {
                    format!("running for {age}; past its time, will be given up")
                }
                Some(at) => {
                    let left = words::span(at.since(now));
                    format!("running for {age}; given up in {left} without a sign of life")
                }
            }
        }
        CallState::Completed(end) | CallState::Failed(end) => {
            let word = record.status().as_str();
            match end.instead_of {
                None => format!("{word} {}", words::ago(now, end.ended_at)),
                Some(instead) => format!(
                    "{word} late, {}; it was given up before ({})",
                    words::ago(now, end.ended_at),
                    cause(instead.cause)
                ),
            }
        }
        CallState::Denied { ended_at } => {
            format!("denied by a person {}", words::ago(now, ended_at))
        }
        CallState::Cancelled { ended_at } => {
            format!("called off by a person {}", words::ago(now, ended_at))
        }
        CallState::Interrupted(interruption) => format!(
            "interrupted {}: {}",
            words::ago(now, interruption.interrupted_at),
            cause(interruption.cause)
        ),
    }
}

/// Why a call was given up, in plain words.
pub(crate) const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::NotStarted => "it never began",
        Cause::OutcomeUnknown => "it had begun, and nobody knows how far it came",
        Cause::TimedOut => "no answer came in time; it may still be running",
    }
}

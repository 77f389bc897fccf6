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

#[cfg(test)]
mod tests {
    use onward_core::call::{Call, CallMove, CallStatus, Limit};
    use onward_engine::CallKey;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn record(moves: &[CallMove]) -> CallRecord {
        let mut call = Call::requested(Limit::Unsaid, None);
        for asked in moves {
            call.apply(*asked, at(0)).unwrap();
        }
        CallRecord {
            key: CallKey {
                session: "s".to_owned(),
                agent: String::new(),
                turn: 1,
                position: 1,
            },
            id: None,
            batch: 1,
            tool: "Bash".to_owned(),
            input_digest: String::new(),
            input: String::new(),
            call,
            requested_at: at(0),
            asked_at: None,
            started_at: None,
            last_progress_at: None,
            synthetic: None,
            result: None,
            told: false,
        }
    }

    #[test]
    fn only_a_completed_call_reads_like_a_success() {
        let all = [
            vec![],
            vec![CallMove::AskApproval],
            vec![CallMove::Start],
            vec![CallMove::Complete],
            vec![CallMove::Fail],
            vec![CallMove::Deny],
            vec![CallMove::Cancel],
        ];
        let lost = Cause::ALL.map(|cause| vec![CallMove::Start, CallMove::Interrupt(cause)]);
        let mut seen = Vec::new();
        for moves in all.into_iter().chain(lost) {
            let record = record(&moves);
            let words = standing(&record, at(1));
            let is_good = record.status() == CallStatus::Completed;
            assert_eq!(words.contains("completed"), is_good, "{words}");
            if record.status() == CallStatus::Interrupted {
                assert!(words.starts_with("interrupted"), "{words}");
            }
            seen.push(words);
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 10, "each says something else: {seen:?}");
    }

    #[test]
    fn a_late_result_says_that_the_call_was_given_up_before() {
        for (last, word) in [
            (CallMove::Complete, "completed late"),
            (CallMove::Fail, "failed late"),
        ] {
            let moves = [CallMove::Interrupt(Cause::NotStarted), last];
            let words = standing(&record(&moves), at(1));
            assert!(words.starts_with(word), "{words}");
            assert!(
                words.ends_with("it was given up before (it never began)"),
                "{words}"
            );
        }
    }
}

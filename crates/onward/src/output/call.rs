//! The state of a tool call as a sentence, for the terminal and the dashboard.
//!
//! An interrupted call never reads like a success: its text begins with the interruption.

use onward_core::Timestamp;
use onward_core::call::{CallState, CallStatus, Cause, is_stale, message, stale_at};
use onward_engine::CallRecord;
use onward_engine::tool_calls::POLICY;

use super::format;

pub(crate) fn describe(record: &CallRecord, now: Timestamp) -> String {
    let times = record.call.timestamp();
    match record.call.state {
        CallState::Requested => format!("requested {}", format::ago(now, record.requested_at)),
        CallState::AwaitingApproval {
            requested_at: asked_at,
            ..
        } => {
            let waiting = format::duration(now.since(asked_at));
            format!("waiting for approval, {waiting}")
        }
        CallState::Running(run) => {
            let age = format::duration(now.since(run.started_at));
            match stale_at(&times, POLICY) {
                _ if record.call.has_yielded(now) => format!("running, {age}, in the background"),
                None => format!("running, {age} (no timeout)"),
                Some(_) if is_stale(&times, now, POLICY) => {
                    format!("running, {age} (timed out; will be marked as dead)")
                }
                Some(at) => {
                    let left = format::duration(at.since(now));
                    format!("running, {age} (marked as dead in {left} if there is no output)")
                }
            }
        }
        CallState::Completed(end) if is_in_background(record) => {
            let ago = format::ago(now, end.ended_at);
            format!("returned to the model {ago}; the command continued in the background")
        }
        CallState::Completed(end) | CallState::Failed(end) => {
            let status = record.status().as_str();
            match end.interruption {
                None => format!("{status} {}", format::ago(now, end.ended_at)),
                Some(instead) => format!(
                    "{status} late, {}; was marked as dead ({})",
                    format::ago(now, end.ended_at),
                    describe_cause(instead.cause)
                ),
            }
        }
        CallState::Denied { ended_at } => {
            format!("denied by the user {}", format::ago(now, ended_at))
        }
        CallState::Cancelled { ended_at } => {
            format!("cancelled by the user {}", format::ago(now, ended_at))
        }
        CallState::Interrupted(interruption) => {
            let ago = format::ago(now, interruption.interrupted_at);
            match interruption.cause {
                Cause::TimedOut => format!("timed out {ago}; may still be running"),
                Cause::NotStarted => format!("interrupted {ago}: never started; safe to retry"),
                Cause::OutcomeUnknown if died_before_approval(record) => {
                    format!(
                        "interrupted {ago} while waiting for approval; probably did not run, check"
                    )
                }
                Cause::OutcomeUnknown => {
                    format!("interrupted {ago} while running; may have taken effect")
                }
            }
        }
    }
}

/// Whether the agent answered the model while the command continued. Its end is unknown.
pub(crate) fn is_in_background(record: &CallRecord) -> bool {
    let has_result = |result: &str| record.result.as_deref() == Some(result);
    record.status() == CallStatus::Completed && has_result(message::IN_BACKGROUND)
}

/// Whether the last event of a call was a request for approval.
fn died_before_approval(record: &CallRecord) -> bool {
    let asked = record.asked_at;
    asked.is_some_and(|asked| record.started_at.is_none_or(|started| started <= asked))
}

/// Why a call was interrupted, before its result arrived late.
const fn describe_cause(cause: Cause) -> &'static str {
    match cause {
        Cause::NotStarted => "never started",
        Cause::OutcomeUnknown => "interrupted while running",
        Cause::TimedOut => "no result in time",
    }
}

#[cfg(test)]
mod tests {
    use onward_core::call::{Call, CallTransition, Limit};
    use onward_engine::CallKey;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn record(moves: &[CallTransition]) -> CallRecord {
        let mut call = Call::requested(Limit::Unspecified, None);
        for call_move in moves {
            call.apply(*call_move, at(0)).unwrap();
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
            reported_to_agent: false,
        }
    }

    #[test]
    fn only_a_completed_call_reads_like_a_success() {
        let all = [
            vec![],
            vec![CallTransition::RequestApproval],
            vec![CallTransition::Start],
            vec![CallTransition::Complete],
            vec![CallTransition::Fail],
            vec![CallTransition::Deny],
            vec![CallTransition::Cancel],
        ];
        let interrupted =
            Cause::ALL.map(|cause| vec![CallTransition::Start, CallTransition::Interrupt(cause)]);
        let mut texts = Vec::new();
        for moves in all.into_iter().chain(interrupted) {
            let record = record(&moves);
            let text = describe(&record, at(1));
            let is_success = record.status() == CallStatus::Completed;
            let success = CallStatus::Completed.as_str();
            assert_eq!(text.contains(success), is_success, "{text}");
            texts.push(text);
        }
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 10, "the texts differ: {texts:?}");
    }

    #[test]
    fn a_call_that_continued_in_the_background_does_not_read_like_a_success() {
        let mut call = record(&[CallTransition::Start, CallTransition::Complete]);
        let done = describe(&call, at(1));
        call.result = Some(message::IN_BACKGROUND.to_owned());
        assert_ne!(describe(&call, at(1)), done);
        assert!(!describe(&call, at(1)).contains(CallStatus::Completed.as_str()));
    }

    #[test]
    fn a_call_that_died_before_its_approval_probably_did_not_run() {
        let moves = [
            CallTransition::Start,
            CallTransition::RequestApproval,
            CallTransition::Interrupt(Cause::OutcomeUnknown),
        ];
        let mut asked = record(&moves);
        asked.started_at = Some(at(0));
        let running = describe(&asked, at(1));
        asked.asked_at = Some(at(0));
        let waiting = describe(&asked, at(1));
        assert_ne!(running, waiting);
    }

    #[test]
    fn describes_the_interruption_before_a_late_result() {
        for (last, status) in [
            (CallTransition::Complete, CallStatus::Completed),
            (CallTransition::Fail, CallStatus::Failed),
        ] {
            let moves = [CallTransition::Interrupt(Cause::NotStarted), last];
            let text = describe(&record(&moves), at(1));
            assert!(text.starts_with(status.as_str()), "{text}");
            let cause = describe_cause(Cause::NotStarted);
            assert!(text.contains(cause), "{text}");
        }
    }
}

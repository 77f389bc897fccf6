//! The state of a tool call as a sentence, for the terminal and the dashboard.
//!
//! A killed call never reads like a success: its text begins with the interruption.

use onward_core::Timestamp;
use onward_core::call::{CallState, Cause, is_stale, message, stale_at};
use onward_engine::CallRecord;
use onward_engine::tool_calls::POLICY;

use super::format;

/// A sentence about a call. The age of `at` is between the two texts.
#[derive(Debug, Default)]
pub(crate) struct Description {
    pub(crate) before: String,
    pub(crate) at: Option<Timestamp>,
    pub(crate) after: String,
}

impl Description {
    fn new(before: impl Into<String>) -> Self {
        Self {
            before: before.into(),
            ..Self::default()
        }
    }

    fn ago(self, at: Timestamp) -> Self {
        Self {
            before: format!("{} ", self.before),
            at: Some(at),
            ..self
        }
    }

    fn then(self, after: impl Into<String>) -> Self {
        Self {
            after: after.into(),
            ..self
        }
    }

    pub(crate) fn text(&self, now: Timestamp) -> String {
        let ago = self.at.map(|at| format::ago(now, at));
        format!("{}{}{}", self.before, ago.unwrap_or_default(), self.after)
    }
}

pub(crate) fn describe(record: &CallRecord, now: Timestamp) -> Description {
    let times = record.call.timestamp();
    match record.call.state {
        CallState::Requested => Description::new("requested").ago(record.requested_at),
        CallState::AwaitingApproval {
            requested_at: asked_at,
            ..
        } => {
            let waiting = format::duration(now.since(asked_at));
            Description::new(format!("waiting for approval, {waiting}"))
        }
        CallState::Running(run) => {
            let age = format::duration(now.since(run.started_at));
            Description::new(match stale_at(&times, POLICY) {
                _ if record.call.has_yielded(now) => format!("running, {age}, in the background"),
                None => format!("running, {age} (no timeout)"),
                Some(_) if is_stale(&times, now, POLICY) => {
                    format!("running, {age} (timed out; will be marked as dead)")
                }
                Some(at) => {
                    let left = format::duration(at.since(now));
                    format!("running, {age} (marked as dead in {left} if there is no output)")
                }
            })
        }
        CallState::Completed(end) if record.is_in_background() => {
            let returned = Description::new("returned to the model").ago(end.ended_at);
            returned.then("; the command continued in the background")
        }
        CallState::Completed(end) | CallState::Failed(end) => {
            let status = record.status().as_str();
            match end.interruption {
                None => Description::new(status).ago(end.ended_at),
                Some(instead) => Description::new(format!("{status} late,"))
                    .ago(end.ended_at)
                    .then(format!(
                        "; was marked as dead ({})",
                        describe_cause(instead.cause)
                    )),
            }
        }
        CallState::Denied { ended_at } => Description::new("denied by the user").ago(ended_at),
        CallState::Cancelled { ended_at } => {
            Description::new("cancelled by the user").ago(ended_at)
        }
        CallState::Interrupted(interruption) => {
            let (word, effect) = match interruption.cause {
                Cause::TimedOut => ("timed out", "; may still be running"),
                Cause::NotStarted => ("killed", ": never started; safe to retry"),
                Cause::OutcomeUnknown if died_before_approval(record) => (
                    "killed",
                    " while waiting for approval; probably did not run, check",
                ),
                Cause::OutcomeUnknown => ("killed", " while running; may have taken effect"),
            };
            let described = Description::new(word).ago(interruption.interrupted_at);
            described.then(effect)
        }
    }
}

/// The call's own result, or a note that it continued in the background.
pub(crate) fn result(record: &CallRecord) -> Option<&str> {
    let note = record.is_in_background().then_some(message::IN_BACKGROUND);
    record.result.as_deref().or(note)
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
        Cause::OutcomeUnknown => "killed while running",
        Cause::TimedOut => "no result in time",
    }
}

#[cfg(test)]
mod tests {
    use onward_core::call::{Call, CallStatus, CallTransition, Limit};
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
            result: moves
                .contains(&CallTransition::Complete)
                .then(|| "done".to_owned()),
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
            let text = describe(&record, at(1)).text(at(1));
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
        let done = describe(&call, at(1)).text(at(1));
        call.result = None;
        let in_background = describe(&call, at(1)).text(at(1));
        assert_ne!(in_background, done);
        assert!(!in_background.contains(CallStatus::Completed.as_str()));
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
        let running = describe(&asked, at(1)).text(at(1));
        asked.asked_at = Some(at(0));
        let waiting = describe(&asked, at(1)).text(at(1));
        assert_ne!(running, waiting);
    }

    #[test]
    fn describes_the_interruption_before_a_late_result() {
        for (last, status) in [
            (CallTransition::Complete, CallStatus::Completed),
            (CallTransition::Fail, CallStatus::Failed),
        ] {
            let moves = [CallTransition::Interrupt(Cause::NotStarted), last];
            let text = describe(&record(&moves), at(1)).text(at(1));
            assert!(text.starts_with(status.as_str()), "{text}");
            let cause = describe_cause(Cause::NotStarted);
            assert!(text.contains(cause), "{text}");
        }
    }
}

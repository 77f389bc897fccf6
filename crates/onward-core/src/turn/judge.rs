//! Judges one call: progress, idle, half idle or unknown, with the reason.
//!
//! [`Output::read`] updates the history in every case; [`score`] only decides. With all parts
//! switched off, the plain rule remains: a successful output that is long enough and differs in
//! more than its numbers.

use super::bounded_map::BoundedMap;
use super::clean::{clean, without_numbers};
use super::evidence::IdleReason;
use super::hash::hash;
use super::input_echo::InputWords;
use super::intent::{Intent, input_texts, intent};
use super::lines::{self, Lines};
use super::noop::{NoOp, no_op};
use super::policy::{Parts, TurnPolicy};
use super::poll::LastOutput;
use super::task::TaskChange;
use super::{Call, ExternalChange, OUTPUT_NOT_REPORTED, Progress};

/// The maximum number of stored outputs, and of stored calls.
pub(crate) const MAX_STORED: usize = 1024;

/// The lines, outputs and calls of this turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TurnHistory {
    pub(crate) lines: Lines,
    pub(crate) outputs: BoundedMap<u64, (), MAX_STORED>,
    pub(crate) calls: BoundedMap<u64, LastOutput, MAX_STORED>,
}

/// The judgement of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Score {
    /// Progress.
    Progress(Progress),
    /// Unknown: neither counts as idle nor resets the count.
    Unknown(IdleReason),
    /// Half an idle step.
    HalfIdle(IdleReason),
    /// A whole idle step.
    Idle(IdleReason),
}

/// A judged call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JudgedCall {
    pub(crate) score: Score,
    /// The purpose.
    pub(crate) intent: Intent,
    /// Whether the same call was made before in this turn.
    pub(crate) repeated: bool,
    /// Whether it waits or repeats an earlier call.
    pub(crate) waits: bool,
    /// The change of a background task. Set by the [`detector`](super::detector).
    pub(crate) task: Option<TaskChange>,
}

/// Judges a call and updates the history.
pub(crate) fn judge(
    index: usize,
    call: &Call<'_>,
    external: ExternalChange,
    seen: &mut TurnHistory,
    policy: &TurnPolicy,
) -> JudgedCall {
    let parts = policy.rule.parts();
    let intent = intent(call);
    let no_op = no_op(call, intent).filter(|_| parts.no_ops);
    let output = Output::read(call, seen, &parts);
    let score = match no_op {
        Some(_) => Score::Idle(IdleReason::NoOp),
        None => score(index, call, intent, external, &output, policy),
    };
    JudgedCall {
        score,
        intent,
        repeated: output.repeated,
        waits: match no_op {
            Some(no_op) => no_op == NoOp::Wait,
            None => output.repeated,
        },
        task: None,
    }
}

/// The properties of an output.
struct Output {
    /// The same call was made before.
    repeated: bool,
    /// The number of characters.
    chars: usize,
    /// The number of new characters, if any line is new.
    new_chars: Option<usize>,
    /// It differs from every earlier output, at least in a number.
    differs: bool,
    /// It advances from the last output of the same call.
    advances: bool,
}

impl Output {
    fn read(call: &Call<'_>, seen: &mut TurnHistory, parts: &Parts) -> Self {
        let text = clean(call.output);
        let chars = text.chars().count();
        if *parts == Parts::NONE {
            return Output::plain(&text, chars, seen);
        }
        let question = InputWords::from_call(call).filter(|_| parts.echoes);
        let lines = lines::read(&text, question.as_ref(), parts);
        let exact = lines::joined(&lines);
        let differs = seen.outputs.insert(output_key(1, &exact), ()).is_none();
        let key = call_key(call);
        let last = seen.calls.get(key);
        let now = LastOutput::next(last, &exact);
        seen.calls.insert(key, now);
        let new_chars = if parts.lines {
            if parts.echoes {
                lines::add_known(input_texts(call.input), &mut seen.lines, parts);
            }
            lines::new_chars(&lines, &mut seen.lines)
        } else {
            Output::plain(&text, chars, seen).new_chars
        };
        Output {
            repeated: last.is_some(),
            chars,
            new_chars,
            differs,
            advances: last.is_some_and(|last| now.advanced_from(last, &exact)),
        }
    }

    /// The plain rule: an output is new if it differs in more than its numbers.
    fn plain(text: &str, chars: usize, seen: &mut TurnHistory) -> Self {
        let whole = output_key(2, &without_numbers(text));
        Output {
            repeated: false,
            chars,
            new_chars: seen.outputs.insert(whole, ()).is_none().then_some(chars),
            differs: false,
            advances: false,
        }
    }

    /// The reason if the call is idle.
    fn idle_reason(&self, min_chars: usize) -> IdleReason {
        if self.chars == 0 {
            IdleReason::Empty
        } else if self.new_chars.is_some() || self.chars < min_chars {
            IdleReason::Short
        } else {
            IdleReason::Seen
        }
    }
}

fn score(
    index: usize,
    call: &Call<'_>,
    intent: Intent,
    external: ExternalChange,
    output: &Output,
    policy: &TurnPolicy,
) -> Score {
    let parts = policy.rule.parts();
    let min_chars = policy.min_info_gain_length;
    if call.ok == Some(false) {
        return match (parts.errors, output.new_chars) {
            (true, Some(_)) => Score::Progress(Progress::NewError { call: index }),
            (true, None) => Score::Idle(IdleReason::SameError),
            (false, _) => Score::Idle(IdleReason::Failed),
        };
    }
    let not_reported = parts.short_answers && call.output == OUTPUT_NOT_REPORTED;
    if !not_reported && output.new_chars.is_some_and(|chars| chars >= min_chars) {
        return Score::Progress(Progress::Learned { call: index });
    }
    if parts.edits && !output.repeated && is_edit(intent, external, output) {
        return Score::Progress(Progress::Edited { call: index });
    }
    let reason = output.idle_reason(min_chars);
    if output.repeated {
        let can_poll = matches!(intent, Intent::Read | Intent::Other);
        return if !(output.differs && can_poll && parts.polling) {
            Score::Idle(reason)
        } else if output.new_chars.is_some() || output.advances {
            Score::Progress(Progress::Advanced { call: index })
        } else {
            Score::HalfIdle(reason)
        };
    }
    if !parts.short_answers {
        Score::Idle(reason)
    } else if not_reported {
        Score::Unknown(reason)
    } else {
        score_short(intent, external, output, reason)
    }
}

/// Whether a new call presumably changed a file.
fn is_edit(intent: Intent, external: ExternalChange, output: &Output) -> bool {
    match intent {
        // A successful edit tool changed a file, even outside the fingerprinted tree.
        Intent::Edit => true,
        // Such commands usually print nothing; repeated output usually means failure.
        Intent::ShellWrite => {
            external != ExternalChange::Unchanged
                && (output.chars == 0 || output.new_chars.is_some())
        }
        Intent::Read | Intent::Other => false,
    }
}

/// Judges the short or empty output of a new call.
fn score_short(
    intent: Intent,
    external: ExternalChange,
    output: &Output,
    reason: IdleReason,
) -> Score {
    match intent {
        // A search without a match has no new output.
        Intent::Read if output.chars == 0 || !output.differs => Score::Idle(reason),
        Intent::Read => Score::HalfIdle(reason),
        // A command without output may have had an effect outside the fingerprinted tree.
        Intent::Other | Intent::ShellWrite | Intent::Edit
            if output.chars == 0 && external == ExternalChange::Unknown =>
        {
            Score::Unknown(reason)
        }
        Intent::Other | Intent::ShellWrite | Intent::Edit => Score::HalfIdle(reason),
    }
}

/// The hash of a call: tool and input.
fn call_key(call: &Call<'_>) -> u64 {
    hash(format!("{}\n{}", call.tool, call.input).as_bytes())
}

/// The hash of an output, distinct for each kind of normalization.
fn output_key(kind: u64, text: &str) -> u64 {
    hash(text.as_bytes()) ^ kind.rotate_right(8)
}

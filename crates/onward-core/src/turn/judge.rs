//! Judges one call: progress, idle, half idle or unknown, with the reason.
//!
//! [`Output::read`] updates the history in every case; [`score`] only decides. A repeated call is
//! judged by whether its output advances, a new one by its outcome: an action or an answer is
//! progress, a refusal or an empty result only if it is new. With all parts switched off, the plain
//! rule remains: a successful output that is long enough and differs in more than its numbers.

use std::time::Duration;

use super::bounded_map::BoundedMap;
use super::clean::{clean, without_numbers};
use super::evidence::IdleReason;
use super::hash::{hash, key};
use super::identity::{Identity, identity};
use super::input_echo::InputWords;
use super::intent::{Intent, command_line, input_texts, intent};
use super::lines::{self, Lines, Novelty};
use super::noop::{NoOp, no_op};
use super::outcome::{Outcome, affirms, cause, outcome, split_words};
use super::pause::pause;
use super::payload::{Payload, payload};
use super::policy::{Parts, TurnPolicy};
use super::poll::{LastOutput, MAX_DRIFTS, Trend};
use super::task::TaskChange;
use super::{Call, ExternalChange, OUTPUT_NOT_REPORTED, Progress};

/// The maximum number of stored outputs, and of stored calls.
pub(crate) const MAX_STORED: usize = 1024;

/// The maximum number of bytes of an error, and of an input, whose words are compared.
const MAX_ERROR: usize = 8 * 1024;
const MAX_INPUT: usize = 1024;
/// The maximum number of characters of an answer. In a longer output, numbers are details, unless it
/// consists mostly of numbers.
const MAX_ANSWER: usize = 240;
/// The maximum length of an output that is compared between tools.
const MAX_SHARED: usize = 400;
/// An error is mostly known if less than one character in this number is new.
const MOSTLY_KNOWN: usize = 3;
/// The number of new words from which a message to the same recipient is an action.
const MIN_WORDS_NEW: usize = 5;

/// Programs with many subcommands, and the number of words that name one.
const MANY: [&str; 6] = ["aws", "az", "gcloud", "gh", "kubectl", "docker"];
const SUBCOMMAND_WORDS: usize = 5;

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
    /// The time for which it waits on purpose.
    pub(crate) pause: Option<Duration>,
    /// The change of a background task. Set by the [`detector`](super::detector).
    pub(crate) task: Option<TaskChange>,
}

/// Judges a call and updates the history.
pub(crate) fn judge(
    index: usize,
    call: &Call<'_>,
    external: ExternalChange,
    is_reverted: bool,
    seen: &mut TurnHistory,
    policy: &TurnPolicy,
) -> JudgedCall {
    let parts = policy.rule.parts();
    let mut intent = intent(call);
    if intent == Intent::Act && !parts.actions {
        intent = Intent::Other;
    }
    let no_op = no_op(call, intent).filter(|_| parts.no_ops);
    let output = Output::read(call, intent, seen, &parts);
    let mut score = match no_op {
        Some(_) => Score::Idle(IdleReason::NoOp),
        None => score(index, call, intent, external, &output, policy),
    };
    let changes = matches!(
        score,
        Score::Progress(Progress::Edited { .. } | Progress::Acted { .. })
    );
    if changes && is_reverted {
        score = Score::Idle(IdleReason::Reverted);
    }
    JudgedCall {
        score,
        intent,
        repeated: output.repeated,
        waits: match no_op {
            Some(no_op) => no_op == NoOp::Wait,
            None => output.repeated,
        },
        pause: pause(call).filter(|_| parts.waiting),
        task: None,
    }
}

/// The properties of an output.
struct Output {
    /// The same call was made before.
    repeated: bool,
    /// The output is affirmative, such as `ok`.
    affirms: bool,
    /// The question is about something that no earlier command line of this turn mentions.
    asks_more: bool,
    /// The number of words that are new in an action with the same target as an earlier one.
    words_added: Option<usize>,
    outcome: Outcome,
    /// An error contains a word that is neither in an earlier error of this turn nor in the input.
    says_more: bool,
    /// The number of characters.
    chars: usize,
    /// At least half of its letters and digits are digits, such as a table of measurements.
    is_numeric: bool,
    novelty: Novelty,
    /// It differs from every earlier output, at least in a number.
    differs: bool,
    /// How it differs from the last output of the same call.
    trend: Trend,
    /// The number of outputs of the same call that differed without advancing.
    drifts: u8,
}

impl Output {
    fn read(call: &Call<'_>, intent: Intent, seen: &mut TurnHistory, parts: &Parts) -> Self {
        if *parts == Parts::NONE {
            return Output::plain(call, seen);
        }
        let text = clean(call.output);
        let payload = if parts.masks {
            payload(&text)
        } else {
            Payload {
                text: text.as_ref().into(),
                exit_code: None,
            }
        };
        let question = InputWords::from_call(call).filter(|_| parts.echoes);
        let lines = lines::read(&payload.text, question.as_ref(), parts);
        let exact = lines::joined(&lines);
        let differs = seen.outputs.insert(output_key(1, &exact), ()).is_none();
        let identity = identity(call, intent == Intent::Act);
        let last = seen.calls.get(identity.call);
        let (mut now, trend) = match last {
            Some(last) => last.next(&exact),
            None => (LastOutput::first(&exact), Trend::None),
        };
        let novelty = if parts.lines {
            if parts.echoes {
                lines::add_known(input_texts(call.input), &mut seen.lines, parts);
            }
            lines::record(&lines, &mut seen.lines)
        } else {
            Output::plain(call, seen).novelty
        };
        if last.is_some() && differs && novelty.chars.is_none() && trend != Trend::Advances {
            now.drifts = now.drifts.saturating_add(1);
        }
        seen.calls.insert(identity.call, now);
        let mut outcome = outcome(call, &payload, parts.refusals);
        if parts.refusals && is_shared(call, intent, &exact, seen) && outcome == Outcome::Answer {
            outcome = Outcome::Refused;
        }
        Output {
            repeated: last.is_some(),
            affirms: affirms(&payload.text),
            asks_more: asks_more(call, seen),
            words_added: words_added(&identity, seen).filter(|_| intent == Intent::Act),
            says_more: outcome.is_negative() && says_more(call, &payload, seen),
            outcome,
            chars: payload.text.chars().count(),
            is_numeric: is_numeric(&payload.text),
            novelty,
            differs,
            trend,
            drifts: now.drifts,
        }
    }

    /// The plain rule: an output is new if it differs in more than its numbers.
    fn plain(call: &Call<'_>, seen: &mut TurnHistory) -> Self {
        let text = clean(call.output);
        let chars = text.chars().count();
        let whole = output_key(2, &without_numbers(&text));
        let is_new = seen.outputs.insert(whole, ()).is_none();
        Output {
            repeated: false,
            affirms: false,
            asks_more: true,
            words_added: None,
            says_more: true,
            outcome: match call.ok {
                Some(false) => Outcome::Failed,
                Some(true) | None => Outcome::Answer,
            },
            chars,
            is_numeric: false,
            novelty: Novelty {
                chars: is_new.then_some(chars),
                detail: is_new,
            },
            differs: false,
            trend: Trend::None,
            drifts: 0,
        }
    }

    /// The reason if the call is idle.
    fn idle_reason(&self, min_chars: usize) -> IdleReason {
        if self.chars == 0 {
            IdleReason::Empty
        } else if self.novelty.chars.is_some() || self.chars < min_chars {
            IdleReason::Short
        } else {
            IdleReason::Seen
        }
    }
}

/// Whether a text has at least as many digits as letters.
fn is_numeric(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let letters = text.chars().filter(|letter| letter.is_alphabetic()).count();
    digits > 0 && digits >= letters
}

/// Whether another tool that does not act gave the same short output. An output that does not
/// depend on the tool is not an answer.
fn is_shared(call: &Call<'_>, intent: Intent, output: &str, seen: &mut TurnHistory) -> bool {
    let acts = !matches!(intent, Intent::Read | Intent::Other);
    if output.len() > MAX_SHARED || !output.contains(char::is_alphabetic) {
        return false;
    }
    let text = output_key(4, output);
    let by_tool = output_key(5, &format!("{}\n{output}", call.tool));
    let by_two = output_key(6, output);
    let is_known = seen.outputs.get(text).is_some();
    let is_known_here = seen.outputs.get(by_tool).is_some();
    if !acts {
        seen.outputs.insert(text, ());
        seen.outputs.insert(by_tool, ());
        if is_known && !is_known_here {
            seen.outputs.insert(by_two, ());
        }
    }
    (is_known && !is_known_here) || seen.outputs.get(by_two).is_some()
}

/// The number of new words in the texts of a call, if an earlier call had the same target. Stores
/// target and words.
fn words_added(identity: &Identity, seen: &mut TurnHistory) -> Option<usize> {
    let target = identity.target? ^ 3_u64.rotate_right(8);
    let is_new = |word: &&u32| seen.lines.insert(**word, ()).is_none();
    let new_words = identity.words.iter().filter(is_new).count();
    seen.outputs.insert(target, ()).map(|()| new_words)
}

/// Whether a command line has a new word apart from options. Stores its words. The input of another
/// tool has no options.
fn asks_more(call: &Call<'_>, seen: &mut TurnHistory) -> bool {
    let Some(line) = command_line(call) else {
        return true;
    };
    let end = line.floor_char_boundary(MAX_INPUT.min(line.len()));
    let line = line.get(..end).unwrap_or_default().trim_start();
    // `/bin/ls` is the same program as `ls`.
    let program = line.find(char::is_whitespace).unwrap_or(line.len());
    let path = line.get(..program).unwrap_or_default().rfind('/');
    let line = line.get(path.map_or(0, |at| at + 1)..).unwrap_or_default();
    let words = line.split_whitespace();
    let words = words.filter(|word| !word.starts_with('-'));
    let mut words = words.flat_map(split_words).peekable();
    // Another subcommand asks something else about the same object.
    let has_subcommands = words
        .peek()
        .is_some_and(|name| MANY.contains(&name.as_str()));
    let mut subcommand = String::new();
    let mut asks_more = false;
    for (at, word) in words.enumerate() {
        if has_subcommands && at < SUBCOMMAND_WORDS {
            subcommand.push_str(&word);
            subcommand.push(' ');
        }
        let word = key(&format!("\u{4}{subcommand}{word}"));
        asks_more |= seen.lines.insert(word, ()).is_none();
    }
    asks_more
}

/// Whether an error has a new word. Stores its words.
fn says_more(call: &Call<'_>, payload: &Payload<'_>, seen: &mut TurnHistory) -> bool {
    let end = payload
        .text
        .floor_char_boundary(MAX_ERROR.min(payload.text.len()));
    let text = payload.text.get(..end).unwrap_or_default();
    let input: Vec<&str> = input_texts(call.input).collect();
    let input = input.join("\n").to_lowercase();
    let known_cause = cause(text).is_some_and(|cause| {
        let cause = key(&format!("\u{5}{cause}"));
        seen.lines.insert(cause, ()).is_some()
    });
    let mut says_more = false;
    for word in split_words(text) {
        if !word.contains(char::is_alphabetic) {
            continue;
        }
        let known = key(&format!("\u{3}{word}"));
        // Known words need no search of the input.
        if seen.lines.get(known).is_none() && !input.contains(&word) {
            seen.lines.insert(known, ());
            says_more = true;
        }
    }
    says_more && !known_cause
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
    let not_reported = parts.answers && call.output == OUTPUT_NOT_REPORTED;
    let negative = match output.outcome {
        Outcome::Failed if !parts.errors => return Score::Idle(IdleReason::Failed),
        Outcome::Nothing => Some(IdleReason::NotFound),
        Outcome::Failed => Some(IdleReason::SameError),
        Outcome::Refused => Some(IdleReason::Refused),
        Outcome::Silent | Outcome::Answer => None,
    };
    // An error of which most lines are known is the same one in another frame.
    let is_mostly_known = |chars: usize| chars.saturating_mul(MOSTLY_KNOWN) < output.chars;
    let is_new_error = output.outcome != Outcome::Nothing
        && output.says_more
        && (output.novelty.chars).is_some_and(|chars| !is_mostly_known(chars));
    if negative.is_some() && is_new_error {
        return Score::Progress(Progress::NewError { call: index });
    }
    if output.repeated
        && parts.polling
        && let Some(score) = score_poll(index, intent, output)
    {
        return score;
    }
    if let Some(reason) = negative {
        // The same check of something else fails with other details: a report, not a message.
        let is_other_check = output.outcome == Outcome::Failed
            && output.chars >= min_chars
            && intent == Intent::Other
            && !output.repeated
            && output.asks_more
            && output.novelty.detail;
        return if is_other_check {
            Score::HalfIdle(reason)
        } else {
            Score::Idle(reason)
        };
    }
    if !not_reported && output.novelty.chars.is_some_and(|chars| chars >= min_chars) {
        return Score::Progress(Progress::Learned { call: index });
    }
    let reason = output.idle_reason(min_chars);
    if output.repeated {
        return Score::Idle(reason);
    }
    // A message to the same recipient counts only if it contains new words.
    match output
        .words_added
        .filter(|_| output.novelty.chars.is_none())
    {
        Some(0) => return Score::Idle(IdleReason::Repeated),
        Some(1..MIN_WORDS_NEW) => return Score::Unknown(IdleReason::Repeated),
        Some(_) | None => {}
    }
    if parts.edits && is_edit(intent, external, output) {
        return Score::Progress(Progress::Edited { call: index });
    }
    if intent == Intent::Act {
        return Score::Progress(Progress::Acted { call: index });
    }
    if !parts.answers {
        Score::Idle(reason)
    } else if not_reported {
        Score::Unknown(reason)
    } else {
        score_answer(index, intent, output, reason)
    }
}

/// Judges a differing output of a repeated call. `None` if it does not differ.
fn score_poll(index: usize, intent: Intent, output: &Output) -> Option<Score> {
    let advanced = Score::Progress(Progress::Advanced { call: index });
    let is_edit = matches!(intent, Intent::Edit);
    if !output.differs || is_edit {
        return None;
    }
    if output.novelty.chars.is_some() && !output.outcome.is_negative() {
        return Some(advanced);
    }
    // The numbers in an acknowledgement, such as message ids, are not measurements.
    if intent == Intent::Act {
        return None;
    }
    match output.trend {
        Trend::Advances => Some(advanced),
        Trend::Moves if output.drifts <= MAX_DRIFTS => Some(advanced),
        Trend::Moves | Trend::None => Some(Score::HalfIdle(IdleReason::Fluctuates)),
    }
}

/// Whether a new call presumably changed a file.
fn is_edit(intent: Intent, external: ExternalChange, output: &Output) -> bool {
    match intent {
        // A successful edit tool changed a file, even outside the fingerprinted tree.
        Intent::Edit => true,
        // Such commands usually print nothing; repeated output usually means failure.
        Intent::ShellWrite => {
            external != ExternalChange::Unchanged && (output.chars == 0 || output.novelty.detail)
        }
        Intent::Read | Intent::Other | Intent::Act => false,
    }
}

/// Judges the short, empty or known output of a new call.
fn score_answer(index: usize, intent: Intent, output: &Output, reason: IdleReason) -> Score {
    let learned = Score::Progress(Progress::Learned { call: index });
    let is_answer = output.chars <= MAX_ANSWER || output.is_numeric;
    let is_run = intent == Intent::Other && output.affirms;
    if output.outcome == Outcome::Silent {
        // A search without a match has no new output. Another command without output may have had
        // an effect outside the fingerprinted tree.
        return if intent == Intent::Read {
            Score::Idle(reason)
        } else {
            Score::Unknown(reason)
        };
    }
    if output.novelty.detail {
        return if is_answer {
            learned
        } else {
            Score::HalfIdle(reason)
        };
    }
    // The same answer, but to a question about something else. A page or a file that is shown again
    // is not an answer.
    if output.asks_more && (reason == IdleReason::Short || (is_answer && is_run)) {
        learned
    } else {
        Score::Idle(reason)
    }
}

/// The hash of an output, distinct for each kind of normalization.
fn output_key(kind: u64, text: &str) -> u64 {
    hash(text.as_bytes()) ^ kind.rotate_right(8)
}

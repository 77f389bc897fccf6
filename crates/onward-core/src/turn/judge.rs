//! What one call is worth: progress, half an idle step, or nothing, and why.
//!
//! [`Answer::read`] is where everything is remembered, whatever comes of it; [`weigh`] then only
//! decides. With every part switched off what remains is the plain rule: a successful output that is
//! long enough, and new but for its numbers.

use super::clean::{clean, without_numbers};
use super::echo::Question;
use super::evidence::Nothing;
use super::hash::hash;
use super::intent::{Intent, input_texts, intent};
use super::lines::{self, Lines};
use super::memory::Memory;
use super::noop::{NoOp, no_op};
use super::policy::{Parts, TurnPolicy};
use super::poll::LastAnswer;
use super::task::News;
use super::{Call, NOT_TOLD, Outside, Progress};

/// How many outputs are remembered whole, and how many calls.
pub(crate) const REMEMBERED: usize = 1024;

/// What was seen in this turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) lines: Lines,
    pub(crate) outputs: Memory<u64, (), REMEMBERED>,
    pub(crate) calls: Memory<u64, LastAnswer, REMEMBERED>,
}

/// What a call is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worth {
    /// It makes its step count.
    Progress(Progress),
    /// Nobody can tell: neither counted nor reset.
    Unknown(Nothing),
    /// Half an idle step.
    Half(Nothing),
    /// A whole one.
    Nothing(Nothing),
}

/// A call, judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) worth: Worth,
    /// What it is for.
    pub(crate) intent: Intent,
    /// Whether the same call was made before in this turn.
    pub(crate) again: bool,
    /// Whether it lets time pass, or asks again what was asked before.
    pub(crate) waits: bool,
    /// What it says of a task in the background; the [`detector`](super::detector) knows them.
    pub(crate) task: Option<News>,
}

/// Judges a call, and remembers all that it showed.
pub(crate) fn judge(
    index: usize,
    call: &Call<'_>,
    outside: Outside,
    seen: &mut Seen,
    policy: &TurnPolicy,
) -> Judged {
    let parts = policy.rule.parts();
    let intent = intent(call);
    let no_op = no_op(call, intent).filter(|_| parts.no_ops);
    let answer = Answer::read(call, seen, &parts);
    let worth = match no_op {
        Some(_) => Worth::Nothing(Nothing::NoOp),
        None => weigh(index, call, intent, outside, &answer, policy),
    };
    Judged {
        worth,
        intent,
        again: answer.again,
        waits: match no_op {
            Some(no_op) => no_op == NoOp::Wait,
            None => answer.again,
        },
        task: None,
    }
}

/// What there is to say about an output.
struct Answer {
    /// The same call was made before.
    again: bool,
    /// Characters of the whole output.
    chars: usize,
    /// How many characters of it are new, if anything is.
    news: Option<usize>,
    /// It differs from every output before, be it in a number.
    differs: bool,
    /// It moves on from the answer to the same call before.
    moves: bool,
}

impl Answer {
    fn read(call: &Call<'_>, seen: &mut Seen, parts: &Parts) -> Self {
        let text = clean(call.output);
        let chars = text.chars().count();
        if *parts == Parts::NONE {
            return Answer::plain(&text, chars, seen);
        }
        let question = Question::of(call).filter(|_| parts.echoes);
        let lines = lines::read(&text, question.as_ref(), parts);
        let exact = lines::exact(&lines);
        let differs = seen.outputs.put(tagged(1, &exact), ()).is_none();
        let asked = call_key(call);
        let last = seen.calls.get(asked);
        let now = LastAnswer::after(last, &exact);
        seen.calls.put(asked, now);
        let news = if parts.lines {
            if parts.echoes {
                lines::remember(input_texts(call.input), &mut seen.lines, parts);
            }
            lines::news(&lines, &mut seen.lines)
        } else {
            Answer::plain(&text, chars, seen).news
        };
        Answer {
            again: last.is_some(),
            chars,
            news,
            differs,
            moves: last.is_some_and(|last| now.moves_on_from(last, &exact)),
        }
    }

    /// As the plain rule reads it: news is an output that differs in more than its numbers.
    fn plain(text: &str, chars: usize, seen: &mut Seen) -> Self {
        let whole = tagged(2, &without_numbers(text));
        Answer {
            again: false,
            chars,
            news: seen.outputs.put(whole, ()).is_none().then_some(chars),
            differs: false,
            moves: false,
        }
    }

    /// Why it counts for nothing, if it does.
    fn why_nothing(&self, least: usize) -> Nothing {
        if self.chars == 0 {
            Nothing::Empty
        } else if self.news.is_some() || self.chars < least {
            Nothing::Short
        } else {
            Nothing::Seen
        }
    }
}

fn weigh(
    index: usize,
    call: &Call<'_>,
    intent: Intent,
    outside: Outside,
    answer: &Answer,
    policy: &TurnPolicy,
) -> Worth {
    let parts = policy.rule.parts();
    let least = policy.min_info_gain_length;
    if call.ok == Some(false) {
        return match (parts.errors, answer.news) {
            (true, Some(_)) => Worth::Progress(Progress::NewError { call: index }),
            (true, None) => Worth::Nothing(Nothing::SameError),
            (false, _) => Worth::Nothing(Nothing::Failed),
        };
    }
    let untold = parts.short_answers && call.output == NOT_TOLD;
    if !untold && answer.news.is_some_and(|chars| chars >= least) {
        return Worth::Progress(Progress::Learned { call: index });
    }
    if parts.edits && !answer.again && edits(intent, outside, answer) {
        return Worth::Progress(Progress::Edited { call: index });
    }
    let why = answer.why_nothing(least);
    if answer.again {
        let asks = matches!(intent, Intent::Look | Intent::Act);
        return match answer.differs && asks && parts.polling {
            true if answer.news.is_some() || answer.moves => {
                Worth::Progress(Progress::Advanced { call: index })
            }
            true => Worth::Half(why),
            false => Worth::Nothing(why),
        };
    }
    match parts.short_answers {
        true if untold => Worth::Unknown(why),
        true => weigh_short(intent, outside, answer, why),
        false => Worth::Nothing(why),
    }
}

/// Whether a call that was not made before changed a file, as far as anybody can say.
fn edits(intent: Intent, outside: Outside, answer: &Answer) -> bool {
    match intent {
        // A tool for it that succeeded did it, be it where no fingerprint looks.
        Intent::Edit => true,
        // A command for it says nothing as a rule; what it says every time is that it could not.
        Intent::Write => outside != Outside::Same && (answer.chars == 0 || answer.news.is_some()),
        Intent::Look | Intent::Act => false,
    }
}

/// A short or silent answer to a question that was not asked before.
fn weigh_short(intent: Intent, outside: Outside, answer: &Answer, why: Nothing) -> Worth {
    match intent {
        // A search that finds nothing taught nothing.
        Intent::Look if answer.chars == 0 || !answer.differs => Worth::Nothing(why),
        Intent::Look => Worth::Half(why),
        // A command that says nothing may have done something where nobody looks.
        Intent::Act | Intent::Write | Intent::Edit
            if answer.chars == 0 && outside == Outside::Unknown =>
        {
            Worth::Unknown(why)
        }
        Intent::Act | Intent::Write | Intent::Edit => Worth::Half(why),
    }
}

/// The hash of a call: its tool and its input, exactly.
fn call_key(call: &Call<'_>) -> u64 {
    hash(format!("{}\n{}", call.tool, call.input).as_bytes())
}

/// The hash of an output, apart from those of the other kind.
fn tagged(kind: u64, text: &str) -> u64 {
    hash(text.as_bytes()) ^ kind.rotate_right(8)
}

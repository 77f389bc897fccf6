//! What is done about a turn that gets nowhere: a nudge, a reminder, refusals, the end.
//!
//! The detector reports, and this says which rung that is; whoever runs the agent climbs it. A nudge
//! comes at half the threshold and once until there is progress. At the threshold the next model step
//! must be text, so every call is refused; from the third refusal on the turn is to be stopped as
//! well, where that can be done. [`OnStall`] sets how far the ladder goes. After an answer in text the
//! turn is over, and the next one begins with a fresh [`Standing`].
//!
//! What an agent reads here states facts: orders that come from outside of the conversation look like
//! somebody else's, and models are right to mistrust them.

use std::fmt;
use std::fmt::Write;
use std::str::FromStr;

use super::{Evidence, Outside, TurnPolicy, Verdict};
use crate::policy::{UnknownWord, from_word};

/// From this refusal on the turn is stopped, where it can be.
pub const STOPPING_REFUSAL: u32 = 3;

/// How every refusal begins, by which its own echo is known.
pub const REFUSAL_OPENING: &str = "Tools are closed for the rest of this turn";

/// How many calls a reminder names.
const NAMED: usize = 3;

/// How far the ladder goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OnStall {
    /// All the way: a nudge, the reminder, and no tools until there is an answer in text.
    #[default]
    TextOnly,
    /// The agent is told, and refused nothing.
    Nudge,
    /// The person is told, and the agent is not.
    Warn,
    /// Nothing is judged.
    Off,
}

impl OnStall {
    /// Every one of them.
    pub const ALL: [OnStall; 4] = [
        OnStall::TextOnly,
        OnStall::Nudge,
        OnStall::Warn,
        OnStall::Off,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            OnStall::TextOnly => "text_only",
            OnStall::Nudge => "nudge",
            OnStall::Warn => "warn",
            OnStall::Off => "off",
        }
    }
}

impl fmt::Display for OnStall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OnStall {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &OnStall::ALL, OnStall::as_str)
    }
}

/// What an owner sets about turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoopControl {
    /// How a turn is judged.
    pub turn: TurnPolicy,
    /// How many steps a turn may take; 0 is no limit.
    pub max_steps: u32,
    /// How far the ladder goes.
    pub on_stall: OnStall,
}

/// Why the next model step must be text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Held {
    /// Nothing has come of the turn for too long.
    Stalled,
    /// The turn has taken as many steps as it may.
    MaxSteps,
}

impl Held {
    /// Every reason.
    pub const ALL: [Held; 2] = [Held::Stalled, Held::MaxSteps];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Held::Stalled => "stalled",
            Held::MaxSteps => "max_steps",
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Held {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        from_word(word, &Held::ALL, Held::as_str)
    }
}

/// Where a turn stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Steps that were seen.
    pub steps: u32,
    /// Idle steps in a row.
    pub idle_steps: u32,
    /// Why the next model step must be text, if it must.
    pub held: Option<Held>,
    /// Whether the agent was nudged since the last progress.
    pub nudged: bool,
    /// Calls that were refused.
    pub refusals: u32,
}

impl Standing {
    /// Something came from outside that is no step of the turn: what was idle before it does not
    /// count any more, and tools that were closed for that are open. A limit of steps stays one.
    pub fn reset(&mut self) {
        self.idle_steps = 0;
        self.nudged = false;
        if self.held == Some(Held::Stalled) {
            self.held = None;
        }
    }
}

/// What is to be said after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// Nothing.
    Ground,
    /// One factual sentence, to the agent.
    Nudge,
    /// The reminder, to the agent.
    Reminder,
    /// A warning, to the person.
    Warning,
}

/// Whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It may.
    Open,
    /// It may not, with the reminder as the reason.
    Refused,
    /// It may not, and the turn is to be stopped.
    Stopped,
}

impl LoopControl {
    /// Notes a step that the detector has judged, and says what that leads to.
    pub fn after_step(&self, standing: &mut Standing, verdict: &Verdict) -> Rung {
        if matches!(verdict, Verdict::Ended) {
            *standing = Standing::default();
            return Rung::Ground;
        }
        standing.steps = standing.steps.saturating_add(1);
        let was_held = standing.held;
        match verdict {
            Verdict::Progress { .. } => {
                standing.reset();
                standing.held = None;
            }
            Verdict::Idle { steps, .. } => {
                standing.idle_steps = *steps;
                standing.held = None;
            }
            Verdict::Stalled { steps, .. } => {
                standing.idle_steps = *steps;
                standing.held = Some(Held::Stalled);
            }
            Verdict::Unjudged { steps } => standing.idle_steps = *steps,
            Verdict::Ended => {}
        }
        if standing.held.is_none() && self.max_steps > 0 && standing.steps >= self.max_steps {
            standing.held = Some(Held::MaxSteps);
        }
        self.rung(standing, was_held)
    }

    fn rung(&self, standing: &mut Standing, was_held: Option<Held>) -> Rung {
        let half = self.turn.stall_threshold.max(1).div_ceil(2);
        let told = match (standing.held, was_held) {
            (Some(held), before) if before != Some(held) => Rung::Reminder,
            (Some(_), _) => Rung::Ground,
            (None, _) if standing.idle_steps >= half && !standing.nudged => Rung::Nudge,
            (None, _) => Rung::Ground,
        };
        standing.nudged |= matches!(told, Rung::Nudge | Rung::Reminder);
        match (self.on_stall, told) {
            (OnStall::Off, _) | (OnStall::Warn, Rung::Nudge) => Rung::Ground,
            (OnStall::Warn, Rung::Reminder) => Rung::Warning,
            (OnStall::TextOnly | OnStall::Nudge | OnStall::Warn, told) => told,
        }
    }

    /// Says whether the next call may be made, and notes it where it may not.
    pub fn before_call(&self, standing: &mut Standing) -> Gate {
        if !self.is_closed(standing) {
            return Gate::Open;
        }
        standing.refusals = standing.refusals.saturating_add(1);
        match standing.refusals < STOPPING_REFUSAL {
            true => Gate::Refused,
            false => Gate::Stopped,
        }
    }

    /// Whether the next model step must be text.
    pub fn is_closed(&self, standing: &Standing) -> bool {
        standing.held.is_some() && self.on_stall == OnStall::TextOnly
    }
}

/// The sentence at half the threshold.
pub fn nudge(standing: &Standing, outside: Outside) -> String {
    let steps = standing.idle_steps;
    format!("In the last {steps} steps {}.", nothing_came(outside))
}

/// What an agent reads when the next step must be text.
pub fn reminder(standing: &Standing, outside: Outside, evidence: &[Evidence]) -> String {
    let mut text = why_held(standing, outside, evidence);
    text.push_str(WANTED);
    text
}

/// The same, as the reason for which a call is refused.
pub fn refusal(standing: &Standing, evidence: &[Evidence]) -> String {
    let why = why_held(standing, Outside::Unknown, evidence);
    format!("{REFUSAL_OPENING}: {}{WANTED}", uncapitalised(&why))
}

/// What a person reads whose agent's turn is stopped, or who is only warned.
pub fn for_person(standing: &Standing) -> String {
    match standing.held {
        Some(Held::MaxSteps) => {
            let steps = standing.steps;
            format!("this turn has taken {steps} steps, as many as `max_steps_per_turn` allows")
        }
        Some(Held::Stalled) | None => {
            let steps = standing.idle_steps;
            format!("the agent goes round in circles: {steps} steps in a row brought nothing new")
        }
    }
}

/// The sentence with which a turn ends whose model does nothing but call tools.
pub fn last_words(standing: &Standing) -> String {
    let why = why_held(standing, Outside::Unknown, &[]);
    let why = uncapitalised(why.trim_end_matches('.'));
    format!("I am stopping here: {why}, and no answer came without another tool call.")
}

const WANTED: &str = " What helps now is an answer in text: what is known, what was tried, and what \
                      is needed to go on. After it tools work again.";

fn nothing_came(outside: Outside) -> &'static str {
    match outside {
        Outside::Same => "no file changed and nothing new was learned",
        Outside::Unknown | Outside::Changed | Outside::Late => "nothing new was learned",
    }
}

fn why_held(standing: &Standing, outside: Outside, evidence: &[Evidence]) -> String {
    if standing.held == Some(Held::MaxSteps) {
        let steps = standing.steps;
        return format!("This turn has taken {steps} steps, as many as it may.");
    }
    let steps = standing.idle_steps;
    let mut text = format!("In the last {steps} steps {}", nothing_came(outside));
    let named = evidence.len().saturating_sub(NAMED);
    for (call, before) in evidence.iter().skip(named).zip([" (", "; ", "; "]) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{before}{call}");
    }
    text.push_str(if evidence.is_empty() { "." } else { ")." });
    text
}

fn uncapitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

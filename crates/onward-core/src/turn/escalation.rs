//! Escalation for turns without progress: nudge, reminder, rejected calls, stop.
//!
//! The detector reports and this module selects the escalation level; the program that runs the
//! agent carries it out. The nudge is sent at half the threshold, once until there is progress. At
//! the threshold the next model response must be text, so every call is rejected; from the third
//! rejection on, the turn is stopped as well if the agent supports it. [`OnStall`] limits the
//! escalation. A text answer ends the turn, and the next turn starts with a new
//! [`EscalationState`].
//!
//! Messages to the agent start with the observed facts: models rightly mistrust unexplained
//! instructions from outside the conversation.

use std::fmt;
use std::fmt::Write;
use std::str::FromStr;

use super::{Evidence, ExternalChange, OnTextLoop, TurnPolicy, Verdict};
use crate::policy::{UnknownVariant, parse_variant};

/// The number of the rejection from which on the turn is stopped.
pub const STOP_AFTER_REJECTIONS: u32 = 3;

/// Marker at the beginning of every rejection: [`rejection`] writes it, [`is_rejection`] recognizes
/// it. An agent accepts only a text as the reason for a rejection and returns it as the output of the
/// call, often after a prefix such as `Error: `. No field of a hook, a transcript or a model API
/// marks the call as rejected by Onward. If you change the marker, `is_rejection` must still
/// recognize this one, because existing sessions contain it.
pub const REJECTION_PREFIX: &str = "Tools are disabled for the rest of this turn";

/// The prefix of an output that is searched for a rejection, in characters.
const ECHO_SEARCH_CHARS: usize = 300;

/// The maximum number of calls in a reminder.
const MAX_LISTED: usize = 3;

/// The maximum escalation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OnStall {
    /// Nudge, reminder, and no tools until a text answer.
    #[default]
    TextOnly,
    /// Messages to the agent; no rejected calls.
    Nudge,
    /// A warning to the user; no messages to the agent.
    Warn,
    /// No detection.
    Off,
}

impl OnStall {
    /// All values.
    pub const ALL: [OnStall; 4] = [
        OnStall::TextOnly,
        OnStall::Nudge,
        OnStall::Warn,
        OnStall::Off,
    ];

    /// The value in the configuration.
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
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &OnStall::ALL, OnStall::as_str)
    }
}

/// The loop control settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoopControl {
    /// The detector's policy.
    pub turn: TurnPolicy,
    /// The maximum number of steps in a turn; 0 means no limit.
    pub max_steps: u32,
    /// The maximum escalation.
    pub on_stall: OnStall,
    /// The reaction to a text that repeats itself.
    pub on_text_loop: OnTextLoop,
}

/// Why the next model response must be text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextOnlyReason {
    /// The turn is stalled.
    Stalled,
    /// The turn has reached its maximum number of steps.
    MaxSteps,
}

impl TextOnlyReason {
    /// All reasons.
    pub const ALL: [TextOnlyReason; 2] = [TextOnlyReason::Stalled, TextOnlyReason::MaxSteps];

    /// The stored value.
    pub const fn as_str(self) -> &'static str {
        match self {
            TextOnlyReason::Stalled => "stalled",
            TextOnlyReason::MaxSteps => "max_steps",
        }
    }
}

impl fmt::Display for TextOnlyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TextOnlyReason {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &TextOnlyReason::ALL, TextOnlyReason::as_str)
    }
}

/// The escalation state of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EscalationState {
    /// Observed steps.
    pub steps: u32,
    /// Consecutive idle steps.
    pub idle_steps: u32,
    /// Why the next model response must be text, if it must.
    pub text_only: Option<TextOnlyReason>,
    /// Whether the agent was nudged since the last progress.
    pub nudged: bool,
    /// Rejected calls.
    pub rejections: u32,
}

impl EscalationState {
    /// Resets the idle count after an external notification, which is not a step. Tools are enabled
    /// again unless the step limit is reached.
    pub fn reset(&mut self) {
        self.idle_steps = 0;
        self.nudged = false;
        if self.text_only == Some(TextOnlyReason::Stalled) {
            self.text_only = None;
        }
    }
}

/// The message after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscalationLevel {
    /// No message.
    None,
    /// A nudge to the agent.
    Nudge,
    /// A reminder to the agent.
    Reminder,
    /// A warning to the user.
    Warning,
}

/// Whether a call is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolGate {
    /// The call is allowed.
    Allow,
    /// The call is rejected, with the reminder as the reason.
    Reject,
    /// The call is rejected, and the turn must be stopped.
    Stop,
}

impl LoopControl {
    /// Records a judged step and returns the escalation level.
    pub fn after_step(&self, state: &mut EscalationState, verdict: &Verdict) -> EscalationLevel {
        if matches!(verdict, Verdict::Ended) {
            *state = EscalationState::default();
            return EscalationLevel::None;
        }
        state.steps = state.steps.saturating_add(1);
        let previous = state.text_only;
        match verdict {
            Verdict::Progress { .. } => {
                state.reset();
                state.text_only = None;
            }
            Verdict::Idle { steps, .. } => {
                state.idle_steps = *steps;
                state.text_only = None;
            }
            Verdict::Stalled { steps, .. } => {
                state.idle_steps = *steps;
                state.text_only = Some(TextOnlyReason::Stalled);
            }
            Verdict::Unjudged { steps } => state.idle_steps = *steps,
            Verdict::Ended => {}
        }
        if state.text_only.is_none() && self.max_steps > 0 && state.steps >= self.max_steps {
            state.text_only = Some(TextOnlyReason::MaxSteps);
        }
        self.level(state, previous)
    }

    fn level(
        &self,
        state: &mut EscalationState,
        previous: Option<TextOnlyReason>,
    ) -> EscalationLevel {
        let half = self.turn.stall_threshold.max(1).div_ceil(2);
        let level = match (state.text_only, previous) {
            (Some(reason), before) if before != Some(reason) => EscalationLevel::Reminder,
            (Some(_), _) => EscalationLevel::None,
            (None, _) if state.idle_steps >= half && !state.nudged => EscalationLevel::Nudge,
            (None, _) => EscalationLevel::None,
        };
        state.nudged |= matches!(level, EscalationLevel::Nudge | EscalationLevel::Reminder);
        match (self.on_stall, level) {
            (OnStall::Off, _) | (OnStall::Warn, EscalationLevel::Nudge) => EscalationLevel::None,
            (OnStall::Warn, EscalationLevel::Reminder) => EscalationLevel::Warning,
            (OnStall::TextOnly | OnStall::Nudge | OnStall::Warn, level) => level,
        }
    }

    /// Checks whether the next call is allowed, and records a rejection.
    pub fn before_call(&self, state: &mut EscalationState) -> ToolGate {
        if !self.is_text_only(state) {
            return ToolGate::Allow;
        }
        state.rejections = state.rejections.saturating_add(1);
        if state.rejections < STOP_AFTER_REJECTIONS {
            ToolGate::Reject
        } else {
            ToolGate::Stop
        }
    }

    /// Whether the next model response must be text.
    pub fn is_text_only(&self, state: &EscalationState) -> bool {
        state.text_only.is_some() && self.on_stall == OnStall::TextOnly
    }
}

/// The nudge at half the threshold.
pub fn nudge(state: &EscalationState, external: ExternalChange) -> String {
    let steps = state.idle_steps;
    format!("In the last {steps} responses, {}.", no_progress(external))
}

/// The reminder to the agent that the next response must be text.
pub fn reminder(
    state: &EscalationState,
    external: ExternalChange,
    evidence: &[Evidence],
) -> String {
    let mut text = text_only_reason(state, external, evidence);
    text.push_str(INSTRUCTION);
    text
}

/// The reason for a rejected call.
pub fn rejection(state: &EscalationState, evidence: &[Evidence]) -> String {
    let why = text_only_reason(state, ExternalChange::Unknown, evidence);
    format!("{REJECTION_PREFIX}: {}{INSTRUCTION}", uncapitalized(&why))
}

/// Whether the output of a call is an echoed rejection, by its marker. Such a call was not executed
/// and is not part of a step.
pub fn is_rejection(output: &str) -> bool {
    let end = output.char_indices().nth(ECHO_SEARCH_CHARS);
    let head = end.and_then(|(end, _)| output.get(..end)).unwrap_or(output);
    head.contains(REJECTION_PREFIX)
}

/// The message to the user about a stopped turn, or the warning.
pub fn for_user(state: &EscalationState) -> String {
    match state.text_only {
        Some(TextOnlyReason::MaxSteps) => {
            let steps = state.steps;
            format!("the turn has reached the limit of {steps} responses (`max_steps_per_turn`)")
        }
        Some(TextOnlyReason::Stalled) | None => {
            let responses = state.idle_steps;
            format!("{responses} responses in a row produced nothing new")
        }
    }
}

/// The final answer of a turn in which the model only calls tools.
pub fn final_message(state: &EscalationState) -> String {
    let why = text_only_reason(state, ExternalChange::Unknown, &[]);
    let why = uncapitalized(why.trim_end_matches('.'));
    format!("I am stopping here: {why}, and every response was another tool call.")
}

const INSTRUCTION: &str = " Answer in text now: state what is known, what was tried and what is \
                           needed to continue. Tools are available again after that answer.";

fn no_progress(external: ExternalChange) -> &'static str {
    match external {
        ExternalChange::Unchanged => "no file changed and nothing new was learned",
        ExternalChange::Unknown | ExternalChange::Changed | ExternalChange::TimedOut => {
            "nothing new was learned"
        }
    }
}

fn text_only_reason(
    state: &EscalationState,
    external: ExternalChange,
    evidence: &[Evidence],
) -> String {
    if state.text_only == Some(TextOnlyReason::MaxSteps) {
        let steps = state.steps;
        return format!("This turn has reached its limit of {steps} responses.");
    }
    let steps = state.idle_steps;
    let mut text = format!("In the last {steps} responses, {}", no_progress(external));
    let skipped = evidence.len().saturating_sub(MAX_LISTED);
    for (call, before) in evidence.iter().skip(skipped).zip([" (", "; ", "; "]) {
        // Infallible: writes to a string.
        let _ = write!(text, "{before}{call}");
    }
    text.push_str(if evidence.is_empty() { "." } else { ")." });
    text
}

fn uncapitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

//! Events as the audit table holds them: a name, the step, and details as JSON.
//!
//! The details are read by people and programs, so their keys are those of the tools (camelCase,
//! spans in `…Ms`, ids and instants as text), and what is not there is absent, never null. They are
//! also the only record of an event: [`decode`] gives back exactly what [`encode`] was given, as
//! long as spans are whole milliseconds and numbers finite, which the rules see to.
//!
//! Some keys are there for readers only and are not looked at again: `to`, where `from` is always
//! the same also `from`, and `reason` beside a `kind` that says it all. Keys that are not known are
//! ignored; a key that is missing or does not fit is [`Undecodable`], and never guessed around.
//! Text is kept as it is, U+0000 included: what a database cannot hold is its own matter.

mod branch;
mod event;
mod plan;
mod read;
mod review;
mod step;
mod turn;
mod write;

use onward_core::branch::Action;
use onward_core::{Event, StepId};
use serde_json::Value;

use read::Fields;
pub use turn::{decode_turn, encode_turn};

/// The key under which a claim's token stands.
const CLAIM_TOKEN: &str = "claimToken";

/// An event as the audit table holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// The name in the audit trail.
    pub name: &'static str,
    /// The step that it is about, where it is about one.
    pub step: Option<StepId>,
    /// Everything else, as an object.
    pub details: Value,
}

/// A record that is no event, or no action, that this version knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Undecodable {
    /// The place inside the JSON, such as `steps[2].instructions`. Empty where it is the whole, or
    /// what stands beside it.
    pub path: String,
    /// What does not fit there, and what was expected.
    pub why: String,
}

/// Writes an event down.
pub fn encode(event: &Event) -> Encoded {
    Encoded {
        name: event.name(),
        step: event.step(),
        details: event::details(event).into(),
    }
}

/// Reads an event that was written down.
pub fn decode(name: &str, step: Option<StepId>, details: &Value) -> Result<Event, Undecodable> {
    let event = event::read(name, step, &Fields::of_whole("the details", details)?)?;
    // The step stands in a column of its own, and sometimes in the details as well.
    if event.step() == step {
        return Ok(event);
    }
    let named = |step: Option<StepId>| step.map_or("none".to_owned(), |step| format!("`{step}`"));
    Err(Undecodable {
        path: String::new(),
        why: format!(
            "the step of the event is {}, expected {}",
            named(step),
            named(event.step())
        ),
    })
}

/// Writes down what belongs to an action beside its word, which is [`Action::as_str`].
pub fn encode_action(action: &Action) -> Value {
    branch::params(action).into()
}

/// Reads an action from its word and what belongs to it.
pub fn decode_action(word: &str, params: &Value) -> Result<Action, Undecodable> {
    branch::action(word, &Fields::of_whole("the params", params)?)?.ok_or_else(|| Undecodable {
        path: String::new(),
        why: read::none_of("the action", word, &branch::ACTIONS),
    })
}

/// The details as everybody may read them who may read the trail: without any claim token, because
/// whoever holds that can finish somebody else's step.
pub fn shown(details: &Value) -> Value {
    let mut shown = details.clone();
    // A list of what is left to look at, not recursion: data may be nested as deep as it likes.
    let mut left = vec![&mut shown];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(fields) => {
                fields.remove(CLAIM_TOKEN);
                left.extend(fields.values_mut());
            }
            Value::Array(items) => left.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    shown
}

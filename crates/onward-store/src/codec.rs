//! Codec of events for the audit trail: a name, the step, and details as JSON.
//!
//! The keys are those of the tools (camelCase, durations in `…Ms`, ids and times as text). An
//! absent value has no key, never null. [`decode`] is the exact inverse of [`encode`]. Keys
//! for readers only are not decoded: `to`, a constant `from`, and a `reason` that the `kind`
//! implies.
//!
//! Unknown keys are ignored. A missing or invalid key is [`Undecodable`]. Text is kept unchanged.

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

/// Key of a claim token.
const CLAIM_TOKEN: &str = "claimToken";

/// An encoded event.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// Name of the event.
    pub name: &'static str,
    /// Step that it concerns, if any.
    pub step: Option<StepId>,
    /// All other data, as an object.
    pub details: Value,
}

/// A record that this version cannot decode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Undecodable {
    /// Path inside the JSON, such as `steps[2].instructions`. Empty for the whole value, and for
    /// data outside it.
    pub path: String,
    /// The invalid part and the expected value.
    pub why: String,
}

/// Encodes an event.
pub fn encode(event: &Event) -> Encoded {
    Encoded {
        name: event.name(),
        step: event.step(),
        details: event::details(event).into(),
    }
}

/// Decodes an event.
pub fn decode(name: &str, step: Option<StepId>, details: &Value) -> Result<Event, Undecodable> {
    let event = event::read(name, step, &Fields::of_whole("the details", details)?)?;
    // The step has a separate column, and is sometimes in the details as well.
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

/// Encodes the parameters of an action. Its name is [`Action::as_str`].
pub fn encode_action(action: &Action) -> Value {
    branch::params(action).into()
}

/// Decodes an action from its name and parameters.
pub fn decode_action(word: &str, params: &Value) -> Result<Action, Undecodable> {
    branch::action(word, &Fields::of_whole("the params", params)?)?.ok_or_else(|| Undecodable {
        path: String::new(),
        why: read::none_of("the action", word, &branch::ACTIONS),
    })
}

/// The details for readers of the audit trail, without claim tokens: with a token, a reader could
/// complete the step of another agent.
pub fn shown(details: &Value) -> Value {
    let mut shown = details.clone();
    // A work list instead of recursion, because data may be nested arbitrarily deep.
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

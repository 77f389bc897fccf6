//! Codec of events for the audit trail: a name, the step, and details as JSON.
//!
//! The keys are those of the tools (camelCase, durations in `…Ms`, ids and times as text), in
//! alphabetical order. An absent value has no key, never null. [`decode`] is the exact inverse of
//! [`encode`]. Private types with the structure of the JSON, the *mirrors*, are serialized with
//! serde; `encode.rs` and `decode.rs` convert between them and the types of the core.
//!
//! Unknown keys are ignored. A missing or invalid key is [`Undecodable`]. Text is kept unchanged.

pub(crate) mod budget;
mod decode;
mod details;
mod encode;
pub(crate) mod gates;
pub(crate) mod json;
mod part;
pub(crate) mod review;
pub(crate) mod scalar;
mod turn;

use std::fmt::Display;

use onward_core::branch::Action;
use onward_core::{Event, Json, StepId};
use serde_json::Value;

use details::Details;
use part::Params;
pub use turn::{decode_turn, encode_turn};

/// Maximum number of characters of an error message. Details contain claim tokens and whole
/// reports, and errors are logged.
const MAX_MESSAGE: usize = 400;

/// An encoded event.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// Name of the event.
    pub name: &'static str,
    /// Step that it concerns, if any.
    pub step: Option<StepId>,
    /// All other data, as an object.
    pub details: Json,
}

/// A record that this version cannot decode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Undecodable {
    /// Path inside the JSON, such as `steps[2].instructions`. Empty for the whole value, and for
    /// data outside it. If a key is missing, the path of its object.
    pub path: String,
    /// The path, the invalid part and the expected value.
    pub why: String,
}

impl Undecodable {
    fn new(path: &str, why: impl Display) -> Self {
        let mut why = if path.is_empty() {
            why.to_string()
        } else {
            format!("`{path}`: {why}")
        };
        if let Some((end, _)) = why.char_indices().nth(MAX_MESSAGE) {
            why.truncate(end);
            why.push('…');
        }
        let path = path.to_owned();
        Self { path, why }
    }
}

/// Error for a name that is not one of the expected ones.
fn unknown(path: &str, word: &str, expected: &[&str]) -> Undecodable {
    let expected = expected.join("`, `");
    let why = format!("unknown value `{word}`: expected one of `{expected}`");
    Undecodable::new(path, why)
}

/// A required name.
fn word<T: Copy>(
    key: &str,
    word: Option<String>,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, Undecodable> {
    let word = required(key, word)?;
    let named = all.iter().copied().find(|value| name(*value) == word);
    named.ok_or_else(|| {
        let names: Vec<&str> = all.iter().copied().map(name).collect();
        unknown(key, &word, &names)
    })
}

/// A key that the event cannot be without.
fn required<T>(key: &str, value: Option<T>) -> Result<T, Undecodable> {
    value.ok_or_else(|| Undecodable::new("", format!("missing field `{key}`")))
}

/// Encodes an event for readers.
pub fn encode(event: &Event) -> Encoded {
    Encoded {
        name: event.name(),
        step: event.step(),
        details: json::text(&Details::from(event)),
    }
}

/// The details of an event, as they are stored.
pub fn encode_details(event: &Event) -> String {
    json::write(&Details::from(event))
}

/// Decodes an event from its name, its step and its stored details.
pub fn decode(name: &str, step: Option<StepId>, details: &str) -> Result<Event, Undecodable> {
    let event = decode::event(name, step, json::read_object(details)?)?;
    // The step has a separate column, and is sometimes in the details as well.
    if event.step() == step {
        return Ok(event);
    }
    let named = |step: Option<StepId>| step.map_or("none".to_owned(), |step| format!("`{step}`"));
    let (found, expected) = (named(step), named(event.step()));
    let why = format!("the step of the event is {found}, expected {expected}");
    Err(Undecodable::new("", why))
}

/// Encodes the parameters of an action. Its name is [`Action::as_str`].
pub fn encode_action(action: &Action) -> Value {
    value(&Params::from(action))
}

/// Decodes an action from its name and its stored parameters.
pub fn decode_action(word: &str, params: &str) -> Result<Action, Undecodable> {
    json::read_object::<Params<String>>(params)?.action(word)
}

fn value(mirror: &impl serde::Serialize) -> Value {
    // Fails only for keys that are not text.
    serde_json::to_value(mirror).unwrap_or_default()
}

/// The details for readers of the audit trail, without claim tokens: with a token, a reader could
/// complete the step of another agent.
pub fn shown(details: &Json) -> Json {
    if !details.as_str().contains("claimToken") {
        return details.clone();
    }
    let mut shown = details.parse().unwrap_or_default();
    // A work list instead of recursion, because data may be nested arbitrarily deep.
    let mut left = vec![&mut shown];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(fields) => {
                fields.remove("claimToken");
                left.extend(fields.values_mut());
            }
            Value::Array(items) => left.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    shown.into()
}

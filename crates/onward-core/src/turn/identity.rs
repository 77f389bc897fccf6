//! The identity of a call: which calls are repetitions of which.
//!
//! Comments of the agent on its call do not belong to the identity, nor does a pause before the
//! command. A message to the same recipient in other words is a repetition unless it has something
//! to add.

use std::fmt::Write;

use serde_json::Value;

use super::Call;
use super::hash::{hash, key};
use super::intent::command_line;
use super::outcome::split_words;

/// Fields in which an agent comments on its call.
const COMMENTS: [&str; 8] = [
    "description",
    "explanation",
    "instruction",
    "activeForm",
    "summary",
    "thought",
    "reasoning",
    "rationale",
];
/// The number of words from which a value is a text and not a name.
const MIN_TEXT_WORDS: usize = 3;

/// The identity of a call.
pub(crate) struct Identity {
    /// Tool and input.
    pub(crate) call: u64,
    /// Tool and input without texts, if there are texts.
    pub(crate) target: Option<u64>,
    /// The words of the texts.
    pub(crate) words: Vec<u32>,
}

/// The identity of a call. Only an action has a target.
pub(crate) fn identity(call: &Call<'_>, acts: bool) -> Identity {
    let mut exact = format!("{}\n", call.tool);
    let mut target = exact.clone();
    let mut words = acts.then(Vec::new);
    match command_line(call) {
        Some(line) => {
            exact.push_str(&without_pause(line));
            let fields = call.input.as_object().into_iter().flatten();
            let skipped = COMMENTS.iter().chain(&["command", "cmd", "script"]);
            for (name, value) in
                fields.filter(|(name, _)| !skipped.clone().any(|skip| skip == name))
            {
                // Infallible: writes to a string.
                let _ = write!(exact, "\n{name}: {value}");
            }
        }
        None => {
            let other = has_other_fields(call.input);
            write_value(call.input, other, &mut exact, &mut target, &mut words);
        }
    }
    let words = words.unwrap_or_default();
    Identity {
        call: hash(exact.as_bytes()),
        target: (!words.is_empty()).then(|| hash(target.as_bytes())),
        words,
    }
}

/// Whether an input has fields that are not comments.
fn has_other_fields(input: &Value) -> bool {
    let Value::Object(fields) = input else {
        return false;
    };
    fields.keys().any(|name| !COMMENTS.contains(&name.as_str()))
}

fn write_value(
    value: &Value,
    skips_comments: bool,
    exact: &mut String,
    target: &mut String,
    words: &mut Option<Vec<u32>>,
) {
    // Infallible: all writes are to strings.
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if skips_comments && COMMENTS.contains(&name.as_str()) {
                    continue;
                }
                let _ = write!(exact, "{name}:");
                let _ = write!(target, "{name}:");
                write_value(value, skips_comments, exact, target, words);
            }
        }
        Value::Array(items) => {
            for item in items {
                write_value(item, skips_comments, exact, target, words);
            }
        }
        Value::String(text) => {
            let _ = writeln!(exact, "{text}");
            if text.split_whitespace().count() < MIN_TEXT_WORDS {
                let _ = writeln!(target, "{text}");
            } else if let Some(words) = words {
                words.extend(text_words(text));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            let _ = writeln!(exact, "{value}");
            let _ = writeln!(target, "{value}");
        }
    }
}

fn text_words(text: &str) -> impl Iterator<Item = u32> {
    split_words(text).map(|word| key(&format!("\u{1}{word}")))
}

/// A command line without pauses and with single spaces.
fn without_pause(line: &str) -> String {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    while words.first() == Some(&"sleep") && words.len() > 3 {
        let separator = words.get(1).is_some_and(|word| word.ends_with(';'));
        let after = if separator { 2 } else { 3 };
        words.drain(..after);
    }
    words.join(" ")
}

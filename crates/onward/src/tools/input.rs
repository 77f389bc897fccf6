//! Whether arguments fit a tool's schema: everything that is wrong with them, with its place.
//!
//! The schema that is checked is the one that agents are shown, so the two cannot differ; only the
//! words of JSON Schema that our schemas use are understood. What needs the plan to judge is the
//! core's business. On the way, `null` for an optional field is taken out, as if it had been left
//! out, and a whole number that was written as `3.0` becomes `3`.

use onward_core::refusal::Issue;
use serde_json::{Map, Value};

/// More than this many issues help nobody.
const MOST: usize = 20;
/// Longer texts are not repeated in an answer.
const LONGEST_WORD: usize = 60;

/// Checks the arguments of a call, and brings them into the form that they are read in.
pub(super) fn read(arguments: &mut Value, schema: &Map<String, Value>) -> Vec<Issue> {
    read_at(arguments, schema, "")
}

/// The same for a part of them.
pub(super) fn read_at(part: &mut Value, schema: &Map<String, Value>, path: &str) -> Vec<Issue> {
    let mut found = Found(Vec::new());
    found.value(part, schema, path);
    found.0
}

/// What is wrong so far.
struct Found(Vec<Issue>);

impl Found {
    fn add(&mut self, path: &str, message: impl Into<String>) {
        if self.0.len() < MOST {
            self.0.push(Issue {
                path: if path.is_empty() { "arguments" } else { path }.to_owned(),
                message: message.into(),
            });
        }
    }

    fn value(&mut self, value: &mut Value, schema: &Map<String, Value>, path: &str) {
        if let Some(wanted) = text(schema, "type")
            && !is(value, wanted)
        {
            self.add(path, format!("must be {}, not {}", a(wanted), kind(value)));
            return;
        }
        if let Some(Value::Array(words)) = schema.get("enum")
            && !words.contains(value)
        {
            let words: Vec<String> = words.iter().filter_map(Value::as_str).map(quoted).collect();
            self.add(path, format!("must be one of {}", words.join(", ")));
            return;
        }
        match value {
            Value::String(text) => self.length(text, schema, path),
            Value::Number(number) => {
                if let Some(number) = number.as_f64() {
                    self.range(number, schema, path);
                }
            }
            Value::Array(all) => self.array(all, schema, path),
            Value::Object(object) => self.object(object, schema, path),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn length(&mut self, text: &str, schema: &Map<String, Value>, path: &str) {
        let max = size(schema, "maxLength").unwrap_or(usize::MAX);
        if text.is_empty() && size(schema, "minLength").is_some() {
            self.add(path, "must not be empty");
        } else if text.len() > max {
            // No text has more characters than bytes, so most need no counting.
            let length = text.chars().count();
            if length > max {
                self.add(
                    path,
                    format!("has {length} characters, at most {max} are allowed"),
                );
            }
        }
    }

    fn range(&mut self, number: f64, schema: &Map<String, Value>, path: &str) {
        let counts = text(schema, "type") == Some("integer");
        let bound = |word: &str, else_at: u32| {
            let bound = schema.get(word).filter(|bound| bound.is_number()).cloned();
            // What counts something needs no words for where it begins and ends.
            bound.or_else(|| counts.then(|| else_at.into()))
        };
        let (min, max) = (bound("minimum", 0), bound("maximum", u32::MAX));
        let below = min.as_ref().and_then(Value::as_f64);
        let above = max.as_ref().and_then(Value::as_f64);
        if below.is_some_and(|min| number < min) || above.is_some_and(|max| number > max) {
            let message = match (min, max) {
                (Some(min), Some(max)) => format!("must be between {min} and {max}"),
                (Some(min), None) => format!("must be at least {min}"),
                (None, Some(max)) => format!("must be at most {max}"),
                (None, None) => return,
            };
            self.add(path, message);
        }
    }

    fn array(&mut self, all: &mut [Value], schema: &Map<String, Value>, path: &str) {
        let min = size(schema, "minItems").unwrap_or(0);
        let max = size(schema, "maxItems").unwrap_or(usize::MAX);
        let has = all.len();
        if has < min {
            self.add(path, format!("has {has} entries, must have at least {min}"));
        } else if has > max {
            self.add(
                path,
                format!("has {has} entries, at most {max} are allowed"),
            );
            return;
        }
        let Some(Value::Object(items)) = schema.get("items") else {
            return;
        };
        for (place, one) in all.iter_mut().enumerate() {
            // The path is made before it is known whether it is needed: a long list of sound
            // entries is worth a look without one.
            if self.0.len() >= MOST {
                return;
            }
            self.value(one, items, &format!("{path}[{place}]"));
        }
    }

    fn object(&mut self, object: &mut Map<String, Value>, schema: &Map<String, Value>, path: &str) {
        let Some(Value::Object(known)) = schema.get("properties") else {
            // Data of the agent's own shape.
            return;
        };
        let required = |name: &str| match schema.get("required") {
            Some(Value::Array(names)) => names.iter().any(|one| one == name),
            _ => false,
        };
        object.retain(|name, value| {
            !(value.is_null() && known.contains_key(name) && !required(name))
        });
        for name in object.keys().filter(|name| !known.contains_key(*name)) {
            self.add(&inside(path, name), unknown(name, known));
        }
        for (name, schema) in known {
            let path = inside(path, name);
            match (object.get_mut(name), schema) {
                (Some(value), Value::Object(schema)) => self.value(value, schema, &path),
                (None, _) if required(name) => self.add(&path, "is missing"),
                (Some(_) | None, _) => {}
            }
        }
    }
}

/// A field that is not known here; with the one that was probably meant.
fn unknown(name: &str, known: &Map<String, Value>) -> String {
    let flat = |name: &str| -> String {
        let letters = name.chars().filter(|char| char.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let given = flat(name);
    let meant = known.keys().find(|known| {
        let known = flat(known);
        known == given || (given.len() > 3 && (known.contains(&given) || given.contains(&known)))
    });
    match meant {
        Some(meant) => format!("is unknown; did you mean `{meant}`?"),
        None if known.is_empty() => "is unknown: there are no fields here".to_owned(),
        None => {
            let known: Vec<String> = known.keys().map(|name| quoted(name)).collect();
            format!("is unknown; there are {}", known.join(", "))
        }
    }
}

fn inside(path: &str, name: &str) -> String {
    let name: String = name.chars().take(LONGEST_WORD).collect();
    match path {
        "" => name,
        path => format!("{path}.{name}"),
    }
}

fn quoted(word: &str) -> String {
    format!("`{word}`")
}

fn text<'a>(schema: &'a Map<String, Value>, word: &str) -> Option<&'a str> {
    schema.get(word).and_then(Value::as_str)
}

fn size(schema: &Map<String, Value>, word: &str) -> Option<usize> {
    let size = schema.get(word)?.as_u64()?;
    usize::try_from(size).ok()
}

/// Whether the value is what the schema wants, once a whole number is written as one.
fn is(value: &mut Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => {
            if let Some(whole) = value.as_f64().filter(|_| value.is_f64()).and_then(whole) {
                *value = whole.into();
            }
            value.is_i64() || value.is_u64()
        }
        _ => true,
    }
}

/// The whole number that this is, if it is one and can be told apart from its neighbours.
fn whole(number: f64) -> Option<i64> {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let fits = number.fract() == 0.0 && number.abs() <= LARGEST;
    // Written out, since there is no conversion that cannot round.
    fits.then(|| format!("{number:.0}").parse().ok()).flatten()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn a(wanted: &str) -> &'static str {
    match wanted {
        "string" => "a string",
        "boolean" => "true or false",
        "array" => "an array",
        "object" => "an object",
        "number" => "a number",
        "integer" => "a whole number",
        _ => "something else",
    }
}

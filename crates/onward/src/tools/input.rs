//! Validation of arguments against a tool's input schema. Reports every issue with its path.
//!
//! It checks the same schema that agents see, and supports only the JSON Schema keywords that our
//! schemas use. Rules that depend on the plan are checked by the core. Validation also normalizes:
//! it removes `null` for optional fields and turns an integer written as `3.0` into `3`.

use onward_core::refusal::Issue;
use serde_json::{Map, Value};
use similar::get_close_matches;

const MAX_ISSUES: usize = 20;
/// Characters of an unknown field name that an error repeats.
const MAX_QUOTED: usize = 60;
/// The similarity of a field that is suggested for an unknown one, at most 1.
const SIMILARITY: f32 = 0.75;
/// Fields whose limits the core checks, because it reports them with a more specific code.
const CHECKED_BY_CORE: [&str; 5] = [
    "afterStepOrder",
    "conditionExpression",
    "dependsOn",
    "insertAfterOrder",
    "targetStepOrder",
];

/// Validates and normalizes the arguments of a call.
pub(super) fn validate(arguments: &mut Value, schema: &Map<String, Value>) -> Vec<Issue> {
    let mut issues = Issues(Vec::new());
    issues.value(arguments, schema, "");
    issues.0
}

struct Issues(Vec<Issue>);

impl Issues {
    fn add(&mut self, path: &str, message: impl Into<String>) {
        if self.0.len() < MAX_ISSUES {
            self.0.push(Issue {
                path: if path.is_empty() { "arguments" } else { path }.to_owned(),
                message: message.into(),
            });
        }
    }

    fn value(&mut self, value: &mut Value, schema: &Map<String, Value>, path: &str) {
        let expected = types(schema);
        if !expected.is_empty() && !expected.iter().any(|kind| has_type(value, kind)) {
            let expected: Vec<&str> = expected.iter().map(|kind| type_phrase(kind)).collect();
            let (expected, actual) = (expected.join(" or "), type_of(value));
            self.add(path, format!("must be {expected}, not {actual}"));
            return;
        }
        if let Some(Value::Array(values)) = schema.get("enum")
            && !values.contains(value)
        {
            let values = values.iter().filter_map(Value::as_str).map(quoted);
            let values: Vec<String> = values.collect();
            self.add(path, format!("must be one of {}", values.join(", ")));
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
            // A text never has more characters than bytes, so most texts need no counting.
            let length = text.chars().count();
            if length > max && !is_checked_by_core(path) {
                self.add(
                    path,
                    format!("must have at most {max} characters, has {length}"),
                );
            }
        }
    }

    fn range(&mut self, number: f64, schema: &Map<String, Value>, path: &str) {
        let is_integer = types(schema).contains(&"integer");
        let is_checked_by_core = is_checked_by_core(path);
        let bound = |name: &str, default: u32| {
            let bound = schema.get(name).filter(|_| !is_checked_by_core).cloned();
            // Without bounds, an integer must fit into `u32`.
            bound.or_else(|| is_integer.then(|| default.into()))
        };
        let (min, max) = (bound("minimum", 0), bound("maximum", u32::MAX));
        let lower = min.as_ref().and_then(Value::as_f64);
        let upper = max.as_ref().and_then(Value::as_f64);
        if lower.is_some_and(|min| number < min) || upper.is_some_and(|max| number > max) {
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
        let length = all.len();
        if length == 0 && min > 0 {
            self.add(path, "must not be empty");
        } else if length < min {
            self.add(
                path,
                format!("must have at least {min} entries, has {length}"),
            );
        } else if length > max {
            self.add(
                path,
                format!("must have at most {max} entries, has {length}"),
            );
            return;
        }
        let Some(Value::Object(items)) = schema.get("items") else {
            return;
        };
        for (index, item) in all.iter_mut().enumerate() {
            if self.0.len() >= MAX_ISSUES {
                return;
            }
            self.value(item, items, &format!("{path}[{index}]"));
        }
    }

    fn object(&mut self, object: &mut Map<String, Value>, schema: &Map<String, Value>, path: &str) {
        let Some(Value::Object(known)) = schema.get("properties") else {
            // Free-form data.
            return;
        };
        let required = |name: &str| match schema.get("required") {
            Some(Value::Array(names)) => names.iter().any(|one| one == name),
            _ => false,
        };
        object.retain(|name, value| {
            !(value.is_null() && known.contains_key(name) && !required(name))
        });
        let unknown_names = object.keys().filter(|name| !known.contains_key(*name));
        // The work does not depend on the number of unknown fields.
        for name in unknown_names.take(MAX_ISSUES) {
            self.add(&inside(path, name), unknown(name, known));
        }
        for (name, schema) in known {
            let path = inside(path, name);
            match (object.get_mut(name), schema) {
                (Some(value), Value::Object(schema)) => self.value(value, schema, &path),
                (None, _) if required(name) => self.add(&path, "is required"),
                (Some(_) | None, _) => {}
            }
        }
    }
}

/// Whether the core checks the limits of the field at `path`, or of its entries.
fn is_checked_by_core(path: &str) -> bool {
    let field = path.rsplit('.').next().unwrap_or_default();
    let field = field.split('[').next().unwrap_or_default();
    CHECKED_BY_CORE.contains(&field)
}

/// The message for an unknown field, with the field that was probably meant.
fn unknown(name: &str, known: &Map<String, Value>) -> String {
    let simplified = |name: &str| -> String {
        let letters = name.chars().take(MAX_QUOTED);
        let letters = letters.filter(|char| char.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let wrong = simplified(name);
    let meant = known.keys().find(|known| {
        let known = simplified(known);
        known == wrong || (wrong.len() > 3 && (known.contains(&wrong) || wrong.contains(&known)))
    });
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    let similar = || {
        let short = (name.len() <= MAX_QUOTED).then_some(name)?;
        let closest = get_close_matches(short, &names, 1, SIMILARITY);
        closest.first().copied()
    };
    match meant.map(String::as_str).or_else(similar) {
        Some(meant) => format!("is not a known field; did you mean `{meant}`?"),
        None if known.is_empty() => "is not a known field; this object has no fields".to_owned(),
        None => {
            let known: Vec<String> = known.keys().map(|name| quoted(name)).collect();
            format!("is not a known field; use {}", known.join(", "))
        }
    }
}

fn inside(path: &str, name: &str) -> String {
    let name: String = name.chars().take(MAX_QUOTED).collect();
    match path {
        "" => name,
        path => format!("{path}.{name}"),
    }
}

fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// The allowed types; empty if any type is.
fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    }
}

fn size(schema: &Map<String, Value>, keyword: &str) -> Option<usize> {
    let size = schema.get(keyword)?.as_u64()?;
    usize::try_from(size).ok()
}

/// Whether the value has the type. Turns an integer written as a float into an integer first.
fn has_type(value: &mut Value, expected: &str) -> bool {
    match expected {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => {
            if let Some(integer) = value.as_f64().filter(|_| value.is_f64()).and_then(integer) {
                *value = integer.into();
            }
            value.is_i64() || value.is_u64()
        }
        _ => true,
    }
}

/// The integer value of a float, if it has one that a float represents exactly.
fn integer(number: f64) -> Option<i64> {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
    let is_exact = number.fract() == 0.0 && number.abs() <= MAX_SAFE_INTEGER;
    // Through text, because `as` could round.
    is_exact
        .then(|| format!("{number:.0}").parse().ok())
        .flatten()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn type_phrase(expected: &str) -> &'static str {
    match expected {
        "string" => "a string",
        "boolean" => "a boolean",
        "array" => "an array",
        "object" => "an object",
        "number" => "a number",
        "integer" => "an integer",
        _ => "another type",
    }
}

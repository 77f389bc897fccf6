//! Adds entries to JSON text and removes them. The rest of the text is preserved.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

/// The JSON dialect that the agent reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// JSON.
    Strict,
    /// JSON with comments.
    Comments,
    /// JSON with comments and trailing commas.
    TrailingCommas,
}

/// An entry of Onward.
pub(super) enum Entry {
    /// A member of the object at `path`.
    Member {
        path: Vec<&'static str>,
        name: &'static str,
        value: Value,
    },
    /// A member that the agent requires: added if missing, never removed.
    Required { name: &'static str, value: Value },
    /// An element of the array at `path`.
    Element {
        path: Vec<&'static str>,
        value: Value,
        /// Whether an element is one of Onward's; its second argument is `suffix`.
        is_ours: fn(&Value, &str) -> bool,
        /// The end of the commands of Onward's hooks.
        suffix: String,
    },
}

/// Adds the entries. Returns the text unchanged if it contains all of them.
pub(super) fn add(text: &str, entries: &[Entry], syntax: Syntax) -> Result<String, String> {
    let root = parse(text, syntax)?;
    let object = root
        .object_value_or_create()
        .ok_or("the file is not a JSON object")?;
    let mut changed = false;
    for entry in entries {
        changed |= match entry {
            Entry::Member { path, name, value } => set(&object_at(&object, path)?, name, value),
            Entry::Required { name, value } => match object.get(name) {
                Some(_) => false,
                None => set(&object, name, value),
            },
            Entry::Element {
                path,
                value,
                is_ours,
                suffix,
            } => append(&array_at(&object, path)?, value, *is_ours, suffix),
        };
    }
    if !changed {
        return Ok(text.to_owned());
    }
    let mut text = root.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Removes the entries. Returns the text unchanged if it contains none of them.
pub(super) fn remove(text: &str, entries: &[Entry], syntax: Syntax) -> Result<String, String> {
    let root = parse(text, syntax)?;
    let Some(object) = root.object_value() else {
        return Ok(text.to_owned());
    };
    let mut changed = false;
    for entry in entries {
        changed |= match entry {
            Entry::Required { .. } => false,
            Entry::Member { path, name, .. } => remove_member(&object, path, name),
            Entry::Element {
                path,
                is_ours,
                suffix,
                ..
            } => remove_elements(&object, path, *is_ours, suffix),
        };
    }
    if changed {
        Ok(root.to_string())
    } else {
        Ok(text.to_owned())
    }
}

fn parse(text: &str, syntax: Syntax) -> Result<CstRootNode, String> {
    let options = ParseOptions {
        allow_comments: syntax != Syntax::Strict,
        allow_trailing_commas: syntax == Syntax::TrailingCommas,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let invalid = |error: String| {
        let line = error.lines().next().unwrap_or_default();
        format!("invalid JSON: {line}")
    };
    // The tree parser always accepts comments.
    if syntax == Syntax::Strict {
        let plain = serde_json::from_str::<serde::de::IgnoredAny>(text);
        plain.map_err(|error| invalid(error.to_string()))?;
    }
    CstRootNode::parse(text, &options).map_err(|error| invalid(error.to_string()))
}

/// Returns the object at a path, created if missing.
fn object_at(object: &CstObject, path: &[&str]) -> Result<CstObject, String> {
    path.iter().try_fold(object.clone(), |object, name| {
        let inner = object.object_value_or_create(name);
        inner.ok_or_else(|| format!("`{name}` is not an object"))
    })
}

/// Returns the array at a path, created if missing.
fn array_at(object: &CstObject, path: &[&str]) -> Result<CstArray, String> {
    let Some((name, parents)) = path.split_last() else {
        return Err("the path of an array is empty".to_owned());
    };
    let array = object_at(object, parents)?.array_value_or_create(name);
    array.ok_or_else(|| format!("`{name}` is not an array"))
}

/// Sets a member. Returns whether the object changed.
fn set(object: &CstObject, name: &str, value: &Value) -> bool {
    match object.get(name) {
        Some(member)
            if member
                .value()
                .and_then(|node| node.to_serde_value())
                .as_ref()
                == Some(value) =>
        {
            false
        }
        Some(member) => {
            member.set_value(input(value));
            true
        }
        None => {
            object.append(name, input(value));
            true
        }
    }
}

/// Appends an element, replacing outdated elements of Onward. Returns whether the array changed.
fn append(
    array: &CstArray,
    value: &Value,
    is_ours: fn(&Value, &str) -> bool,
    suffix: &str,
) -> bool {
    let ours = our_elements(array, is_ours, suffix);
    if let [only] = ours.as_slice()
        && only.to_serde_value().as_ref() == Some(value)
    {
        return false;
    }
    ours.into_iter().for_each(CstNode::remove);
    array.append(input(value));
    true
}

fn our_elements(array: &CstArray, is_ours: fn(&Value, &str) -> bool, suffix: &str) -> Vec<CstNode> {
    let mut elements = array.elements();
    elements.retain(|element| {
        let value = element.to_serde_value();
        value.is_some_and(|value| is_ours(&value, suffix))
    });
    elements
}

fn remove_member(object: &CstObject, path: &[&str], name: &str) -> bool {
    let inner = path
        .iter()
        .try_fold(object.clone(), |object, name| object.object_value(name));
    let Some(member) = inner.and_then(|inner| inner.get(name)) else {
        return false;
    };
    member.remove();
    prune(object, path);
    true
}

fn remove_elements(
    object: &CstObject,
    path: &[&str],
    is_ours: fn(&Value, &str) -> bool,
    suffix: &str,
) -> bool {
    let Some((name, parents)) = path.split_last() else {
        return false;
    };
    let inner = parents
        .iter()
        .try_fold(object.clone(), |object, name| object.object_value(name));
    let Some(array) = inner.and_then(|inner| inner.array_value(name)) else {
        return false;
    };
    let ours = our_elements(&array, is_ours, suffix);
    if ours.is_empty() {
        return false;
    }
    ours.into_iter().for_each(CstNode::remove);
    prune(object, path);
    true
}

/// Removes the containers on a path that have become empty, innermost first.
fn prune(object: &CstObject, path: &[&str]) {
    for depth in (0..path.len()).rev() {
        let (Some(parents), Some(name)) = (path.get(..depth), path.get(depth)) else {
            return;
        };
        let inner = parents
            .iter()
            .try_fold(object.clone(), |object, name| object.object_value(name));
        let Some(member) = inner.and_then(|inner| inner.get(name)) else {
            return;
        };
        let is_empty = match (member.object_value(), member.array_value()) {
            (Some(object), _) => object.properties().is_empty(),
            (_, Some(array)) => array.elements().is_empty(),
            (None, None) => false,
        };
        if !is_empty {
            return;
        }
        member.remove();
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(elements) => CstInputValue::Array(elements.iter().map(input).collect()),
        Value::Object(object) => {
            let members = object
                .iter()
                .map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}

//! Entries in a JSON file: put in, and taken out, with everything else left as people wrote it.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

/// What a file's reader takes beyond plain JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leniency {
    /// Nothing.
    Strict,
    /// Comments.
    Comments,
    /// Comments, and commas behind the last.
    TrailingCommas,
}

/// One entry.
pub(super) enum Entry {
    /// A member of an object: the objects' names on the way, its own name, its value.
    Member {
        at: Vec<&'static str>,
        name: &'static str,
        value: Value,
    },
    /// A member that the file needs, ours or not; it stays when we go.
    Needed { name: &'static str, value: Value },
    /// An element of a list: the names on the way, its value, and how an old one of ours is known.
    Element {
        at: Vec<&'static str>,
        value: Value,
        is_ours: fn(&Value, &str) -> bool,
        /// What `is_ours` looks for.
        mark: String,
    },
}

/// The text with the entries in it; the very same text where they are.
pub(super) fn put_in(text: &str, entries: &[Entry], leniency: Leniency) -> Result<String, String> {
    let root = parse(text, leniency)?;
    let object = root
        .object_value_or_create()
        .ok_or("the file holds no object")?;
    let mut changed = false;
    for entry in entries {
        changed |= match entry {
            Entry::Member { at, name, value } => set(&down(&object, at)?, name, value),
            Entry::Needed { name, value } => match object.get(name) {
                Some(_) => false,
                None => set(&object, name, value),
            },
            Entry::Element {
                at,
                value,
                is_ours,
                mark,
            } => append(&list(&object, at)?, value, *is_ours, mark),
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

/// The text without the entries; the very same text where there are none.
pub(super) fn take_out(
    text: &str,
    entries: &[Entry],
    leniency: Leniency,
) -> Result<String, String> {
    let root = parse(text, leniency)?;
    let Some(object) = root.object_value() else {
        return Ok(text.to_owned());
    };
    let mut changed = false;
    for entry in entries {
        changed |= match entry {
            Entry::Needed { .. } => false,
            Entry::Member { at, name, .. } => remove_member(&object, at, name),
            Entry::Element {
                at, is_ours, mark, ..
            } => remove_elements(&object, at, *is_ours, mark),
        };
    }
    match changed {
        true => Ok(root.to_string()),
        false => Ok(text.to_owned()),
    }
}

fn parse(text: &str, leniency: Leniency) -> Result<CstRootNode, String> {
    let options = ParseOptions {
        allow_comments: leniency != Leniency::Strict,
        allow_trailing_commas: leniency == Leniency::TrailingCommas,
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
    let unread = |why: String| {
        let line = why.lines().next().unwrap_or_default();
        format!("it is no JSON that the agent can read: {line}")
    };
    // The tree takes comments whatever is allowed.
    if leniency == Leniency::Strict {
        let plain = serde_json::from_str::<serde::de::IgnoredAny>(text);
        plain.map_err(|why| unread(why.to_string()))?;
    }
    CstRootNode::parse(text, &options).map_err(|why| unread(why.to_string()))
}

/// The object at the end of these names, made where there is none.
fn down(object: &CstObject, at: &[&str]) -> Result<CstObject, String> {
    at.iter().try_fold(object.clone(), |object, name| {
        let inner = object.object_value_or_create(name);
        inner.ok_or_else(|| format!("`{name}` is no object"))
    })
}

/// The list at the end of these names, made where there is none.
fn list(object: &CstObject, at: &[&str]) -> Result<CstArray, String> {
    let Some((name, above)) = at.split_last() else {
        return Err("a list has no name".to_owned());
    };
    let list = down(object, above)?.array_value_or_create(name);
    list.ok_or_else(|| format!("`{name}` is no list"))
}

/// Sets a member; whether that changed anything.
fn set(object: &CstObject, name: &str, value: &Value) -> bool {
    match object.get(name) {
        Some(known)
            if known
                .value()
                .and_then(|known| known.to_serde_value())
                .as_ref()
                == Some(value) =>
        {
            false
        }
        Some(known) => {
            known.set_value(input(value));
            true
        }
        None => {
            object.append(name, input(value));
            true
        }
    }
}

/// Appends an element where it is not there, in place of old ones of ours; whether that changed
/// anything.
fn append(list: &CstArray, value: &Value, is_ours: fn(&Value, &str) -> bool, mark: &str) -> bool {
    let ours = ours(list, is_ours, mark);
    if let [only] = ours.as_slice()
        && only.to_serde_value().as_ref() == Some(value)
    {
        return false;
    }
    ours.into_iter().for_each(CstNode::remove);
    list.append(input(value));
    true
}

fn ours(list: &CstArray, is_ours: fn(&Value, &str) -> bool, mark: &str) -> Vec<CstNode> {
    let mut elements = list.elements();
    elements.retain(|element| {
        let value = element.to_serde_value();
        value.is_some_and(|value| is_ours(&value, mark))
    });
    elements
}

fn remove_member(object: &CstObject, at: &[&str], name: &str) -> bool {
    let inner = at
        .iter()
        .try_fold(object.clone(), |object, name| object.object_value(name));
    let Some(member) = inner.and_then(|inner| inner.get(name)) else {
        return false;
    };
    member.remove();
    prune(object, at);
    true
}

fn remove_elements(
    object: &CstObject,
    at: &[&str],
    is_ours: fn(&Value, &str) -> bool,
    mark: &str,
) -> bool {
    let Some((name, above)) = at.split_last() else {
        return false;
    };
    let inner = above
        .iter()
        .try_fold(object.clone(), |object, name| object.object_value(name));
    let Some(list) = inner.and_then(|inner| inner.array_value(name)) else {
        return false;
    };
    let ours = ours(&list, is_ours, mark);
    if ours.is_empty() {
        return false;
    }
    ours.into_iter().for_each(CstNode::remove);
    prune(object, at);
    true
}

/// Removes what our entries leave empty behind them, from the inside out.
fn prune(object: &CstObject, at: &[&str]) {
    for depth in (0..at.len()).rev() {
        let (Some(above), Some(name)) = (at.get(..depth), at.get(depth)) else {
            return;
        };
        let inner = above
            .iter()
            .try_fold(object.clone(), |object, name| object.object_value(name));
        let Some(member) = inner.and_then(|inner| inner.get(name)) else {
            return;
        };
        let is_empty = match (member.object_value(), member.array_value()) {
            (Some(object), _) => object.properties().is_empty(),
            (_, Some(list)) => list.elements().is_empty(),
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
        Value::Array(all) => CstInputValue::Array(all.iter().map(input).collect()),
        Value::Object(object) => {
            let members = object
                .iter()
                .map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}

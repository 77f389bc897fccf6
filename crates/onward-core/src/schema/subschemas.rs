//! The subschemas of a JSON Schema (2020-12): where they are, and which values they apply to.
//!
//! Only keywords have subschemas. A property that is called like a keyword does not hide its schema,
//! and data in `const` or `enum` is not a schema.

use serde_json::{Map, Value};

/// The values that a subschema applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope<'s> {
    /// The same value.
    Same,
    /// The same value. A validator evaluates it once for the result and once more for the errors.
    SameTwice,
    /// The property with this name.
    Property(&'s str),
    /// Every property or every entry.
    Children,
    /// No value: a definition.
    Nothing,
}

/// Keywords with one subschema, or a list of them.
const SINGLE: [(&str, Scope<'_>); 15] = [
    ("allOf", Scope::Same),
    ("anyOf", Scope::SameTwice),
    ("oneOf", Scope::SameTwice),
    ("not", Scope::SameTwice),
    ("if", Scope::SameTwice),
    ("then", Scope::SameTwice),
    ("else", Scope::SameTwice),
    ("additionalProperties", Scope::Children),
    ("propertyNames", Scope::Children),
    ("unevaluatedProperties", Scope::Children),
    ("prefixItems", Scope::Children),
    ("items", Scope::Children),
    ("additionalItems", Scope::Children),
    ("contains", Scope::Children),
    ("unevaluatedItems", Scope::Children),
];

/// Keywords with named subschemas, except `properties`.
const NAMED: [(&str, Scope<'_>); 5] = [
    ("patternProperties", Scope::Children),
    ("dependentSchemas", Scope::Same),
    ("dependencies", Scope::Same),
    ("$defs", Scope::Nothing),
    ("definitions", Scope::Nothing),
];

/// The subschemas in the keywords of a schema, with the target of its `$ref`.
pub(super) fn subschemas<'s>(
    root: &'s Value,
    keywords: &'s Map<String, Value>,
) -> Vec<(Scope<'s>, &'s Value)> {
    let mut found = Vec::new();
    let reference = keywords.get("$ref").and_then(Value::as_str);
    if let Some(target) = reference.and_then(|to| target(root, to)) {
        found.push((Scope::Same, target));
    }
    for (keyword, scope) in SINGLE {
        match keywords.get(keyword) {
            Some(Value::Array(list)) => found.extend(list.iter().map(|one| (scope, one))),
            Some(one) => found.push((scope, one)),
            None => {}
        }
    }
    for (keyword, scope) in NAMED {
        if let Some(Value::Object(named)) = keywords.get(keyword) {
            found.extend(named.values().map(|one| (scope, one)));
        }
    }
    if let Some(Value::Object(named)) = keywords.get("properties") {
        let named = named.iter();
        found.extend(named.map(|(name, one)| (Scope::Property(name), one)));
    }
    found
}

/// The target of a reference, if it is within the schema.
pub(super) fn target<'s>(root: &'s Value, to: &str) -> Option<&'s Value> {
    let pointer = to.strip_prefix('#')?;
    let is_pointer = pointer.is_empty() || pointer.starts_with('/');
    // Percent-encoded pointers are valid but unused in practice, so they are not supported.
    (is_pointer && !pointer.contains('%')).then_some(())?;
    root.pointer(pointer)
}

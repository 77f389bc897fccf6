//! Validation against an untrusted JSON Schema (2020-12), without network access, infinite
//! recursion or unbounded time.
//!
//! References must stay within the schema (`#`, `#/…`). A cycle of references that does not descend
//! into the data is rejected. Patterns use a linear-time regex engine.

use std::collections::BTreeSet;

use jsonschema::{PatternOptions, Validator};
use onward_core::refusal::Issue;
use serde_json::{Map, Value};

/// Bytes of a schema as JSON.
pub(crate) const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Bytes of a compiled pattern.
const MAX_PATTERN: usize = 1024 * 1024;
const MAX_ISSUES: usize = 50;
/// Characters of an issue, which may quote the data.
const MAX_MESSAGE: usize = 300;

/// Keywords whose values are data, not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "required"];
/// Keywords whose subschema applies to the same value.
const IN_PLACE: [&str; 5] = ["not", "if", "then", "else", "unevaluatedProperties"];
/// Keywords whose list of subschemas applies to the same value.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// A compiled schema.
pub(crate) struct SchemaValidator {
    schema: Value,
    validator: Validator,
}

/// Why a schema is rejected. The message continues a sentence that starts with the field's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error("must have at most {MAX_SCHEMA_BYTES} bytes as JSON, has {0}")]
    TooLarge(usize),
    /// A reference that leaves the schema, or has no target in it.
    #[error("refers to `{0}`; use only `#` and `#/…` references within the schema")]
    ExternalReference(String),
    /// A keyword that resolves at validation time.
    #[error("contains `{0}`; use `$ref` instead")]
    DynamicReference(String),
    /// An identifier inside the schema, which would change the base of references.
    #[error("contains a nested `{0}`; use `$defs` instead")]
    NestedIdentifier(String),
    #[error("refers to itself without descending into the data")]
    Cycle,
    #[error("is not a JSON Schema: {0}")]
    Invalid(String),
}

impl SchemaValidator {
    /// Compiles a schema. The error is a message for the caller.
    pub(crate) fn compile(schema: Map<String, Value>) -> Result<Self, SchemaError> {
        let schema = Value::Object(schema);
        let bytes = schema.to_string().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(SchemaError::TooLarge(bytes));
        }
        check_references(&schema, &schema)?;
        check_cycles(&schema)?;
        let patterns = PatternOptions::regex()
            .size_limit(MAX_PATTERN)
            .dfa_size_limit(MAX_PATTERN);
        let validator = jsonschema::draft202012::options()
            .with_pattern_options(patterns)
            .should_validate_formats(false)
            .build(&schema)
            .map_err(|why| {
                let path = why.instance_path().to_string();
                SchemaError::Invalid(truncate(&format!("`{path}`: {why}")))
            })?;
        Ok(Self { schema, validator })
    }

    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    pub(crate) fn into_schema(self) -> Value {
        self.schema
    }

    /// The positions at which the data does not match.
    pub(crate) fn issues(&self, data: &Value) -> Vec<Issue> {
        let errors = self.validator.iter_errors(data).take(MAX_ISSUES);
        let issues = errors.map(|error| Issue {
            path: error.instance_path().to_string(),
            message: truncate(&error.to_string()),
        });
        issues.collect()
    }
}

fn truncate(text: &str) -> String {
    if text.chars().count() > MAX_MESSAGE {
        text.chars().take(MAX_MESSAGE).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}

/// Rejects references that leave the schema.
fn check_references(root: &Value, schema: &Value) -> Result<(), SchemaError> {
    match schema {
        Value::Array(all) => all.iter().try_for_each(|one| check_references(root, one)),
        Value::Object(keywords) => {
            for (keyword, value) in keywords {
                match (keyword.as_str(), value) {
                    ("$ref", Value::String(to)) => {
                        if target(root, to).is_none() {
                            return Err(SchemaError::ExternalReference(truncate(to)));
                        }
                    }
                    ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                        return Err(SchemaError::DynamicReference(keyword.clone()));
                    }
                    ("$id" | "$anchor" | "$dynamicAnchor", Value::String(_))
                        if !std::ptr::eq(root, schema) =>
                    {
                        return Err(SchemaError::NestedIdentifier(keyword.clone()));
                    }
                    (keyword, _) if DATA.contains(&keyword) => {}
                    (_, value) => check_references(root, value)?,
                }
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// The target of a reference, if it is within the schema.
fn target<'s>(root: &'s Value, to: &str) -> Option<&'s Value> {
    let pointer = to.strip_prefix('#')?;
    let is_pointer = pointer.is_empty() || pointer.starts_with('/');
    // Percent-encoded pointers are valid but unused in practice, so they are not supported.
    (is_pointer && !pointer.contains('%')).then_some(())?;
    root.pointer(pointer)
}

/// Rejects a schema whose evaluation of one value would not terminate.
fn check_cycles(root: &Value) -> Result<(), SchemaError> {
    let mut done = BTreeSet::new();
    let mut all = vec![root];
    while let Some(schema) = all.pop() {
        visit(root, schema, &mut Vec::new(), &mut done)?;
        match schema {
            Value::Array(inside) => all.extend(inside),
            Value::Object(keywords) => {
                let schemas = keywords.iter();
                let schemas = schemas.filter(|(keyword, _)| !DATA.contains(&keyword.as_str()));
                all.extend(schemas.map(|(_, schema)| schema));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(())
}

/// Follows the subschemas that apply to the same value.
fn visit<'s>(
    root: &'s Value,
    schema: &'s Value,
    above: &mut Vec<*const Value>,
    done: &mut BTreeSet<*const Value>,
) -> Result<(), SchemaError> {
    let Value::Object(keywords) = schema else {
        return Ok(());
    };
    let here = std::ptr::from_ref(schema);
    if above.contains(&here) {
        return Err(SchemaError::Cycle);
    }
    if !done.insert(here) {
        return Ok(());
    }
    above.push(here);
    let referred = keywords.get("$ref").and_then(Value::as_str);
    let referred = referred.and_then(|to| target(root, to));
    let in_place = IN_PLACE.iter().filter_map(|keyword| keywords.get(*keyword));
    let lists = IN_PLACE_LISTS
        .iter()
        .filter_map(|keyword| keywords.get(*keyword)?.as_array());
    let dependent = keywords.get("dependentSchemas").and_then(Value::as_object);
    let dependent = dependent.into_iter().flat_map(Map::values);
    for next in referred
        .into_iter()
        .chain(in_place)
        .chain(lists.flatten())
        .chain(dependent)
    {
        visit(root, next, above, done)?;
    }
    above.pop();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: Value) -> Result<SchemaValidator, SchemaError> {
        let schema = schema.as_object().cloned().expect("schema is an object");
        SchemaValidator::compile(schema)
    }

    #[test]
    fn reports_the_paths_of_invalid_data() {
        let check = check(json!({
            "type": "object",
            "properties": { "moons": { "type": "array", "items": { "$ref": "#/$defs/moon" } } },
            "required": ["moons"],
            "$defs": { "moon": { "type": "object", "properties": { "name": { "type": "string" } } } },
        }))
        .expect("schema compiles");
        assert_eq!(check.issues(&json!({ "moons": [{ "name": "Io" }] })), []);
        let issues = check.issues(&json!({ "moons": [{ "name": 1 }] }));
        assert_eq!(issues.len(), 1);
        assert_eq!(issues[0].path, "/moons/0/name");

        assert_eq!(check.issues(&json!({}))[0].path, "");
    }

    #[test]
    fn accepts_a_recursive_schema_that_descends_into_the_data() {
        let tree = json!({
            "type": "object",
            "properties": { "children": { "type": "array", "items": { "$ref": "#" } } },
            "additionalProperties": false,
        });
        let check = check(tree).expect("schema compiles");
        assert_eq!(
            check.issues(&json!({ "children": [{ "children": [] }] })),
            []
        );
        assert_eq!(check.issues(&json!({ "children": [{ "x": 1 }] })).len(), 1);
    }

    #[test]
    fn rejects_external_references_and_cycles() {
        use SchemaError::{
            Cycle, DynamicReference, ExternalReference, Invalid, NestedIdentifier, TooLarge,
        };
        let external = |to: &str| ExternalReference(to.to_owned());
        for (schema, expected) in [
            (
                json!({ "$ref": "https://example.org/a.json" }),
                external("https://example.org/a.json"),
            ),
            (
                json!({ "$ref": "file:///etc/passwd" }),
                external("file:///etc/passwd"),
            ),
            (
                json!({ "properties": { "a": { "$ref": "other.json#/a" } } }),
                external("other.json#/a"),
            ),
            (json!({ "$ref": "#/$defs/none" }), external("#/$defs/none")),
            (json!({ "$ref": "#" }), Cycle),
            (json!({ "allOf": [{ "$ref": "#" }] }), Cycle),
            (
                json!({ "$ref": "#/$defs/a", "$defs": {
                    "a": { "not": { "$ref": "#/$defs/b" } },
                    "b": { "anyOf": [{ "$ref": "#/$defs/a" }] },
                } }),
                Cycle,
            ),
            (
                json!({ "properties": { "a": { "$ref": "#/properties/a" } } }),
                Cycle,
            ),
            (
                json!({ "$dynamicRef": "#x" }),
                DynamicReference("$dynamicRef".to_owned()),
            ),
            (
                json!({ "$defs": { "a": { "$id": "https://example.org/" } } }),
                NestedIdentifier("$id".to_owned()),
            ),
        ] {
            let shown = schema.to_string();
            assert_eq!(check(schema).err(), Some(expected), "{shown}");
        }
        for schema in [
            json!({ "type": "moon" }),
            json!({ "pattern": "(" }),
            json!({ "pattern": "(?=a)b" }),
        ] {
            let error = check(schema).err();
            assert!(matches!(error, Some(Invalid(_))), "{error:?}");
        }
        let large = json!({ "title": "a".repeat(MAX_SCHEMA_BYTES) });
        assert!(matches!(check(large).err(), Some(TooLarge(_))));
    }

    #[test]
    fn ignores_references_inside_data() {
        let schema = json!({ "const": { "$ref": "https://example.org" } });
        let check = check(schema).expect("schema compiles");
        assert_eq!(check.issues(&json!({ "$ref": "https://example.org" })), []);
    }

    #[test]
    fn matches_patterns_in_linear_time() {
        let check = check(json!({ "pattern": "^(a+)+$" })).expect("schema compiles");
        let text = format!("{}b", "a".repeat(50_000));
        assert_eq!(check.issues(&Value::String(text)).len(), 1);
    }
}

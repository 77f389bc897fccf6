//! Validation against an untrusted JSON Schema (2020-12), without network access, infinite
//! recursion or unbounded time.
//!
//! References must stay within the schema (`#`, `#/…`). A cycle of references that does not descend
//! into the data is rejected, and so is a schema that expands to too many nodes (`work.rs`). Patterns
//! use a linear-time regex engine. The caller bounds the number of steps of a validation.

mod subschemas;
mod work;

use std::collections::BTreeSet;

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

use crate::refusal::Issue;

use subschemas::{Scope, subschemas, target};
use work::MAX_NODES;

/// Bytes of a schema as JSON.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Steps of a validation on a separate thread, about one second.
pub const MAX_ISOLATED_STEPS: u64 = 5_000_000;
/// Bytes of a compiled pattern.
const MAX_PATTERN: usize = 1024 * 1024;
const MAX_ISSUES: usize = 50;
/// Characters of an issue, which may quote the data.
const MAX_MESSAGE: usize = 300;
/// The issue of data whose validation would take too long.
const TOO_MUCH_WORK: &str = "takes too many steps to validate against this schema";

/// A compiled schema.
#[derive(Debug)]
pub struct SchemaValidator {
    schema: Value,
    validator: Validator,
}

/// Why a schema is rejected. The message continues a sentence that starts with the field's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// Too many bytes as JSON.
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
    /// A cycle of references.
    #[error("refers to itself without descending into the data")]
    Cycle,
    /// Too many nodes.
    #[error("must have at most {MAX_NODES} nodes with references expanded")]
    TooManyNodes,
    /// Too many levels.
    #[error("is nested too deeply with references expanded")]
    TooDeep,
    /// Not a schema.
    #[error("is not a JSON Schema: {0}")]
    Invalid(String),
}

impl SchemaValidator {
    /// Compiles a schema. The error is a message for the caller.
    pub fn compile(schema: Map<String, Value>) -> Result<Self, SchemaError> {
        let schema = Value::Object(schema);
        let bytes = schema.to_string().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(SchemaError::TooLarge(bytes));
        }
        check_references(&schema)?;
        work::check_size(&schema)?;
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

    /// The schema.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The positions at which the data does not match, as JSON pointers. Data whose validation takes
    /// more than `max_steps` is not validated, which is an issue as well.
    pub fn issues(&self, data: &Value, max_steps: u64) -> Vec<Issue> {
        if !work::is_bounded(&self.schema, data, max_steps) {
            return vec![Issue {
                path: String::new(),
                message: TOO_MUCH_WORK.to_owned(),
            }];
        }
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

/// Every schema in a schema, each once: itself, its subschemas and its definitions.
fn all_schemas(root: &Value) -> Vec<&Map<String, Value>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(schema) = open.pop() {
        if let Value::Object(keywords) = schema
            && seen.insert(std::ptr::from_ref(schema))
        {
            open.extend(subschemas(root, keywords).into_iter().map(|(_, one)| one));
            found.push(keywords);
        }
    }
    found
}

/// Rejects references that leave the schema.
fn check_references(root: &Value) -> Result<(), SchemaError> {
    for (index, keywords) in all_schemas(root).into_iter().enumerate() {
        if let Some(Value::String(to)) = keywords.get("$ref")
            && target(root, to).is_none()
        {
            return Err(SchemaError::ExternalReference(truncate(to)));
        }
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if keywords.contains_key(keyword) {
                return Err(SchemaError::DynamicReference(keyword.to_owned()));
            }
        }
        for keyword in ["$id", "$anchor", "$dynamicAnchor", "$schema"] {
            // The first schema is the root.
            if index > 0 && keywords.contains_key(keyword) {
                return Err(SchemaError::NestedIdentifier(keyword.to_owned()));
            }
        }
    }
    Ok(())
}

/// Rejects a schema whose evaluation of one value would not terminate.
fn check_cycles(root: &Value) -> Result<(), SchemaError> {
    let mut done = BTreeSet::new();
    for keywords in all_schemas(root) {
        visit(root, keywords, &mut BTreeSet::new(), &mut done)?;
    }
    Ok(())
}

/// Follows the subschemas that apply to the same value. The depth is bounded by `check_size`.
fn visit<'s>(
    root: &'s Value,
    keywords: &'s Map<String, Value>,
    above: &mut BTreeSet<*const Map<String, Value>>,
    done: &mut BTreeSet<*const Map<String, Value>>,
) -> Result<(), SchemaError> {
    let here = std::ptr::from_ref(keywords);
    if above.contains(&here) {
        return Err(SchemaError::Cycle);
    }
    if !done.insert(here) {
        return Ok(());
    }
    above.insert(here);
    for (scope, next) in subschemas(root, keywords) {
        match (scope, next) {
            (Scope::Same | Scope::SameTwice, Value::Object(next)) => {
                visit(root, next, above, done)?;
            }
            (Scope::Same | Scope::SameTwice, _)
            | (Scope::Property(_) | Scope::Children | Scope::Nothing, _) => {}
        }
    }
    above.remove(&here);
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

    fn issues(check: &SchemaValidator, data: &Value) -> Vec<Issue> {
        check.issues(data, MAX_ISOLATED_STEPS)
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
        assert_eq!(issues(&check, &json!({ "moons": [{ "name": "Io" }] })), []);
        let found = issues(&check, &json!({ "moons": [{ "name": 1 }] }));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "/moons/0/name");

        assert_eq!(issues(&check, &json!({}))[0].path, "");
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
            issues(&check, &json!({ "children": [{ "children": [] }] })),
            []
        );
        assert_eq!(
            issues(&check, &json!({ "children": [{ "x": 1 }] })).len(),
            1
        );
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
        assert_eq!(
            issues(&check, &json!({ "$ref": "https://example.org" })),
            []
        );
    }

    #[test]
    fn matches_patterns_in_linear_time() {
        let check = check(json!({ "pattern": "^(a+)+$" })).expect("schema compiles");
        let text = format!("{}b", "a".repeat(50_000));
        assert_eq!(issues(&check, &Value::String(text)).len(), 1);
    }

    /// Definitions that each refer to the next one twice.
    fn doubling(levels: usize, link: impl Fn(Value) -> Value) -> Value {
        let definition = |level: usize| {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            (format!("d{level}"), link(next))
        };
        let mut definitions: Map<String, Value> = (0..levels).map(definition).collect();
        definitions.insert(format!("d{levels}"), json!({ "type": "string" }));
        json!({ "$ref": "#/$defs/d0", "$defs": definitions })
    }

    #[test]
    fn rejects_schemas_that_expand_to_many_nodes() {
        let bombs: [fn(Value) -> Value; 3] = [
            |next| json!({ "allOf": [next, next] }),
            |next| json!({ "properties": { "a": next, "b": next } }),
            |next| json!({ "anyOf": [next, { "not": next }] }),
        ];
        for bomb in bombs {
            let error = check(doubling(40, bomb)).err();
            assert_eq!(error, Some(SchemaError::TooManyNodes));
        }
        let chain = check(doubling(2_000, |next| json!({ "not": next }))).err();
        assert!(chain.is_some(), "a chain of references is bounded");
        assert!(check(doubling(8, bombs[0])).is_ok());
    }

    #[test]
    fn rejects_cycles_in_properties_with_names_of_keywords() {
        for name in ["const", "enum", "default", "examples", "required"] {
            let reference = json!({ "allOf": [{ "$ref": format!("#/properties/{name}") }] });
            let schema = json!({ "properties": { name: reference } });
            assert_eq!(check(schema).err(), Some(SchemaError::Cycle), "{name}");
        }
    }

    #[test]
    fn does_not_validate_data_that_doubles_the_work_at_every_level() {
        let twice = json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] });
        let check = check(json!({ "properties": { "a": twice } })).expect("schema compiles");
        let nested =
            |levels: usize| (0..levels).fold(json!({}), |inside, _| json!({ "a": inside }));
        assert_eq!(issues(&check, &nested(10)), []);
        let issues = issues(&check, &nested(60));
        assert_eq!(issues.len(), 1);
        assert_eq!(issues[0].message, TOO_MUCH_WORK);
    }

    #[test]
    fn bounds_the_depth_of_a_validation() {
        let links = |level: usize| {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            (format!("d{level}"), json!({ "allOf": [next] }))
        };
        let mut definitions: Map<String, Value> = (0..100).map(links).collect();
        definitions.insert("d100".to_owned(), json!({ "items": { "$ref": "#" } }));
        let schema = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
        let check = check(schema).expect("schema compiles");
        let nested = (0..60).fold(json!([]), |inside, _| json!([inside]));
        assert_eq!(issues(&check, &nested)[0].message, TOO_MUCH_WORK);
    }
}

//! What data must be like, by JSON Schema 2020-12, from whoever asks: a schema may not make the server
//! fetch anything, nor go round in circles, nor take for ever.
//!
//! So references stay within the schema (`#`, `#/…`), a reference that leads back to itself without going
//! deeper into the data is refused, and patterns are those that take linear time.

use std::collections::BTreeSet;

use jsonschema::{PatternOptions, Validator};
use onward_core::refusal::Issue;
use serde_json::{Map, Value};

/// The largest schema, as JSON.
pub(crate) const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// The largest pattern, once it is an automaton.
const MAX_PATTERN: usize = 1024 * 1024;
/// More issues than these help nobody.
const MOST_ISSUES: usize = 50;
/// Characters of an issue: it may quote the data.
const LONGEST_ISSUE: usize = 300;

/// Keywords whose values are data, not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "required"];
/// Keywords whose schemas are about the same piece of data.
const SAME: [&str; 5] = ["not", "if", "then", "else", "unevaluatedProperties"];
/// The same, of which there may be several.
const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// What data must be like.
pub(crate) struct Check {
    schema: Value,
    validator: Validator,
}

impl Check {
    /// Reads a schema, or says what is wrong with it.
    pub(crate) fn of(schema: Map<String, Value>) -> Result<Self, String> {
        let schema = Value::Object(schema);
        let bytes = schema.to_string().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(format!(
                "has {bytes} bytes as JSON, at most {MAX_SCHEMA_BYTES} are allowed"
            ));
        }
        references(&schema, &schema)?;
        circles(&schema)?;
        let patterns = PatternOptions::regex()
            .size_limit(MAX_PATTERN)
            .dfa_size_limit(MAX_PATTERN);
        let validator = jsonschema::draft202012::options()
            .with_pattern_options(patterns)
            .should_validate_formats(false)
            .build(&schema)
            .map_err(|why| {
                let place = why.instance_path().to_string();
                cut(&format!("is no JSON Schema: `{place}`: {why}"))
            })?;
        Ok(Self { schema, validator })
    }

    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    pub(crate) fn into_schema(self) -> Value {
        self.schema
    }

    /// Where data does not fit.
    pub(crate) fn issues(&self, data: &Value) -> Vec<Issue> {
        let errors = self.validator.iter_errors(data).take(MOST_ISSUES);
        let issues = errors.map(|error| Issue {
            path: error.instance_path().to_string(),
            message: cut(&error.to_string()),
        });
        issues.collect()
    }
}

fn cut(text: &str) -> String {
    match text.chars().count() > LONGEST_ISSUE {
        true => text.chars().take(LONGEST_ISSUE).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Refuses every reference that leads elsewhere.
fn references(root: &Value, schema: &Value) -> Result<(), String> {
    match schema {
        Value::Array(all) => all.iter().try_for_each(|one| references(root, one)),
        Value::Object(keywords) => {
            for (keyword, value) in keywords {
                match (keyword.as_str(), value) {
                    ("$ref", Value::String(to)) => {
                        if target(root, to).is_none() {
                            return Err(format!(
                                "refers to `{}`: only `#` and `#/…` of the schema itself are followed, \
                                 and nothing is fetched",
                                cut(to)
                            ));
                        }
                    }
                    ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                        return Err(format!("holds `{keyword}`: write it with `$ref`"));
                    }
                    ("$id" | "$anchor" | "$dynamicAnchor", Value::String(_))
                        if !std::ptr::eq(root, schema) =>
                    {
                        return Err(format!("holds `{keyword}` inside: write it with `$defs`"));
                    }
                    (keyword, _) if DATA.contains(&keyword) => {}
                    (_, value) => references(root, value)?,
                }
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// What a reference means; none where it leads out of the schema, or nowhere.
fn target<'s>(root: &'s Value, to: &str) -> Option<&'s Value> {
    let pointer = to.strip_prefix('#')?;
    let is_pointer = pointer.is_empty() || pointer.starts_with('/');
    // One that is percent-encoded is another spelling of the same, and nobody writes it.
    (is_pointer && !pointer.contains('%')).then_some(())?;
    root.pointer(pointer)
}

/// Refuses a schema that would be held against one piece of data for ever.
fn circles(root: &Value) -> Result<(), String> {
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

/// Follows whatever is about the same piece of data.
fn visit<'s>(
    root: &'s Value,
    schema: &'s Value,
    above: &mut Vec<*const Value>,
    done: &mut BTreeSet<*const Value>,
) -> Result<(), String> {
    let Value::Object(keywords) = schema else {
        return Ok(());
    };
    let here = std::ptr::from_ref(schema);
    if above.contains(&here) {
        return Err("refers to itself without going deeper into the data".to_owned());
    }
    if !done.insert(here) {
        return Ok(());
    }
    above.push(here);
    let referred = keywords.get("$ref").and_then(Value::as_str);
    let referred = referred.and_then(|to| target(root, to));
    let same = SAME.iter().filter_map(|keyword| keywords.get(*keyword));
    let lists = SAME_LISTS
        .iter()
        .filter_map(|keyword| keywords.get(*keyword)?.as_array());
    let dependent = keywords.get("dependentSchemas").and_then(Value::as_object);
    let dependent = dependent.into_iter().flat_map(Map::values);
    for next in referred
        .into_iter()
        .chain(same)
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

    fn check(schema: Value) -> Result<Check, String> {
        let Value::Object(schema) = schema else {
            return Err("no object".to_owned());
        };
        Check::of(schema)
    }

    #[test]
    fn data_is_held_against_the_schema_with_the_places_that_do_not_fit() {
        let check = check(json!({
            "type": "object",
            "properties": { "moons": { "type": "array", "items": { "$ref": "#/$defs/moon" } } },
            "required": ["moons"],
            "$defs": { "moon": { "type": "object", "properties": { "name": { "type": "string" } } } },
        }))
        .expect("a schema");
        assert_eq!(check.issues(&json!({ "moons": [{ "name": "Io" }] })), []);
        let issues = check.issues(&json!({ "moons": [{ "name": 1 }] }));
        assert_eq!(issues.len(), 1);
        assert_eq!(issues[0].path, "/moons/0/name");
        assert!(issues[0].message.contains("string"), "{issues:?}");
        assert_eq!(check.issues(&json!({}))[0].path, "");
    }

    #[test]
    fn a_schema_may_go_deeper_into_data_by_referring_to_itself() {
        let tree = json!({
            "type": "object",
            "properties": { "children": { "type": "array", "items": { "$ref": "#" } } },
            "additionalProperties": false,
        });
        let check = check(tree).expect("a schema");
        assert_eq!(
            check.issues(&json!({ "children": [{ "children": [] }] })),
            []
        );
        assert_eq!(check.issues(&json!({ "children": [{ "x": 1 }] })).len(), 1);
    }

    #[test]
    fn nothing_is_fetched_and_nothing_goes_round_in_circles() {
        for (schema, why) in [
            (
                json!({ "$ref": "https://example.org/a.json" }),
                "nothing is fetched",
            ),
            (
                json!({ "$ref": "file:///etc/passwd" }),
                "nothing is fetched",
            ),
            (
                json!({ "properties": { "a": { "$ref": "other.json#/a" } } }),
                "nothing is fetched",
            ),
            (json!({ "$ref": "#/$defs/none" }), "nothing is fetched"),
            (json!({ "$ref": "#" }), "refers to itself"),
            (json!({ "allOf": [{ "$ref": "#" }] }), "refers to itself"),
            (
                json!({ "$ref": "#/$defs/a", "$defs": {
                    "a": { "not": { "$ref": "#/$defs/b" } },
                    "b": { "anyOf": [{ "$ref": "#/$defs/a" }] },
                } }),
                "refers to itself",
            ),
            (
                json!({ "properties": { "a": { "$ref": "#/properties/a" } } }),
                "refers to itself",
            ),
            (json!({ "$dynamicRef": "#x" }), "$dynamicRef"),
            (
                json!({ "$defs": { "a": { "$id": "https://example.org/" } } }),
                "$id",
            ),
            (json!({ "type": "moon" }), "no JSON Schema"),
            (json!({ "pattern": "(" }), "no JSON Schema"),
            (json!({ "pattern": "(?=a)b" }), "no JSON Schema"),
            (
                json!({ "title": "a".repeat(MAX_SCHEMA_BYTES) }),
                "bytes as JSON",
            ),
        ] {
            let shown = schema.to_string();
            let refused = check(schema).err().unwrap_or_default();
            assert!(refused.contains(why), "{shown:.80}: {refused}");
        }
    }

    #[test]
    fn what_only_looks_like_a_reference_is_none() {
        let schema = json!({ "const": { "$ref": "https://example.org" } });
        let check = check(schema).expect("a schema");
        assert_eq!(check.issues(&json!({ "$ref": "https://example.org" })), []);
    }

    #[test]
    fn a_pattern_that_would_explode_elsewhere_takes_no_time() {
        let check = check(json!({ "pattern": "^(a+)+$" })).expect("a schema");
        let text = format!("{}b", "a".repeat(50_000));
        assert_eq!(check.issues(&Value::String(text)).len(), 1);
    }
}

//! The tool list explains itself: every input field has a description and its limits, and the texts
//! contain the words that agents search for.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::client::{Client, Era};
use crate::test_dir::TestDir;

/// Fields without limits in the schema: the tool (`*`: any), the field, and why.
const UNLIMITED: [(&str, &str, &str); 18] = [
    ("*", "planId", "an opaque id; others are not found"),
    ("*", "stepId", "an opaque id; others are not found"),
    ("*", "artifactId", "an opaque id; others are not found"),
    ("*", "outputId", "an opaque id; others are not found"),
    ("*", "executionId", "an opaque id; others are not found"),
    ("*", "targetStepId", "an opaque id; others are not found"),
    ("*", "stepIds", "must be exactly the ids of the plan"),
    ("*", "sessionId", "chosen by the client, any text"),
    ("*", "claimToken", "compared with the stored token"),
    ("*", "cursor", "opaque; others are rejected"),
    ("*", "afterStepOrder", "must exist: INVALID_STEP_REFERENCE"),
    ("*", "targetStepOrder", "must exist: INVALID_STEP_REFERENCE"),
    (
        "*",
        "insertAfterOrder",
        "must exist: INVALID_STEP_REFERENCE",
    ),
    ("*", "dependsOn", "must exist: invalid_dependency"),
    (
        "*",
        "conditionExpression",
        "a limit in bytes: invalid_condition",
    ),
    ("*", "createdAfter", "an RFC 3339 time"),
    ("*", "createdBefore", "an RFC 3339 time"),
    ("list_active_plans", "query", "any text is a valid query"),
];

/// A field of a tool's input, at any depth.
struct Field {
    tool: String,
    path: String,
    name: String,
    schema: Value,
}

fn collect(tool: &str, schema: &Value, parent: &str, fields: &mut Vec<Field>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{parent}{name}");
        collect(tool, field, &format!("{path}."), fields);
        collect(tool, &field["items"], &format!("{path}[]."), fields);
        fields.push(Field {
            tool: tool.to_owned(),
            path,
            name: name.clone(),
            schema: field.clone(),
        });
    }
}

/// All input fields of all tools.
fn all_fields() -> Vec<Field> {
    let dir = TestDir::sqlite();
    let mut fields = Vec::new();
    for tool in Client::start(&dir, Era::Stateless).tools() {
        let name = tool["name"].as_str().unwrap();
        collect(name, &tool["inputSchema"], "", &mut fields);
    }
    assert!(fields.len() > 100, "{} fields", fields.len());
    fields
}

/// Whether the schema limits the size of the value.
fn is_limited(schema: &Value) -> bool {
    match schema["type"].as_str() {
        Some("string") => schema["enum"].is_array() || schema["maxLength"].is_u64(),
        Some("integer" | "number") => {
            schema["minimum"].is_number() && schema["maximum"].is_number()
        }
        Some("array") => schema["maxItems"].is_u64() && is_limited(&schema["items"]),
        _ => true,
    }
}

#[test]
fn every_field_has_a_description() {
    for Field {
        tool, path, schema, ..
    } in all_fields()
    {
        let description = schema["description"].as_str().unwrap_or_default();
        assert!(!description.trim().is_empty(), "{tool}: {path}");
        assert!(!description.contains('\n'), "{tool}: {path}");
    }
}

#[test]
fn every_enum_value_is_explained() {
    for Field {
        tool, path, schema, ..
    } in all_fields()
    {
        let description = schema["description"].as_str().unwrap_or_default();

        for value in schema["enum"].as_array().into_iter().flatten() {
            let value = value.as_str().unwrap();
            assert!(description.contains(value), "{tool}: {path}: {value}");
        }
    }
}

#[test]
fn every_field_has_its_limits_or_a_reason() {
    let mut used = BTreeSet::new();
    for Field {
        tool,
        path,
        name,
        schema,
    } in all_fields()
    {
        let entry = UNLIMITED
            .iter()
            .position(|(only, field, _)| *field == name && (*only == "*" || *only == tool));
        if is_limited(&schema) {
            continue;
        }
        let entry = entry.unwrap_or_else(|| panic!("{tool}: {path} has no limits"));
        used.insert(entry);
    }
    let unused: Vec<_> = (0..UNLIMITED.len())
        .filter(|entry| !used.contains(entry))
        .map(|entry| UNLIMITED[entry])
        .collect();
    assert!(unused.is_empty(), "{unused:?} are limited or do not exist");
}

#[test]
fn the_list_contains_the_words_that_agents_search_for() {
    let dir = TestDir::sqlite();
    for args in [&[][..], &["--tools", "core"]] {
        let mut client = Client::with_options(&dir, Era::Stateless, args, serde_json::json!({}));
        let texts: Vec<String> = client
            .tools()
            .iter()
            .flat_map(|tool| [tool["title"].to_string(), tool["description"].to_string()])
            .collect();
        let text = texts.join(" ").to_lowercase();
        for word in ["plan", "task", "todo", "step", "resume", "review"] {
            assert!(text.contains(word), "{word} in {args:?}");
        }
    }
}

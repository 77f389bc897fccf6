//! The tool list explains itself: every input field has a description and its limits, and the texts
//! contain the words that agents search for.

use std::collections::BTreeSet;

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Map, Value, json};

use crate::program;

/// Ids of plans, steps and other items. They are opaque; an id that does not exist is not found.
const IDS: [&str; 9] = [
    "fromPlanId",
    "planId",
    "reviewId",
    "stepId",
    "stepIds",
    "artifactId",
    "outputId",
    "executionId",
    "targetStepId",
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

/// All input fields of these tools.
fn fields_of(tools: &[Map<String, Value>]) -> Vec<Field> {
    let mut fields = Vec::new();
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        collect(name, &tool["inputSchema"], "", &mut fields);
    }
    assert!(fields.len() > 60, "{} fields", fields.len());
    fields
}

/// All input fields of all tools.
fn all_fields() -> Vec<Field> {
    let dir = program();
    fields_of(&Client::start(&dir, Era::Stateless).tools())
}

/// The tools of `--tools core`.
fn core_tools() -> Vec<Map<String, Value>> {
    let dir = program();
    let args = ["--tools", "core"];
    Client::with_options(&dir, Era::Stateless, &args, json!({})).tools()
}

/// Whether the schema limits the size of the value.
fn is_limited(name: &str, schema: &Value) -> bool {
    match schema["type"].as_str() {
        Some("string") => {
            schema["enum"].is_array() || schema["maxLength"].is_u64() || IDS.contains(&name)
        }
        Some("integer" | "number") => {
            schema["minimum"].is_number() && schema["maximum"].is_number()
        }
        Some("array") => schema["maxItems"].is_u64() && is_limited(name, &schema["items"]),
        _ => true,
    }
}

/// The explanation of an enum value: the text between `value: ` and the next `;`. A note in
/// parentheses may follow the value.
fn explanation<'a>(description: &'a str, value: &str) -> Option<&'a str> {
    description.match_indices(value).find_map(|(start, _)| {
        let is_word_start =
            !description[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let rest = &description[start + value.len()..];
        let rest = match rest.strip_prefix(" (") {
            Some(note) => note.split_once(')')?.1,
            None => rest,
        };
        let text = rest.strip_prefix(": ").filter(|_| is_word_start)?;
        text.split(';')
            .next()
            .filter(|text| !text.trim().is_empty())
    })
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
            let explanation = explanation(description, value);
            assert!(explanation.is_some(), "{tool}: {path}: {value}");
        }
    }
}

#[test]
fn recognizes_an_enum_value_without_an_explanation() {
    let text = "Only these: new (default): just created; done: has a result; undone; failed: ; x";
    assert_eq!(explanation(text, "new"), Some("just created"));
    assert_eq!(explanation(text, "done"), Some("has a result"));
    for value in ["undone", "failed", "x", "missing"] {
        assert_eq!(explanation(text, value), None, "{value}");
    }
}

#[test]
fn every_field_has_its_limits() {
    for field in all_fields() {
        let is_limited = is_limited(&field.name, &field.schema);
        assert!(is_limited, "{}: {}", field.tool, field.path);
    }
}

/// A bare object does not describe its fields, so only free-form data may be one.
#[test]
fn only_free_form_data_has_no_properties() {
    let bare: BTreeSet<String> = all_fields()
        .iter()
        .filter(|field| {
            let schema = field.schema.get("items").unwrap_or(&field.schema);
            schema["type"] == "object" && schema.get("properties").is_none()
        })
        .map(|field| field.path.clone())
        .collect();
    let free_form = [
        "answers",
        // Another tool describes it.
        "branch",
        // The descriptions have the properties, in fewer tokens.
        "budget",
        "fields",
        "metadata",
        "result",
        "schema",
        "stepExecutionReport",
        "steps[].resultSchema",
    ];
    assert_eq!(bare, free_form.map(str::to_owned).into());
}

/// Optional fields that the list of core tools omits and the server accepts.
const OMITTED: &[&str] = &[
    "create_research_plan budget",
    "create_research_plan fromPlanId",
    "create_research_plan fromStepOrder",
    "create_research_plan labels",
    "create_research_plan outputFormattingNotes",
    "create_research_plan planDesignRationale",
    "create_research_plan requiresApproval",
    "create_research_plan priority",
    "create_research_plan projectKey",
    "create_research_plan steps[].acceptanceCriteria",
    "create_research_plan steps[].labels",
    "create_research_plan steps[].priority",
    "create_research_plan steps[].resultSchema",
    "create_research_plan steps[].reviewBy",
    "create_research_plan steps[].reviewRequired",
    "create_research_plan steps[].stallThresholdMs",
    "get_artifact maxChars",
    "get_next_step labels",
    "get_next_step projectKey",
    "get_next_step waitMs",
    "get_plan_status thresholdMs",
    "list_active_plans label",
    "list_active_plans owner",
    "list_active_plans projectKey",
    "list_active_plans since",
    "list_active_plans status",
    "modify_plan cascade",
    "modify_plan dependsOn",
    "modify_plan modificationRationale",
    "report_step_progress percent",
    "request_user_review assignee",
    "request_user_review dueAt",
    "request_user_review fields",
    "request_user_review onDeadline",
    "request_user_review remindAfterMs",
    "request_user_review scope",
    "store_research_output mediaType",
    "submit_step_result evidence",
    "submit_step_result evidence[].criterion",
    "submit_step_result evidence[].kind",
    "submit_step_result evidence[].outcome",
    "submit_step_result evidence[].value",
    "submit_step_result outputFormattingNotes",
    "submit_step_result stepExecutionReport",
    "submit_user_decision answers",
    "submit_user_decision reviewId",
    "submit_user_decision sessionId",
];

/// The list of core tools omits only fields of objects that it describes in `create_research_plan`,
/// and optional fields that the loop does not need.
#[test]
fn the_core_list_omits_only_repeated_and_optional_fields() {
    let names = |fields: &[Field]| -> BTreeSet<String> {
        let name = |field: &Field| format!("{} {}", field.tool, field.path);
        fields.iter().map(name).collect()
    };
    let core = core_tools();
    let is_core = |field: &Field| core.iter().any(|tool| tool["name"] == field.tool);
    let mut all = all_fields();
    all.retain(is_core);
    let (core, all) = (names(&fields_of(&core)), names(&all));
    assert!(core.is_subset(&all));
    // `targetStepOrder` works for every step.
    let alternative = "modify_plan branch.actionParams.targetStepId";
    for omitted in all.difference(&core).filter(|name| *name != alternative) {
        let original = omitted
            .replace(
                "modify_plan branch.",
                "create_research_plan branchingConditions[].",
            )
            .replace("branchingConditions[].actionParams.steps[].", "steps[].")
            .replace("modify_plan steps[].", "create_research_plan steps[].");
        let is_repeated = original != *omitted && core.contains(&original);
        assert!(
            is_repeated || OMITTED.contains(&original.as_str()),
            "{omitted}"
        );
    }
}

#[test]
fn the_list_contains_the_words_that_agents_search_for() {
    let dir = program();
    for args in [&[][..], &["--tools", "core"]] {
        let mut client = Client::with_options(&dir, Era::Stateless, args, json!({}));
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

#[test]
fn the_server_and_every_tool_have_an_icon() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let tools = client.tools();
    assert!(!tools.is_empty());
    let uri = tools[0]["icons"][0]["src"].as_str().expect("a URI");
    assert!(uri.starts_with("data:image/svg+xml;base64,"), "{uri}");
    for tool in &tools {
        assert_eq!(tool["icons"][0]["src"], uri, "{}", tool["name"]);
    }
    let discovered = client.request("server/discover", json!({}));
    let text = discovered.to_string();
    assert!(text.contains(uri), "{text}");
    assert!(text.contains("\"websiteUrl\":\"https://"), "{text}");
}

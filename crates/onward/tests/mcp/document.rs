//! `docs/tools.md` is written from what the server lists, and is stale where it says something else.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::agent::{Agent, Era};
use crate::place::Place;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");

const HEAD: &str = "# The tools

What an agent is offered by `onward mcp`. Generated from the server's own list: `ONWARD_BLESS=1 cargo test -p onward --test mcp document` writes it anew.

`--tools core` offers those that are marked *core*: working on plans needs no more. Fields marked * are required; a field that a tool does not know is refused by its name, and `null` for an optional one is the same as leaving it out.
A refusal is a result with `isError: true` whose text is `{\"error\": {code, message, hint, details?}}`; `hint` names the call that helps. Work that comes with a refused call is kept, and `details.keptArtifactId` says where.

Resources: `onward://plans`, `onward://plan/{planId}` (Markdown), `onward://plan/{planId}/audit`, `onward://session/{sessionId}` (what `get_session_health` answers), `onward://user/profile`; all can be subscribed to. Prompts: `run_plan`, `resume_plan`, `design_plan`.
";

fn kind(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words
            .iter()
            .filter_map(Value::as_str)
            .map(|word| format!("`{word}`"))
            .collect();
        return words.join(", ");
    }
    let of = schema["type"].as_str().unwrap_or("any");
    let (min, max) = match of {
        "string" => (&schema["minLength"], &schema["maxLength"]),
        "array" => (&schema["minItems"], &schema["maxItems"]),
        _ => (&schema["minimum"], &schema["maximum"]),
    };
    let bounds = match (min.is_null(), max.is_null()) {
        (false, false) => format!(", {min} to {max}"),
        (true, false) => format!(", at most {max}"),
        (false, true) => format!(", at least {min}"),
        (true, true) => String::new(),
    };
    match of {
        "array" => {
            let items = schema["items"]["type"].as_str().unwrap_or("any");
            format!("array of {items}{bounds}")
        }
        of => format!("{of}{bounds}"),
    }
}

fn fields(schema: &Value, inside: &str, text: &mut String) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let star = if required.iter().any(|one| one == name) {
            "*"
        } else {
            ""
        };
        let says = field["description"].as_str().unwrap_or_default();
        // A bar would end the cell, also between backticks.
        let says = says.replace('|', "\\|");
        let _ = writeln!(
            text,
            "| `{inside}{name}`{star} | {} | {says} |",
            kind(field)
        );
        let list = &field["items"];
        if list["properties"].is_object() {
            fields(list, &format!("{inside}{name}[]."), text);
        }
        fields(field, &format!("{inside}{name}."), text);
    }
}

fn section(tool: &Map<String, Value>, core: bool) -> String {
    let word = |name: &str| tool[name].as_str().unwrap_or_default();
    let mut text = format!("\n## `{}`\n\n{}\n", word("name"), word("description"));
    let hints = &tool["annotations"];
    let mut marks = Vec::new();
    for (hint, mark) in [
        ("readOnlyHint", "reads only"),
        ("destructiveHint", "can give up what was there"),
        ("idempotentHint", "can be repeated"),
    ] {
        if hints[hint] == true {
            marks.push(mark);
        }
    }
    if core {
        marks.insert(0, "core");
    }
    if !marks.is_empty() {
        let _ = writeln!(text, "*{}*", marks.join(", "));
    }
    let mut rows = String::new();
    fields(&tool["inputSchema"], "", &mut rows);
    if !rows.is_empty() {
        let _ = write!(text, "\n| field | is | |\n|---|---|---|\n{rows}");
    }
    let output = &tool["outputSchema"];
    let shapes = output["oneOf"].as_array().cloned();
    for shape in shapes.unwrap_or_else(|| vec![output.clone()]) {
        let names = shape["properties"].as_object().into_iter().flatten();
        let required = shape["required"].as_array().cloned().unwrap_or_default();
        let names: Vec<String> = names
            .map(|(name, field)| {
                let optional = !required.iter().any(|one| one == name);
                let mark = if optional { "?" } else { "" };
                match field["const"].as_str() {
                    Some(value) => format!("{name}: \"{value}\""),
                    None => format!("{name}{mark}"),
                }
            })
            .collect();
        let _ = write!(text, "\nAnswers `{{ {} }}`\n", names.join(", "));
    }
    text
}

#[test]
fn the_document_says_what_the_server_says() {
    let place = Place::file();
    let tools = Agent::start(&place, Era::Handshake).tools();
    let core = Agent::with(
        &place,
        Era::Handshake,
        &["--tools", "core"],
        serde_json::json!({}),
    );
    let core = { core }.tools();
    let mut text = HEAD.to_owned();
    for tool in &tools {
        let is_core = core.iter().any(|one| one["name"] == tool["name"]);
        text.push_str(&section(tool, is_core));
    }
    if std::env::var_os("ONWARD_BLESS").is_some() {
        std::fs::write(DOCUMENT, &text).expect("the document can be written");
    }
    let written = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    assert!(
        written == text,
        "docs/tools.md is stale: ONWARD_BLESS=1 cargo test -p onward --test mcp document"
    );
}

//! Takes payloads apart, the way that all agents share: fields by name, and the text of a result.
//!
//! A field of another kind than expected is missing, not an error: formats move with every version.

use onward_core::PlanId;
use onward_engine::ledger::Asked;
use onward_engine::session::{Heard, SeenCall};
use serde_json::Value;

use super::Agent;

/// Tools of ours whose calls are about a plan.
const PLAN_TOOLS: [&str; 10] = [
    "create_research_plan",
    "get_plan_status",
    "modify_plan",
    "list_plan_steps",
    "get_next_step",
    "submit_step_result",
    "report_step_progress",
    "request_user_review",
    "submit_user_decision",
    "get_research_context",
];

/// A text that is there and not empty.
pub(super) fn text(payload: &Value, key: &str) -> Option<String> {
    let text = payload.get(key)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Who tells, where the fields have their common names.
pub(super) fn heard(payload: &Value, agent: Agent) -> Heard {
    Heard {
        session: text(payload, "session_id").unwrap_or_default(),
        agent: agent.as_str().to_owned(),
        directory: text(payload, "cwd"),
        subagent: text(payload, "agent_id").unwrap_or_default(),
        turn: None,
    }
}

/// A call with its result, where the fields have their common names.
pub(super) fn call(payload: &Value, ok: Option<bool>, output: String) -> SeenCall {
    SeenCall {
        id: text(payload, "tool_use_id"),
        tool: text(payload, "tool_name").unwrap_or_default(),
        input: payload.get("tool_input").cloned().unwrap_or_default(),
        ok,
        output,
    }
}

/// A call that is about to be made, where the fields have their common names.
pub(super) fn asked(payload: &Value, id: &str) -> Asked {
    Asked {
        id: text(payload, id),
        tool: text(payload, "tool_name").unwrap_or_default(),
        input: payload.get("tool_input").cloned().unwrap_or_default(),
    }
}

/// What a person would call the text of a result.
pub(super) fn output(result: &Value) -> String {
    match result {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(output).collect();
            texts.join("\n")
        }
        Value::Object(fields) => {
            if fields.contains_key("stdout") || fields.contains_key("stderr") {
                let streams = ["stdout", "stderr"].map(|key| fields.get(key).map(output));
                let streams: Vec<String> = streams.into_iter().flatten().collect();
                return streams.join("\n").trim_end().to_owned();
            }
            let told = ["text", "content", "output", "llmContent", "result"];
            match told.iter().find_map(|key| fields.get(*key)) {
                Some(inner) => output(inner),
                None => result.to_string(),
            }
        }
        Value::Bool(_) | Value::Number(_) => result.to_string(),
    }
}

/// Whether a result says that something went wrong.
pub(super) fn failed(result: &Value) -> bool {
    let flags = ["is_error", "isError", "interrupted"];
    let flagged = flags
        .iter()
        .any(|key| result.get(*key) == Some(&Value::Bool(true)));
    flagged || result.get("error").is_some_and(|error| !error.is_null())
}

/// The plans that calls of our own tools were about.
pub(super) fn plans(calls: &[SeenCall]) -> Vec<PlanId> {
    let ours = calls.iter().filter(|call| {
        let ends = |tool: &&str| call.tool.ends_with(*tool);
        PLAN_TOOLS.iter().any(ends)
    });
    let mut plans: Vec<PlanId> = ours
        .filter_map(|call| {
            let asked = text(&call.input, "planId");
            let id = asked.or_else(|| plan_in(&call.output))?;
            id.parse().ok()
        })
        .collect();
    plans.dedup();
    plans
}

/// The first `planId` that a text holds as JSON, however it is quoted.
fn plan_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("planId")?;
    let is_of_id = |c: char| c.is_ascii_hexdigit() || c == '-';
    let rest = rest.trim_start_matches(|c: char| !c.is_ascii_hexdigit());
    let end = rest.find(|c: char| !is_of_id(c)).unwrap_or(rest.len());
    rest.get(..end).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_of_a_result_is_found_wherever_it_stands() {
        for (result, text) in [
            (json!("plain"), "plain"),
            (json!(null), ""),
            (json!({ "stdout": "out\n", "stderr": "" }), "out"),
            (json!({ "stdout": "", "stderr": "err" }), "\nerr"),
            (
                json!([{ "type": "text", "text": "a" }, { "text": "b" }]),
                "a\nb",
            ),
            (
                json!({ "content": [{ "text": "a" }], "isError": false }),
                "a",
            ),
            (
                json!({ "llmContent": "told", "returnDisplay": "shown" }),
                "told",
            ),
            (json!({ "file": 1 }), "{\"file\":1}"),
        ] {
            assert_eq!(output(&result), text, "{result}");
        }
    }

    #[test]
    fn a_plan_is_known_by_our_own_tools_alone() {
        let plan = "0197f1a0-0000-7000-8000-000000000001";
        let call = |tool: &str, output: &str| SeenCall {
            id: None,
            tool: tool.to_owned(),
            input: json!({}),
            ok: None,
            output: output.to_owned(),
        };
        let told = format!("{{\"planId\":\"{plan}\",\"status\":\"planning\"}}");
        let quoted = told.replace('"', "\\\"");
        for (tool, output, found) in [
            ("mcp__onward__create_research_plan", told.as_str(), true),
            ("onward_get_next_step", quoted.as_str(), true),
            ("Bash", told.as_str(), false),
            ("mcp__onward__get_next_step", "no plan", false),
            ("mcp__onward__get_next_step", "planId: none", false),
        ] {
            let plans = plans(&[call(tool, output)]);
            let expected: Vec<String> = found.then(|| plan.to_owned()).into_iter().collect();
            let plans: Vec<String> = plans.iter().map(ToString::to_string).collect();
            assert_eq!(plans, expected, "{tool}: {output}");
        }
    }
}

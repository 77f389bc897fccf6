//! Payload fields that several agents share, and the text of a tool result.
//!
//! A field of an unexpected type counts as missing, because formats change between versions.

use onward_core::PlanId;
use onward_engine::session::{HookSource, ObservedCall};
use onward_engine::tool_calls::CallRef;
use serde_json::Value;

use super::{Agent, EventKind};

/// Onward's tools that refer to a plan.
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

/// A non-empty string field.
pub(super) fn text(payload: &Value, key: &str) -> Option<String> {
    let text = payload.get(key)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// The source of an event, from the common field names.
pub(super) fn hook_source(payload: &Value, agent: Agent) -> HookSource {
    HookSource {
        session: text(payload, "session_id").unwrap_or_default(),
        agent: agent.as_str().to_owned(),
        directory: text(payload, "cwd"),
        subagent: text(payload, "agent_id").unwrap_or_default(),
        prompt: prompt(payload),
        answer: subagent_answer(payload),
        ..HookSource::default()
    }
}

/// The prompt of a user. Kimi sends it in parts.
fn prompt(payload: &Value) -> Option<String> {
    let parts = payload.get("prompt")?;
    let text = output(parts);
    (parts.is_string() || parts.is_array())
        .then_some(text)
        .filter(|text| !text.is_empty())
}

/// The answer of a subagent that ends.
fn subagent_answer(payload: &Value) -> Option<String> {
    let event = text(payload, "hook_event_name")?;
    let is_end = event == "SubagentStop";
    text(payload, "last_assistant_message").filter(|_| is_end)
}

/// The end of a turn. An agent that already continues because of a hook is not asked again.
pub(super) fn turn_ended(payload: &Value) -> EventKind {
    let is_active = payload.get("stop_hook_active") == Some(&Value::Bool(true));
    EventKind::TurnEnded {
        can_continue: !is_active,
    }
}

/// The start of a session, with its cause.
pub(super) fn session_started(payload: &Value) -> EventKind {
    let cause = text(payload, "source").unwrap_or_else(|| "startup".to_owned());
    EventKind::SessionStarted { cause }
}

/// A call with its result, from the common field names.
pub(super) fn call(payload: &Value, ok: Option<bool>, output: String) -> ObservedCall {
    ObservedCall {
        id: text(payload, "tool_use_id"),
        tool: text(payload, "tool_name").unwrap_or_default(),
        input: payload.get("tool_input").cloned().unwrap_or_default(),
        ok,
        output,
    }
}

/// A requested call, from the common field names.
pub(super) fn requested_call(payload: &Value, id: &str) -> CallRef {
    CallRef {
        id: text(payload, id),
        tool: text(payload, "tool_name").unwrap_or_default(),
        input: payload.get("tool_input").cloned().unwrap_or_default(),
    }
}

/// The text of a tool result.
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
            let keys = ["text", "content", "output", "llmContent", "result"];
            match keys.iter().find_map(|key| fields.get(*key)) {
                Some(inner) => output(inner),
                None => result.to_string(),
            }
        }
        Value::Bool(_) | Value::Number(_) => result.to_string(),
    }
}

/// Whether a result is flagged as an error.
pub(super) fn failed(result: &Value) -> bool {
    let flags = ["is_error", "isError", "interrupted"];
    let flagged = flags
        .iter()
        .any(|key| result.get(*key) == Some(&Value::Bool(true)));
    flagged || result.get("error").is_some_and(|error| !error.is_null())
}

/// The plans that calls of Onward's tools refer to.
pub(super) fn plans(calls: &[ObservedCall]) -> Vec<PlanId> {
    let ours = calls.iter().filter(|call| {
        let matches = |tool: &&str| call.tool.ends_with(*tool);
        PLAN_TOOLS.iter().any(matches)
    });
    let mut plans: Vec<PlanId> = ours
        .filter_map(|call| {
            let from_input = text(&call.input, "planId");
            let id = from_input.or_else(|| plan_in(&call.output))?;
            id.parse().ok()
        })
        .collect();
    plans.dedup();
    plans
}

/// The first `planId` in JSON text, quoted or escaped.
fn plan_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("planId")?;
    let is_id_char = |c: char| c.is_ascii_hexdigit() || c == '-';
    let rest = rest.trim_start_matches(|c: char| !c.is_ascii_hexdigit());
    let end = rest.find(|c: char| !is_id_char(c)).unwrap_or(rest.len());
    rest.get(..end).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_the_text_of_a_result_in_every_format() {
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
                json!({ "llmContent": "for the model", "returnDisplay": "for the user" }),
                "for the model",
            ),
            (json!({ "file": 1 }), "{\"file\":1}"),
        ] {
            assert_eq!(output(&result), text, "{result}");
        }
    }

    #[test]
    fn detects_plans_in_calls_of_onwards_tools_only() {
        let plan = "0197f1a0-0000-7000-8000-000000000001";
        let call = |tool: &str, output: &str| ObservedCall {
            id: None,
            tool: tool.to_owned(),
            input: json!({}),
            ok: None,
            output: output.to_owned(),
        };
        let response = format!("{{\"planId\":\"{plan}\",\"status\":\"planning\"}}");
        let escaped = response.replace('"', "\\\"");
        for (tool, output, found) in [
            ("mcp__onward__create_research_plan", response.as_str(), true),
            ("onward_get_next_step", escaped.as_str(), true),
            ("Bash", response.as_str(), false),
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

//! Cursor. A turn is a `generation_id` of a `conversation_id`. Results are JSON inside a string; a
//! failed call has its own event, or an exit code. In print mode Cursor reports neither prompts nor
//! ends, so only the generation separates turns. Its SDK uses the conversation's id for all
//! generations; there the prompts separate turns. For files and searches Cursor reports success
//! without the content.
//!
//! Before a call, Cursor treats output that is not an object as a veto, so `{}` means no decision;
//! `allow` would approve the call in place of the user. The turn cannot be stopped; all its calls
//! are rejected.
//!
//! According to its documentation the model reads `agent_message`; the hook runner passes
//! `user_message`. The reason is therefore in both. A rejected call is reported as failed with that
//! reason as its error, by which it is recognised and not counted as a step.

use onward_core::turn::OUTPUT_NOT_REPORTED;
use onward_engine::session::{HookSource, ObservedCall};
use serde_json::{Value, json};

use super::payload::{call, output, requested_call, session_started, text, turn_ended};
use super::{Agent, Event, EventKind, Reply};

pub(super) fn parse(payload: &Value) -> Option<Event> {
    let name = text(payload, "hook_event_name")?;
    let kind = match name.as_str() {
        "sessionStart" => session_started(payload),
        "beforeSubmitPrompt" => EventKind::TurnStarted,
        "preToolUse" => EventKind::BeforeToolCall {
            call: requested_call(payload, "tool_use_id"),
        },
        "postToolUse" => {
            let result = result(payload);
            let text = if is_without_content(&result) {
                OUTPUT_NOT_REPORTED.to_owned()
            } else {
                output(&result)
            };
            single(call(payload, Some(!has_failed(&result)), text))
        }
        "postToolUseFailure" => {
            let error = text(payload, "error_message").unwrap_or_default();
            single(call(payload, Some(false), error))
        }
        "stop" => turn_ended(payload),
        "sessionEnd" => EventKind::SessionEnded,
        _ => return None,
    };
    Some(Event {
        name,
        source: source(payload),
        kind,
    })
}

fn source(payload: &Value) -> HookSource {
    let session = text(payload, "conversation_id").or_else(|| text(payload, "session_id"));
    let roots = payload.get("workspace_roots");
    let root = roots.and_then(|roots| roots.get(0)?.as_str());
    HookSource {
        session: session.unwrap_or_default(),
        agent: Agent::Cursor.as_str().to_owned(),
        directory: text(payload, "cwd").or_else(|| root.map(str::to_owned)),
        turn: text(payload, "generation_id"),
        prompt: text(payload, "prompt"),
        ..HookSource::default()
    }
}

fn single(call: ObservedCall) -> EventKind {
    EventKind::ToolResults {
        calls: vec![call],
        is_batch: false,
    }
}

/// Parses the result, which is JSON inside a string.
fn result(payload: &Value) -> Value {
    let raw = payload.get("tool_output").unwrap_or(&Value::Null);
    let inner = raw
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    inner.unwrap_or_else(|| raw.clone())
}

/// Whether a result reports success without the content.
fn is_without_content(result: &Value) -> bool {
    const SUMMARY_FIELDS: [&str; 4] = ["file_path", "pattern", "content_length", "success"];
    result.as_object().is_some_and(|fields| {
        SUMMARY_FIELDS[2..]
            .iter()
            .any(|key| fields.contains_key(*key))
            && fields
                .keys()
                .all(|key| SUMMARY_FIELDS.contains(&key.as_str()))
    })
}

/// Whether the result has a non-zero exit code.
fn has_failed(result: &Value) -> bool {
    let code = result.get("exitCode").and_then(Value::as_i64);
    code.is_some_and(|code| code != 0)
}

pub(super) fn render(event: &Event, reply: &Reply) -> Option<String> {
    let output = match (reply, &event.kind) {
        (Reply::Nothing, EventKind::BeforeToolCall { .. }) => json!({}),
        (Reply::Context(text), _) => json!({ "additional_context": text }),
        (Reply::Continue { reason }, _) => json!({ "followup_message": reason }),
        (Reply::Reject { reason }, _) => denied(reason, reason),
        (Reply::Stop { reason, to_user }, _) => denied(reason, &format!("{reason}\n\n{to_user}")),
        (Reply::Nothing | Reply::Warning(_) | Reply::DisableTools, _) => return None,
    };
    Some(output.to_string())
}

fn denied(reason: &str, to_user: &str) -> Value {
    json!({ "permission": "deny", "user_message": to_user, "agent_message": reason })
}

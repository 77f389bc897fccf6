//! Codex CLI. It uses Claude Code's names, with a `turn_id` and without events for a batch or a
//! failure: a failed command is reported like any other.
//!
//! Before a call, Codex accepts neither `continue: false` nor a bare `allow`, so nothing is printed
//! for an allowed call. The turn cannot be stopped; all its calls are rejected.

use onward_engine::session::HookSource;
use onward_engine::tool_calls::Approval;
use serde_json::{Value, json};

use super::claude_code::denied;
use super::payload::{
    call, failed, hook_source, output, requested_call, session_started, text, turn_ended,
};
use super::{Agent, Event, EventKind, Reply};

pub(super) fn parse(payload: &Value) -> Option<Event> {
    let name = text(payload, "hook_event_name")?;
    let kind = match name.as_str() {
        "SessionStart" => session_started(payload),
        "UserPromptSubmit" | "SubagentStart" => EventKind::TurnStarted,
        "PreToolUse" => EventKind::BeforeToolCall {
            call: requested_call(payload, "tool_use_id"),
        },
        "PermissionRequest" => EventKind::Permission {
            call: requested_call(payload, "tool_use_id"),
            approval: Approval::Pending,
        },
        "PostToolUse" => {
            let response = payload.get("tool_response").unwrap_or(&Value::Null);
            let ok = if failed(response) {
                Some(false)
            } else {
                exit_code(response).map(|code| code == 0)
            };
            EventKind::ToolResults {
                calls: vec![call(payload, ok, output(response))],
                is_batch: false,
            }
        }
        "Stop" => turn_ended(payload),
        "SubagentStop" => EventKind::TurnEnded {
            can_continue: false,
        },
        "SessionEnd" => EventKind::SessionEnded,
        _ => return None,
    };
    let source = HookSource {
        turn: text(payload, "turn_id"),
        ..hook_source(payload, Agent::Codex)
    };
    Some(Event { name, source, kind })
}

/// The exit code of a command, if the response contains it.
fn exit_code(response: &Value) -> Option<i64> {
    let metadata = response.get("metadata").unwrap_or(response);
    metadata.get("exit_code").and_then(Value::as_i64)
}

pub(super) fn render(event: &Event, reply: &Reply) -> Option<String> {
    let output = match reply {
        Reply::Nothing | Reply::DisableTools => return None,
        Reply::Context(text) => json!({
            "hookSpecificOutput": { "hookEventName": event.name, "additionalContext": text },
        }),
        Reply::Warning(text) => json!({ "systemMessage": text }),
        Reply::Continue { reason } => json!({ "decision": "block", "reason": reason }),
        Reply::Reject { reason } | Reply::Stop { reason, .. } => denied(&event.name, reason),
    };
    Some(output.to_string())
}

//! Codex CLI. Its names are Claude Code's, with a `turn_id` and without an event for a whole batch or
//! for a failure: a command that fails is told as any other.
//!
//! It refuses `continue: false` before a call, and a bare `allow`: where a call may be made, nothing is
//! printed. So the turn cannot be stopped; every call of it is refused.

use onward_engine::ledger::Said;
use onward_engine::session::Heard;
use serde_json::{Value, json};

use super::claude_code::denied;
use super::payload::{asked, call, failed, heard, output, text};
use super::{Agent, Event, Reply, What};

pub(super) fn read(payload: &Value) -> Option<Event> {
    let name = text(payload, "hook_event_name")?;
    let what = match name.as_str() {
        "SessionStart" => What::SessionStarted,
        "UserPromptSubmit" | "SubagentStart" => What::Prompted,
        "PreToolUse" => What::AboutToCall {
            call: asked(payload, "tool_use_id"),
        },
        "PermissionRequest" => What::Asked {
            call: asked(payload, "tool_use_id"),
            said: Said::Nothing,
        },
        "PostToolUse" => {
            let response = payload.get("tool_response").unwrap_or(&Value::Null);
            let ok = match failed(response) {
                true => Some(false),
                false => exit_code(response).map(|code| code == 0),
            };
            What::Stepped {
                calls: vec![call(payload, ok, output(response))],
                whole: false,
            }
        }
        "Stop" | "SubagentStop" => What::Answered,
        "SessionEnd" => What::SessionEnded,
        _ => return None,
    };
    let heard = Heard {
        turn: text(payload, "turn_id"),
        ..heard(payload, Agent::Codex)
    };
    Some(Event { name, heard, what })
}

/// How a command ended, where the response says it.
fn exit_code(response: &Value) -> Option<i64> {
    let metadata = response.get("metadata").unwrap_or(response);
    metadata.get("exit_code").and_then(Value::as_i64)
}

pub(super) fn write(event: &Event, reply: &Reply) -> Option<String> {
    let said = match reply {
        Reply::Nothing | Reply::NoTools => return None,
        Reply::Context(text) => json!({
            "hookSpecificOutput": { "hookEventName": event.name, "additionalContext": text },
        }),
        Reply::Warning(text) => json!({ "systemMessage": text }),
        Reply::Refused { reason } | Reply::Stopped { reason, .. } => denied(&event.name, reason),
    };
    Some(said.to_string())
}

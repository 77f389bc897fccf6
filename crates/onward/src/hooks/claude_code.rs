//! Claude Code. `PostToolBatch` is its event for a step: once per model response, with what the model
//! sees. `PostToolUse` and `PostToolUseFailure` tell sooner of each call that it was answered, and stand
//! in for the batch where that is not installed. Hooks fire inside of subagents too, under an `agent_id`.
//! A task that ends in the background is told as a prompt, in the middle of a turn under the same
//! `prompt_id`: nobody wrote it, so the turn goes on. `PermissionRequest` says that a person is asked, and nothing that they have answered: the result does.
//!
//! Nothing takes the tools away for one step: every call is refused, with the reason for the model to
//! read, and `continue: false` ends the turn. Cursor runs these hooks as well, under its own version;
//! its own hooks tell the same, so these are silent then.

use onward_core::turn::ended_task;
use onward_engine::ledger::Said;
use onward_engine::session::{Heard, SeenCall};
use serde_json::{Value, json};

use super::payload::{asked, call, failed, heard, output, text};
use super::{Agent, Event, Reply, What};

/// How the text of a failure begins, where nothing else tells that it is one.
const FAILURES: [&str; 5] = [
    "The user doesn't want to ",
    "Exit code ",
    "Error: ",
    "<tool_use_error>",
    "Error calling tool",
];

pub(super) fn read(payload: &Value) -> Option<Event> {
    if payload.get("cursor_version").is_some() {
        return None;
    }
    let name = text(payload, "hook_event_name")?;
    let what = match name.as_str() {
        "SessionStart" => What::SessionStarted,
        "UserPromptSubmit" if tells_of_a_task(payload) => What::ToldOfTask {
            ended: text(payload, "prompt")
                .as_deref()
                .and_then(ended_task)
                .map(str::to_owned),
        },
        "UserPromptSubmit" | "SubagentStart" => What::Prompted,
        "PreToolUse" => What::AboutToCall {
            call: asked(payload, "tool_use_id"),
        },
        "PermissionRequest" => What::Asked {
            call: asked(payload, "tool_use_id"),
            said: Said::Nothing,
        },
        "PermissionDenied" => What::Asked {
            call: asked(payload, "tool_use_id"),
            said: Said::No,
        },
        "PostToolBatch" => What::Stepped {
            calls: batch(payload),
            whole: true,
        },
        "PostToolUse" => alone(answered(payload)),
        "PostToolUseFailure" => {
            let error = text(payload, "error").unwrap_or_default();
            alone(call(payload, Some(false), error))
        }
        "Stop" | "SubagentStop" => What::Answered,
        "SessionEnd" => What::SessionEnded,
        _ => return None,
    };
    let heard = Heard {
        turn: text(payload, "prompt_id"),
        ..heard(payload, Agent::ClaudeCode)
    };
    Some(Event { name, heard, what })
}

/// Whether a prompt is Claude Code's own: what became of a task in the background.
fn tells_of_a_task(payload: &Value) -> bool {
    text(payload, "prompt").is_some_and(|prompt| prompt.starts_with("<task-notification>"))
}

fn alone(call: SeenCall) -> What {
    What::Stepped {
        calls: vec![call],
        whole: false,
    }
}

fn batch(payload: &Value) -> Vec<SeenCall> {
    let calls = payload.get("tool_calls").and_then(Value::as_array);
    calls.into_iter().flatten().map(answered).collect()
}

/// A call with its response. Nothing says that it succeeded but that nothing says otherwise.
fn answered(told: &Value) -> SeenCall {
    let response = told.get("tool_response").unwrap_or(&Value::Null);
    let text = output(response);
    let says_so = FAILURES.iter().any(|failure| text.starts_with(failure));
    let ok = !(failed(told) || failed(response) || says_so);
    call(told, Some(ok), text)
}

pub(super) fn write(event: &Event, reply: &Reply) -> Option<String> {
    let said = match reply {
        Reply::Nothing | Reply::NoTools => return None,
        Reply::Context(text) => json!({
            "hookSpecificOutput": { "hookEventName": event.name, "additionalContext": text },
        }),
        Reply::Warning(text) => json!({ "systemMessage": text }),
        Reply::Refused { reason } => denied(&event.name, reason),
        Reply::Stopped { reason, to_person } => {
            let mut said = denied(&event.name, reason);
            said["continue"] = false.into();
            said["stopReason"] = to_person.as_str().into();
            said
        }
    };
    Some(said.to_string())
}

/// A call that is not made; Codex reads the same.
pub(super) fn denied(event: &str, reason: &str) -> Value {
    json!({
        "hookSpecificOutput": {
            "hookEventName": event,
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        },
    })
}

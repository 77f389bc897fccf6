//! Claude Code. `PostToolBatch` reports a step: once per model response, with the content that the
//! model sees. `PostToolUse` and `PostToolUseFailure` report each call earlier, and replace the
//! batch if its hook is not installed. Hooks also run in subagents, with an `agent_id`. The end of
//! a background task is reported as a prompt inside the turn, with the same `prompt_id`; it does
//! not start a new turn. `PermissionRequest` reports that the user is asked; only the result shows
//! the decision.
//!
//! The tools cannot be disabled for one step, so every call is rejected with a reason for the
//! model, and `continue: false` stops the turn. Cursor runs these hooks as well; its payloads are
//! skipped here, because Cursor's own hooks report the same events.

use onward_core::turn::ended_task;
use onward_engine::session::{HookSource, ObservedCall};
use onward_engine::tool_calls::Approval;
use serde_json::{Value, json};

use super::payload::{
    call, failed, hook_source, output, requested_call, session_started, text, turn_ended,
};
use super::{Agent, Event, EventKind, Reply};

/// Prefixes of error texts in results that have no error flag.
const FAILURE_PREFIXES: [&str; 5] = [
    "The user doesn't want to ",
    "Exit code ",
    "Error: ",
    "<tool_use_error>",
    "Error calling tool",
];

pub(super) fn parse(payload: &Value) -> Option<Event> {
    if payload.get("cursor_version").is_some() {
        return None;
    }
    let name = text(payload, "hook_event_name")?;
    let kind = match name.as_str() {
        "SessionStart" => session_started(payload),
        "UserPromptSubmit" if is_task_notification(payload) => EventKind::TaskMessage {
            ended: text(payload, "prompt")
                .as_deref()
                .and_then(ended_task)
                .map(str::to_owned),
        },
        "UserPromptSubmit" | "SubagentStart" => EventKind::TurnStarted,
        "PreToolUse" => EventKind::BeforeToolCall {
            call: requested_call(payload, "tool_use_id"),
        },
        "PermissionRequest" => EventKind::Permission {
            call: requested_call(payload, "tool_use_id"),
            approval: Approval::Pending,
        },
        "PermissionDenied" => EventKind::Permission {
            call: requested_call(payload, "tool_use_id"),
            approval: Approval::Denied,
        },
        "PostToolBatch" => EventKind::ToolResults {
            calls: batch(payload),
            is_batch: true,
        },
        "PostToolUse" => single(result_of(payload)),
        "PostToolUseFailure" => {
            let error = text(payload, "error").unwrap_or_default();
            single(call(payload, Some(false), error))
        }
        "Stop" => turn_ended(payload),
        "SubagentStop" => EventKind::TurnEnded {
            can_continue: false,
        },
        "SessionEnd" => EventKind::SessionEnded,
        _ => return None,
    };
    let mut source = HookSource {
        turn: text(payload, "prompt_id"),
        ..hook_source(payload, Agent::ClaudeCode)
    };
    if is_task_notification(payload) {
        source.prompt = None;
    }
    Some(Event { name, source, kind })
}

/// Whether Claude Code wrote the prompt to report a background task.
fn is_task_notification(payload: &Value) -> bool {
    text(payload, "prompt").is_some_and(|prompt| prompt.starts_with("<task-notification>"))
}

fn single(call: ObservedCall) -> EventKind {
    EventKind::ToolResults {
        calls: vec![call],
        is_batch: false,
    }
}

fn batch(payload: &Value) -> Vec<ObservedCall> {
    let calls = payload.get("tool_calls").and_then(Value::as_array);
    calls.into_iter().flatten().map(result_of).collect()
}

/// A call with its response. There is no success flag: a call without a sign of failure succeeded.
fn result_of(report: &Value) -> ObservedCall {
    let response = report.get("tool_response").unwrap_or(&Value::Null);
    let text = output(response);
    let is_failure_text = FAILURE_PREFIXES
        .iter()
        .any(|failure| text.starts_with(failure));
    let ok = !(failed(report) || failed(response) || is_failure_text);
    call(report, Some(ok), text)
}

pub(super) fn render(event: &Event, reply: &Reply) -> Option<String> {
    let output = match reply {
        Reply::Nothing | Reply::DisableTools => return None,
        Reply::Context(text) => json!({
            "hookSpecificOutput": { "hookEventName": event.name, "additionalContext": text },
        }),
        Reply::Warning(text) => json!({ "systemMessage": text }),
        Reply::Continue { reason } => json!({ "decision": "block", "reason": reason }),
        Reply::Reject { reason } => denied(&event.name, reason),
        Reply::Stop { reason, to_user } => {
            let mut output = denied(&event.name, reason);
            output["continue"] = false.into();
            output["stopReason"] = to_user.as_str().into();
            // Headless runs print messages, and not the reason of a stop.
            output["systemMessage"] = to_user.as_str().into();
            output
        }
    };
    Some(output.to_string())
}

/// A rejected call. Codex uses the same format.
pub(super) fn denied(event: &str, reason: &str) -> Value {
    json!({
        "hookSpecificOutput": {
            "hookEventName": event,
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        },
    })
}

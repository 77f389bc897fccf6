//! Kimi Code. Only three of its events read the reply: before a call, at a prompt and at the end.
//! Within a turn, the reason of a rejection is therefore the only text that reaches the model, and
//! there is no nudge. The text of a session start is sent with the first prompt, as plain text.
//! Results are reported asynchronously with their first 2,000 characters, possibly after the next
//! call; they are counted when they arrive.

use onward_engine::session::ObservedCall;
use onward_engine::tool_calls::Approval;
use serde_json::{Value, json};

use super::payload::{hook_source, output, requested_call, session_started, text};
use super::{Agent, Event, EventKind, Reply};

pub(super) fn parse(payload: &Value) -> Option<Event> {
    let name = text(payload, "hook_event_name")?;
    let kind = match name.as_str() {
        "SessionStart" => session_started(payload),
        "UserPromptSubmit" => EventKind::TurnStarted,
        "PreToolUse" => EventKind::BeforeToolCall {
            call: requested_call(payload, "tool_call_id"),
        },
        "PermissionRequest" => EventKind::Permission {
            call: requested_call(payload, "tool_call_id"),
            approval: Approval::Pending,
        },
        "PermissionResult" => EventKind::Permission {
            call: requested_call(payload, "tool_call_id"),
            approval: match text(payload, "decision").as_deref() {
                Some("approved") => Approval::Granted,
                Some(_) => Approval::Denied,
                None => return None,
            },
        },
        "PostToolUse" => result_of(payload, Some(true), payload.get("tool_output")),
        "PostToolUseFailure" => result_of(payload, Some(false), failure(payload)),
        "PostCompact" => EventKind::Compacted,
        // The end of a subagent is reported as the agent's own, so it is not asked to continue.
        "Stop" | "StopFailure" | "Interrupt" => EventKind::TurnEnded {
            can_continue: false,
        },
        "SessionEnd" => EventKind::SessionEnded,
        _ => return None,
    };
    let source = hook_source(payload, Agent::Kimi);
    Some(Event { name, source, kind })
}

/// The error message.
fn failure(payload: &Value) -> Option<&Value> {
    let error = payload.get("error")?;
    Some(error.get("message").unwrap_or(error))
}

fn result_of(payload: &Value, ok: Option<bool>, result: Option<&Value>) -> EventKind {
    let call = ObservedCall {
        id: text(payload, "tool_call_id"),
        tool: text(payload, "tool_name").unwrap_or_default(),
        input: payload.get("tool_input").cloned().unwrap_or_default(),
        ok,
        output: result.map(output).unwrap_or_default(),
    };
    EventKind::ToolResults {
        calls: vec![call],
        is_batch: false,
    }
}

pub(super) fn render(event: &Event, reply: &Reply) -> Option<String> {
    match (reply, &event.kind) {
        (Reply::Context(text), EventKind::TurnStarted) => Some(text.clone()),
        (Reply::Reject { reason } | Reply::Stop { reason, .. } | Reply::Continue { reason }, _) => {
            let output = json!({
                "hookSpecificOutput": {
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                },
            });
            Some(output.to_string())
        }
        (Reply::Nothing | Reply::DisableTools | Reply::Context(_) | Reply::Warning(_), _) => None,
    }
}

//! Kimi Code. Only three of its events listen to an answer: before a call, at a prompt and at the end.
//! So the one way to the model within a turn is the reason of a refusal, and there is no nudge; what a
//! session start would offer is said with the first prompt, as plain text. Results are told
//! beside the agent's own work, with their first 2,000 characters, and may come after the next call is
//! asked for; they are counted whenever they come.

use onward_engine::ledger::Said;
use onward_engine::session::SeenCall;
use serde_json::{Value, json};

use super::payload::{asked, heard, output, text};
use super::{Agent, Event, Reply, What};

pub(super) fn read(payload: &Value) -> Option<Event> {
    let name = text(payload, "hook_event_name")?;
    let what = match name.as_str() {
        "SessionStart" => What::SessionStarted,
        "UserPromptSubmit" => What::Prompted,
        "PreToolUse" => What::AboutToCall {
            call: asked(payload, "tool_call_id"),
        },
        "PermissionRequest" => What::Asked {
            call: asked(payload, "tool_call_id"),
            said: Said::Nothing,
        },
        "PostToolUse" => answered(payload, Some(true), payload.get("tool_output")),
        "PostToolUseFailure" => answered(payload, Some(false), failure(payload)),
        "Stop" | "StopFailure" | "Interrupt" => What::Answered,
        "SessionEnd" => What::SessionEnded,
        _ => return None,
    };
    let heard = heard(payload, Agent::Kimi);
    Some(Event { name, heard, what })
}

/// What went wrong, in words.
fn failure(payload: &Value) -> Option<&Value> {
    let error = payload.get("error")?;
    Some(error.get("message").unwrap_or(error))
}

fn answered(payload: &Value, ok: Option<bool>, told: Option<&Value>) -> What {
    let call = SeenCall {
        id: text(payload, "tool_call_id"),
        tool: text(payload, "tool_name").unwrap_or_default(),
        input: payload.get("tool_input").cloned().unwrap_or_default(),
        ok,
        output: told.map(output).unwrap_or_default(),
    };
    What::Stepped {
        calls: vec![call],
        whole: false,
    }
}

pub(super) fn write(event: &Event, reply: &Reply) -> Option<String> {
    match (reply, &event.what) {
        (Reply::Context(text), What::Prompted) => Some(text.clone()),
        (Reply::Refused { reason } | Reply::Stopped { reason, .. }, _) => {
            let said = json!({
                "hookSpecificOutput": {
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                },
            });
            Some(said.to_string())
        }
        (Reply::Nothing | Reply::NoTools | Reply::Context(_) | Reply::Warning(_), _) => None,
    }
}

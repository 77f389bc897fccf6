//! Gemini CLI. It tells of each call alone, and it is the one whose hooks can take the tools away for a
//! step: `BeforeToolSelection` answers with the mode `NONE`. Where a call is made all the same, it is
//! refused, and `continue: false` ends the turn.

use serde_json::{Value, json};

use super::payload::{asked, call, failed, heard, output, text};
use super::{Agent, Event, Reply, What};

pub(super) fn read(payload: &Value) -> Option<Event> {
    let name = text(payload, "hook_event_name")?;
    let what = match name.as_str() {
        "SessionStart" => What::SessionStarted,
        "BeforeAgent" => What::Prompted,
        "BeforeToolSelection" => What::AboutToAsk,
        // It gives its calls no ids.
        "BeforeTool" => What::AboutToCall {
            call: asked(payload, "tool_use_id"),
        },
        "AfterTool" => {
            let response = payload.get("tool_response").unwrap_or(&Value::Null);
            let ok = !failed(response);
            What::Stepped {
                calls: vec![call(payload, Some(ok), output(response))],
                whole: false,
            }
        }
        "AfterAgent" => What::Answered,
        "SessionEnd" => What::SessionEnded,
        _ => return None,
    };
    let heard = heard(payload, Agent::Gemini);
    Some(Event { name, heard, what })
}

pub(super) fn write(event: &Event, reply: &Reply) -> Option<String> {
    let said = match reply {
        Reply::Nothing => return None,
        Reply::Context(text) => json!({
            "hookSpecificOutput": { "hookEventName": event.name, "additionalContext": text },
        }),
        Reply::Warning(text) => json!({ "systemMessage": text }),
        Reply::NoTools => json!({
            "hookSpecificOutput": {
                "hookEventName": event.name,
                "toolConfig": { "mode": "NONE" },
            },
        }),
        Reply::Refused { reason } => json!({ "decision": "deny", "reason": reason }),
        Reply::Stopped { reason, to_person } => json!({
            "continue": false,
            "stopReason": to_person,
            "decision": "deny",
            "reason": reason,
        }),
    };
    Some(said.to_string())
}

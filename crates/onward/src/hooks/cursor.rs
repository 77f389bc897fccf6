//! Cursor. A turn is a `generation_id` of a `conversation_id`; results are JSON inside of a text, and
//! those of failed calls come with an event of their own, or with an exit code as any other. In print
//! mode it tells neither of prompts nor of ends: the generation alone separates the turns. Its SDK
//! gives all generations the id of the conversation: there the prompts do. Of files and searches it tells
//! that they went well, and not what they gave.
//!
//! Before a call it reads a text that is no object as a veto, so an empty one says that nothing is said;
//! `allow` would approve the call in the person's place. It cannot be stopped; every call is refused.
//!
//! Its documentation says that the model reads `agent_message`, and what runs its hooks gives it
//! `user_message`; so the reason stands in both. A call that was refused is told as a failed one, with
//! that reason as its error, by which it is known to be no step.

use onward_core::turn::NOT_TOLD;
use onward_engine::session::{Heard, SeenCall};
use serde_json::{Value, json};

use super::payload::{asked, call, output, text};
use super::{Agent, Event, Reply, What};

pub(super) fn read(payload: &Value) -> Option<Event> {
    let name = text(payload, "hook_event_name")?;
    let what = match name.as_str() {
        "sessionStart" => What::SessionStarted,
        "beforeSubmitPrompt" => What::Prompted,
        "preToolUse" => What::AboutToCall {
            call: asked(payload, "tool_use_id"),
        },
        "postToolUse" => {
            let result = result(payload);
            let given = match is_untold(&result) {
                true => NOT_TOLD.to_owned(),
                false => output(&result),
            };
            alone(call(payload, Some(!exited(&result)), given))
        }
        "postToolUseFailure" => {
            let error = text(payload, "error_message").unwrap_or_default();
            alone(call(payload, Some(false), error))
        }
        "stop" => What::Answered,
        "sessionEnd" => What::SessionEnded,
        _ => return None,
    };
    Some(Event {
        name,
        heard: heard(payload),
        what,
    })
}

fn heard(payload: &Value) -> Heard {
    let session = text(payload, "conversation_id").or_else(|| text(payload, "session_id"));
    let folders = payload.get("workspace_roots");
    let folder = folders.and_then(|folders| folders.get(0)?.as_str());
    Heard {
        session: session.unwrap_or_default(),
        agent: Agent::Cursor.as_str().to_owned(),
        directory: text(payload, "cwd").or_else(|| folder.map(str::to_owned)),
        subagent: String::new(),
        turn: text(payload, "generation_id"),
    }
}

fn alone(call: SeenCall) -> What {
    What::Stepped {
        calls: vec![call],
        whole: false,
    }
}

/// A result, out of the text that it comes in.
fn result(payload: &Value) -> Value {
    let told = payload.get("tool_output").unwrap_or(&Value::Null);
    let inner = told
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    inner.unwrap_or_else(|| told.clone())
}

/// Whether a result says that something was read, found or written, and not what.
fn is_untold(result: &Value) -> bool {
    const ABOUT: [&str; 4] = ["file_path", "pattern", "content_length", "success"];
    result.as_object().is_some_and(|fields| {
        ABOUT[2..].iter().any(|key| fields.contains_key(*key))
            && fields.keys().all(|key| ABOUT.contains(&key.as_str()))
    })
}

/// Whether a result is that of a command that failed.
fn exited(result: &Value) -> bool {
    let code = result.get("exitCode").and_then(Value::as_i64);
    code.is_some_and(|code| code != 0)
}

pub(super) fn write(event: &Event, reply: &Reply) -> Option<String> {
    let said = match (reply, &event.what) {
        (Reply::Nothing, What::AboutToCall { .. }) => json!({}),
        (Reply::Context(text), _) => json!({ "additional_context": text }),
        (Reply::Refused { reason }, _) => denied(reason, reason),
        (Reply::Stopped { reason, to_person }, _) => {
            denied(reason, &format!("{reason}\n\n{to_person}"))
        }
        (Reply::Nothing | Reply::Warning(_) | Reply::NoTools, _) => return None,
    };
    Some(said.to_string())
}

fn denied(reason: &str, to_person: &str) -> Value {
    json!({ "permission": "deny", "user_message": to_person, "agent_message": reason })
}

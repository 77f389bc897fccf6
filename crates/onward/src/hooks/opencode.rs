//! opencode. Its hooks are functions of a plugin, so `onward install opencode` installs one
//! (`install/opencode.js`). The plugin sends each hook as `{"hook", "sessionID", "directory", …}`
//! and executes the reply: `{"context"}` is added to the result that the model reads, `{"refuse"}`
//! is thrown before the call, `"stop"` also aborts the session, and `"stop"` and `"warn"` are shown
//! to the user.
//!
//! A failed tool has no hook afterwards; its part of the message reports the error. A subagent is a
//! separate session.

use onward_engine::session::{HookSource, ObservedCall};
use onward_engine::tool_calls::{Approval, CallRef};
use serde_json::{Value, json};

use super::payload::{failed, output, session_started, text, turn_ended};
use super::{Agent, Event, EventKind, Reply};

pub(super) fn parse(payload: &Value) -> Option<Event> {
    let name = text(payload, "hook")?;
    let kind = match name.as_str() {
        "session.created" => session_started(payload),
        "session.compacted" => EventKind::SessionStarted {
            cause: "compact".to_owned(),
        },
        "chat.message" => EventKind::TurnStarted,
        "tool.execute.before" => EventKind::BeforeToolCall {
            call: requested_call(payload),
        },
        "permission.asked" => EventKind::Permission {
            call: requested_call(payload),
            approval: Approval::Pending,
        },
        "permission.replied" => EventKind::Permission {
            call: requested_call(payload),
            approval: match text(payload, "reply").as_deref() {
                Some("reject") => Approval::Denied,
                Some(_) | None => Approval::Granted,
            },
        },
        "tool.execute.after" => {
            let ok = if failed(payload) {
                Some(false)
            } else {
                exit_code(payload).map(|code| code == 0)
            };
            result_of(payload, ok, "output")
        }
        "message.part.updated" => result_of(payload, Some(false), "error"),
        "session.idle" => turn_ended(payload),
        "session.deleted" => EventKind::SessionEnded,
        _ => return None,
    };
    let source = HookSource {
        session: text(payload, "sessionID").unwrap_or_default(),
        agent: Agent::Opencode.as_str().to_owned(),
        directory: text(payload, "directory"),
        parent: text(payload, "parentID"),
        prompt: text(payload, "prompt"),
        ..HookSource::default()
    };
    Some(Event { name, source, kind })
}

fn requested_call(payload: &Value) -> CallRef {
    CallRef {
        id: text(payload, "callID"),
        tool: text(payload, "tool").unwrap_or_default(),
        input: payload.get("args").cloned().unwrap_or_default(),
    }
}

fn result_of(payload: &Value, ok: Option<bool>, key: &str) -> EventKind {
    let CallRef { id, tool, input } = requested_call(payload);
    let call = ObservedCall {
        id,
        tool,
        input,
        ok,
        output: payload.get(key).map(output).unwrap_or_default(),
    };
    EventKind::ToolResults {
        calls: vec![call],
        is_batch: false,
    }
}

/// The exit code of a command, if the metadata contains it.
fn exit_code(payload: &Value) -> Option<i64> {
    payload.get("metadata")?.get("exit")?.as_i64()
}

pub(super) fn render(_: &Event, reply: &Reply) -> Option<String> {
    let output = match reply {
        Reply::Nothing | Reply::DisableTools => return None,
        // An idle session cannot continue; its next prompt carries the text.
        Reply::Context(text) | Reply::Continue { reason: text } => json!({ "context": text }),
        Reply::Warning(text) => json!({ "warn": text }),
        Reply::Reject { reason } => json!({ "refuse": reason }),
        Reply::Stop { reason, to_user } => {
            json!({ "refuse": reason, "stop": to_user })
        }
    };
    Some(output.to_string())
}

//! opencode. Its hooks are functions of a plugin, so `onward install opencode` puts a small one beside
//! it that passes each of them on, as `{"hook", "sessionID", "directory", …}`, and does what the answer
//! says: `{"context"}` is added to the result that the model reads, `{"refuse"}` is thrown before the
//! call, with `"stop"` the session is aborted, and that and `"warn"` are shown to the person. The plugin is
//! `install/opencode.js`.
//!
//! A tool that fails has no hook after it: its part of the message says so. A subagent is a session of
//! its own.

use onward_engine::ledger::{Asked, Said};
use onward_engine::session::{Heard, SeenCall};
use serde_json::{Value, json};

use super::payload::{failed, output, text};
use super::{Agent, Event, Reply, What};

pub(super) fn read(payload: &Value) -> Option<Event> {
    let name = text(payload, "hook")?;
    let what = match name.as_str() {
        "session.created" => What::SessionStarted,
        "chat.message" => What::Prompted,
        "tool.execute.before" => What::AboutToCall {
            call: asked(payload),
        },
        "permission.asked" => What::Asked {
            call: asked(payload),
            said: Said::Nothing,
        },
        "permission.replied" => What::Asked {
            call: asked(payload),
            said: match text(payload, "reply").as_deref() {
                Some("reject") => Said::No,
                Some(_) | None => Said::Yes,
            },
        },
        "tool.execute.after" => {
            let ok = match failed(payload) {
                true => Some(false),
                false => exit_code(payload).map(|code| code == 0),
            };
            answered(payload, ok, "output")
        }
        "message.part.updated" => answered(payload, Some(false), "error"),
        "session.idle" => What::Answered,
        "session.deleted" => What::SessionEnded,
        _ => return None,
    };
    let heard = Heard {
        session: text(payload, "sessionID").unwrap_or_default(),
        agent: Agent::Opencode.as_str().to_owned(),
        directory: text(payload, "directory"),
        subagent: String::new(),
        turn: None,
    };
    Some(Event { name, heard, what })
}

fn asked(payload: &Value) -> Asked {
    Asked {
        id: text(payload, "callID"),
        tool: text(payload, "tool").unwrap_or_default(),
        input: payload.get("args").cloned().unwrap_or_default(),
    }
}

fn answered(payload: &Value, ok: Option<bool>, key: &str) -> What {
    let Asked { id, tool, input } = asked(payload);
    let call = SeenCall {
        id,
        tool,
        input,
        ok,
        output: payload.get(key).map(output).unwrap_or_default(),
    };
    What::Stepped {
        calls: vec![call],
        whole: false,
    }
}

/// How a command ended, where its metadata says it.
fn exit_code(payload: &Value) -> Option<i64> {
    payload.get("metadata")?.get("exit")?.as_i64()
}

pub(super) fn write(_: &Event, reply: &Reply) -> Option<String> {
    let said = match reply {
        Reply::Nothing | Reply::NoTools => return None,
        Reply::Context(text) => json!({ "context": text }),
        Reply::Warning(text) => json!({ "warn": text }),
        Reply::Refused { reason } => json!({ "refuse": reason }),
        Reply::Stopped { reason, to_person } => {
            json!({ "refuse": reason, "stop": to_person })
        }
    };
    Some(said.to_string())
}

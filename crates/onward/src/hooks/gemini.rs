//! Gemini CLI. It tells of each call alone, and it is the one whose hooks can take the tools away for a
//! step: `BeforeToolSelection` answers with the mode `NONE`. Where a call is made all the same, it is
//! refused, and `continue: false` ends the turn.
//!
//! What a result holds is dressed up for the model: outputs from outside stand in `<untrusted_context>`,
//! and a command's output stands among labels, one of which is the only sign that it failed. All of
//! that comes off: it is as long as an answer, and says nothing.

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
            let said = output(response);
            let told = bare(&said);
            let is_command = text(payload, "tool_name").as_deref() == Some(SHELL);
            let (told, exit) = match is_command {
                true => command(told),
                false => (told, Exit::Fine),
            };
            let ok = exit == Exit::Fine && !failed(response);
            What::Stepped {
                calls: vec![call(payload, Some(ok), told.to_owned())],
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

/// The tool that runs commands.
const SHELL: &str = "run_shell_command";
/// What can stand behind a command's output, each on a line of its own.
const LABELS: [&str; 5] = [
    "Error: ",
    "Exit Code: ",
    "Signal: ",
    "Background PIDs: ",
    "Process Group PGID: ",
];

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
enum Exit {
    Fine,
    Failed,
}

/// A result without what says that it comes from outside.
fn bare(said: &str) -> &str {
    let inner = said
        .trim()
        .strip_prefix("<untrusted_context>")
        .and_then(|rest| rest.strip_suffix("</untrusted_context>"));
    inner.map_or(said, str::trim)
}

/// A command's output without its labels, and how it ended. They are taken off the end, so that an
/// output that looks like one of them keeps what stands before it.
fn command(said: &str) -> (&str, Exit) {
    let Some(mut output) = said.strip_prefix("Output: ") else {
        return (said, Exit::Fine);
    };
    let mut exit = Exit::Fine;
    while let Some((before, last)) = output.rsplit_once('\n') {
        let Some(label) = LABELS.iter().find(|label| last.starts_with(**label)) else {
            break;
        };
        if matches!(*label, "Error: " | "Exit Code: " | "Signal: ") {
            exit = Exit::Failed;
        }
        output = before;
    }
    match output {
        "(empty)" => ("", exit),
        _ => (output, exit),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_around_a_result_comes_off() {
        let outside = |said: &str| format!("<untrusted_context>\n{said}\n</untrusted_context>");
        for (said, told, exit) in [
            (
                outside("Output: hello\nProcess Group PGID: 7"),
                "hello",
                Exit::Fine,
            ),
            (
                outside("Output: (empty)\nProcess Group PGID: 7"),
                "",
                Exit::Fine,
            ),
            (
                outside("Output: nope\nExit Code: 3\nProcess Group PGID: 7"),
                "nope",
                Exit::Failed,
            ),
            (
                outside("Output: a\nExit Code: 9\nb\nProcess Group PGID: 7"),
                "a\nExit Code: 9\nb",
                Exit::Fine,
            ),
            (outside("Output: x\nSignal: SIGKILL"), "x", Exit::Failed),
            (
                outside("Command moved to background (PID: 7). Output hidden."),
                "Command moved to background (PID: 7). Output hidden.",
                Exit::Fine,
            ),
            ("plain".to_owned(), "plain", Exit::Fine),
        ] {
            assert_eq!(command(bare(&said)), (told, exit), "{said}");
        }
    }
}

//! Gemini CLI. It reports each call separately. Its hooks can disable the tools for a step:
//! `BeforeToolSelection` returns the mode `NONE`. If the model calls a tool anyway, the call is
//! rejected, and `continue: false` stops the turn.
//!
//! Results are wrapped for the model: external output in `<untrusted_context>`, and command output
//! in labels, one of which is the only sign of a failure. The wrapping is removed, because it is as
//! long as a short result.

use serde_json::{Value, json};

use super::payload::{
    call, failed, hook_source, output, requested_call, session_started, text as field, turn_ended,
};
use super::{Agent, Event, EventKind, Reply};

pub(super) fn parse(payload: &Value) -> Option<Event> {
    let name = field(payload, "hook_event_name")?;
    let kind = match name.as_str() {
        "SessionStart" => session_started(payload),
        "BeforeAgent" => EventKind::TurnStarted,
        "BeforeToolSelection" => EventKind::BeforeModelRequest,
        // Calls have no ids.
        "BeforeTool" => EventKind::BeforeToolCall {
            call: requested_call(payload, "tool_use_id"),
        },
        "AfterTool" => {
            let response = payload.get("tool_response").unwrap_or(&Value::Null);
            let wrapped = output(response);
            let text = unwrap(&wrapped);
            let is_command = field(payload, "tool_name").as_deref() == Some(SHELL);
            let (text, exit) = if is_command {
                command_output(text)
            } else {
                (text, Exit::Success)
            };
            let ok = exit == Exit::Success && !failed(response);
            EventKind::ToolResults {
                calls: vec![call(payload, Some(ok), text.to_owned())],
                is_batch: false,
            }
        }
        // With the trigger `auto`, Gemini sends it before each request, also if it does not compress.
        "PreCompress" if field(payload, "trigger").as_deref() == Some("auto") => return None,
        "PreCompress" => EventKind::Compacted,
        "AfterAgent" => turn_ended(payload),
        "SessionEnd" => EventKind::SessionEnded,
        _ => return None,
    };
    let source = hook_source(payload, Agent::Gemini);
    Some(Event { name, source, kind })
}

/// The tool for shell commands.
const SHELL: &str = "run_shell_command";
/// Labels after a command's output, one per line.
const LABELS: [&str; 5] = [
    "Error: ",
    "Exit Code: ",
    "Signal: ",
    "Background PIDs: ",
    "Process Group PGID: ",
];

/// The outcome of a command.
#[derive(Debug, PartialEq, Eq)]
enum Exit {
    Success,
    Failed,
}

/// Removes the `<untrusted_context>` element.
fn unwrap(text: &str) -> &str {
    let inner = text
        .trim()
        .strip_prefix("<untrusted_context>")
        .and_then(|rest| rest.strip_suffix("</untrusted_context>"));
    inner.map_or(text, str::trim)
}

/// Removes the labels from a command's output, from the end, so that similar lines inside the
/// output remain.
fn command_output(text: &str) -> (&str, Exit) {
    let Some(mut output) = text.strip_prefix("Output: ") else {
        return (text, Exit::Success);
    };
    let mut exit = Exit::Success;
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

pub(super) fn render(event: &Event, reply: &Reply) -> Option<String> {
    let output = match reply {
        Reply::Nothing => return None,
        Reply::Context(text) => json!({
            "hookSpecificOutput": { "hookEventName": event.name, "additionalContext": text },
        }),
        Reply::Warning(text) => json!({ "systemMessage": text }),
        Reply::DisableTools => json!({
            "hookSpecificOutput": {
                "hookEventName": event.name,
                "toolConfig": { "mode": "NONE" },
            },
        }),
        Reply::Reject { reason } | Reply::Continue { reason } => {
            json!({ "decision": "deny", "reason": reason })
        }
        Reply::Stop { reason, to_user } => json!({
            "continue": false,
            "stopReason": to_user,
            "decision": "deny",
            "reason": reason,
        }),
    };
    Some(output.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_the_wrapping_of_results() {
        let wrap = |text: &str| format!("<untrusted_context>\n{text}\n</untrusted_context>");
        for (wrapped, expected, exit) in [
            (
                wrap("Output: hello\nProcess Group PGID: 7"),
                "hello",
                Exit::Success,
            ),
            (
                wrap("Output: (empty)\nProcess Group PGID: 7"),
                "",
                Exit::Success,
            ),
            (
                wrap("Output: nope\nExit Code: 3\nProcess Group PGID: 7"),
                "nope",
                Exit::Failed,
            ),
            (
                wrap("Output: a\nExit Code: 9\nb\nProcess Group PGID: 7"),
                "a\nExit Code: 9\nb",
                Exit::Success,
            ),
            (wrap("Output: x\nSignal: SIGKILL"), "x", Exit::Failed),
            (
                wrap("Command moved to background (PID: 7). Output hidden."),
                "Command moved to background (PID: 7). Output hidden.",
                Exit::Success,
            ),
            ("plain".to_owned(), "plain", Exit::Success),
        ] {
            assert_eq!(
                command_output(unwrap(&wrapped)),
                (expected, exit),
                "{wrapped}"
            );
        }
    }
}

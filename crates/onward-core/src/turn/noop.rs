//! No-ops: calls without an effect and without new output.
//!
//! `:`, `true`, echo or printf of a constant, reading nothing or `/dev/null`, a lone `sleep`, a
//! comment, a thinking tool. Their output is their own input, so it is never new. Echoing a
//! variable is a query and echoing into a file is a write; neither is a no-op.

use super::Call;
use super::intent::{Intent, command_line, input_texts};
use super::shell::{SimpleCommand, split};

/// Tools that return the agent's own thoughts.
const THINKING_TOOLS: [&str; 3] = ["think", "Think", "sequentialthinking"];

/// The kind of a no-op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoOp {
    /// No effect.
    Idle,
    /// Waiting.
    Wait,
}

/// Whether a call is a known no-op.
pub(crate) fn no_op(call: &Call<'_>, intent: Intent) -> Option<NoOp> {
    let Some(line) = command_line(call) else {
        let nothing =
            THINKING_TOOLS.contains(&call.tool) || (intent == Intent::Read && reads_nothing(call));
        return nothing.then_some(NoOp::Idle);
    };
    let commands = split(line);
    if !commands.iter().all(has_no_effect) {
        return None;
    }
    if commands.iter().any(waits) {
        Some(NoOp::Wait)
    } else {
        Some(NoOp::Idle)
    }
}

fn waits(command: &SimpleCommand) -> bool {
    matches!(command.name(), "sleep" | "wait")
}

fn has_no_effect(command: &SimpleCommand) -> bool {
    if command.writes_to.is_some() {
        return false;
    }
    match command.name() {
        ":" | "true" | "false" | "sleep" | "wait" => true,
        "echo" | "printf" => command.words.iter().all(|word| word.literal),
        "cat" | "head" | "tail" => {
            let files = command.arguments().filter(|word| !word.starts_with('-'));
            let mut files = files.chain(command.reads_from.as_deref()).peekable();
            files.peek().is_some() && files.all(|file| file == "/dev/null")
        }
        _ => false,
    }
}

/// A read tool with `/dev/null` or an empty string as its only input.
fn reads_nothing(call: &Call<'_>) -> bool {
    let mut texts = input_texts(call.input).peekable();
    texts.peek().is_some() && texts.all(|text| matches!(text.trim(), "" | "/dev/null"))
}

//! Known no-ops: calls that do nothing, and say nothing that their author did not know.
//!
//! `:`, `true`, an echo or printf of a constant, reading nothing or `/dev/null`, `sleep` alone, a
//! comment, thinking aloud. What they print is their own input, so it is never news, however long it
//! is. An echo of a variable asks a question, and an echo into a file writes: neither is a no-op.

use super::Call;
use super::intent::{Intent, command_line, input_texts};
use super::shell::{Simple, split};

/// Tools that give their author back what he thought.
const THINKING: [&str; 3] = ["think", "Think", "sequentialthinking"];

/// What sort of nothing a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoOp {
    /// Nothing at all.
    Idle,
    /// It lets time pass.
    Wait,
}

/// Whether a call is known to do nothing.
pub(crate) fn no_op(call: &Call<'_>, intent: Intent) -> Option<NoOp> {
    let Some(line) = command_line(call) else {
        let nothing =
            THINKING.contains(&call.tool) || (intent == Intent::Look && reads_nothing(call));
        return nothing.then_some(NoOp::Idle);
    };
    let commands = split(line);
    if !commands.iter().all(does_nothing) {
        return None;
    }
    match commands.iter().any(waits) {
        true => Some(NoOp::Wait),
        false => Some(NoOp::Idle),
    }
}

fn waits(command: &Simple) -> bool {
    matches!(command.name(), "sleep" | "wait")
}

fn does_nothing(command: &Simple) -> bool {
    if command.writes_to.is_some() {
        return false;
    }
    match command.name() {
        ":" | "true" | "false" | "sleep" | "wait" => true,
        "echo" | "printf" => command.words.iter().all(|word| word.fixed),
        "cat" | "head" | "tail" => {
            let files = command.arguments().filter(|word| !word.starts_with('-'));
            let mut files = files.chain(command.reads_from.as_deref()).peekable();
            files.peek().is_some() && files.all(|file| file == "/dev/null")
        }
        _ => false,
    }
}

/// A tool for looking that is pointed at `/dev/null`, or at nothing.
fn reads_nothing(call: &Call<'_>) -> bool {
    let mut texts = input_texts(call.input).peekable();
    texts.peek().is_some() && texts.all(|text| matches!(text.trim(), "" | "/dev/null"))
}

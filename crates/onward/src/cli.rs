//! The command line: what can be asked, and the answer to what cannot be understood.
//!
//! Data goes to standard output, everything else to standard error. A command line that makes
//! no sense is answered with `error:`, then `hint:`, and ends as [`Exit::Usage`]; nothing else
//! is done then. Without any argument the help is shown, on standard error, for nobody asked
//! for data.
//!
//! There is no command yet. Each will have its own file under `cli/`, named as the command.

use std::io::Write;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};

use crate::exit::Exit;

/// Keeps long AI-agent work moving: durable plans, and a watch for what has stopped.
#[derive(Parser)]
#[command(
    version,
    after_help = "This version has no commands yet. What exists so far is the library\n\
                  `onward-core`: the rules of plans, and the detector of stalled steps."
)]
struct Cli {}

/// Reads the process's arguments, does what they ask, and says how it ended.
pub(crate) fn run() -> Exit {
    match Cli::try_parse() {
        Ok(Cli {}) => say(&Cli::command().render_help().to_string()),
        // Help and version arrive as errors too: whatever ends the parsing does.
        Err(error) if error.use_stderr() => say(&format!(
            "error: {}\nhint: {}\n",
            message(&error),
            hint(&error)
        )),
        Err(help_or_version) => match help_or_version.print() {
            Ok(()) => Exit::Done,
            Err(_) => Exit::Failed,
        },
    }
}

/// What is wrong, in clap's words: its first paragraph. The usage and the tips that follow are
/// the hint's business.
fn message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim_end();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

/// What to do next: what was probably meant, where clap has an idea.
fn hint(error: &clap::Error) -> String {
    if let Some(ContextValue::String(meant)) = error.get(ContextKind::SuggestedArg) {
        format!("did you mean `{meant}`?")
    } else {
        "run `onward --help` to see what there is".to_owned()
    }
}

/// Tells a person why nothing was done.
fn say(text: &str) -> Exit {
    // Nowhere is left to report that standard error is closed; the exit code still tells.
    let _ = std::io::stderr().write_all(text.as_bytes());
    Exit::Usage
}

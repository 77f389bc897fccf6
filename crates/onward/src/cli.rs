//! The command line: what can be asked, and the answer to what cannot be understood.
//!
//! Data goes to standard output, everything else to standard error. A command line that makes
//! no sense is answered with `error:`, then `hint:`, and ends as [`Exit::Usage`]; nothing else
//! is done then. Without any argument the help is shown, on standard error, for nobody asked
//! for data.
//!
//! Each command has its own file under `cli/`, named as the command.

mod transcript;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::Exit;
use crate::output::{Output, complain, tell};

/// Keeps long AI-agent work moving: durable plans, and a watch for what has stopped.
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found.\n\
                  Plans are a library so far, `onward-core`; it has no commands yet."
)]
struct Cli {
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Saved sessions of agents: look back at what happened
    #[command(subcommand)]
    Transcript(transcript::Command),
}

/// Reads the process's arguments, does what they ask, and says how it ended.
pub(crate) fn run() -> Exit {
    match Cli::try_parse() {
        Ok(cli) => match cli.command {
            Some(Command::Transcript(command)) => transcript::run(&command, cli.output),
            None => {
                tell(&Cli::command().render_help().to_string());
                Exit::Usage
            }
        },
        // Help and version arrive as errors too: whatever ends the parsing does.
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            tell(&error.render().to_string());
            Exit::Usage
        }
        Err(error) if error.use_stderr() => {
            complain(&message(&error), &hint(&error));
            Exit::Usage
        }
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
    let suggested = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ];
    let meant = suggested
        .iter()
        .find_map(|kind| error.get(*kind))
        .and_then(first);
    match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "run `onward --help` to see what there is".to_owned(),
    }
}

fn first(context: &ContextValue) -> Option<&str> {
    if let ContextValue::String(text) = context {
        Some(text)
    } else if let ContextValue::Strings(texts) = context {
        texts.first().map(String::as_str)
    } else {
        None
    }
}

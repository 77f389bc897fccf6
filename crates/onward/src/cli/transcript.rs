//! `onward transcript`: analysis and repair of saved sessions, based on [`crate::transcript`].

mod check;
mod judge;
mod repair;

use std::path::Path;

use clap::{Args, Subcommand};
use onward_engine::environment::Environment;
use onward_engine::machine::SystemEnvironment;

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, format};
use crate::transcript::repair::{Examination, Finding, RepairContext, examine};
use crate::transcript::{Error, Format};

#[derive(Subcommand)]
pub(crate) enum Command {
    Judge(judge::Judge),
    Check(check::Check),
    Repair(repair::Repair),
}

pub(super) fn run(command: &Command, output: Output) -> Result {
    match command {
        Command::Judge(judge) => Ok(judge::run(judge, output)),
        Command::Check(args) => check::run(args, output),
        Command::Repair(args) => repair::run(args, output),
    }
}

/// The common flags of `check` and `repair`.
#[derive(Args)]
pub(crate) struct ReadFlags {
    /// Format of the file [default: detected from the content]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Treat the session as ended: calls in its last message that may still be running count as
    /// dangling
    #[arg(long)]
    ended: bool,
}

impl ReadFlags {
    fn examine(&self, path: &Path, output: Output) -> Result<Examination> {
        let context = RepairContext {
            now: SystemEnvironment.now(),
            session_ended: self.ended,
        };
        let examined = examine(path, self.format, context).map_err(|error| failure(&error))?;
        for warning in &examined.warnings {
            output.warn(warning);
        }
        if examined.open_calls > 0 {
            let calls = format::count(examined.open_calls as u64, "call", "calls");
            output.note(&format!(
                "{calls} without a result may still be running; add `--ended` to count them"
            ));
        }
        Ok(examined)
    }
}

fn failure(error: &Error) -> Failure {
    let mut failure = Failure::failed(error.to_string(), error.hint());
    failure.exit = Exit::from(error);
    failure
}

/// A finding as one line of text.
fn line(path: &Path, finding: &Finding) -> String {
    let mut place = path.display().to_string();
    if let Some(line) = finding.line {
        place.push_str(&format!(":{line}"));
    }
    if let Some(row) = finding.row {
        place.push_str(&format!(", message {row}"));
    }
    let what = finding.repair.kind.as_str();
    format::sanitize_line(&format!("{place}: {what}: {}", finding.repair.message())) + "\n"
}

//! `onward transcript`: what can be done with a saved session.
//!
//! How sessions are read and repaired stands in `crate::transcript`.

mod check;
mod judge;
mod repair;

use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use onward_engine::world::{System, World};

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, words};
use crate::transcript::Error;
use crate::transcript::repair::{self as mend, Examined, Finding, Moment, Repairable};

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

/// What `check` and `repair` have in common.
#[derive(Args)]
pub(crate) struct Reading {
    /// The format, if it shall not be told from what is inside
    #[arg(long, value_name = "FORMAT")]
    format: Option<Repairable>,
    /// The session is over: calls of its last row that may still run will not be answered either
    #[arg(long)]
    ended: bool,
}

impl Reading {
    fn examine(&self, path: &Path, output: Output) -> Result<Examined> {
        let moment = Moment {
            now: System.now(),
            is_over: self.ended,
        };
        let examined = mend::examine(path, self.format, moment).map_err(|error| failure(&error))?;
        for warning in &examined.warnings {
            output.warn(warning);
        }
        if examined.open > 0 {
            let calls = words::count(examined.open as u64, "call", "calls");
            output.say(&format!(
                "{calls} without a result may still run; with `--ended` they count too"
            ));
        }
        Ok(examined)
    }
}

/// Why a session could not be examined. What can be repaired is less than what can be judged.
fn failure(error: &Error) -> Failure {
    let hint = match error {
        Error::UnknownFormat { .. } | Error::Misshapen { .. } => format!(
            "name the format with `--format`: {}",
            Repairable::value_variants()
                .iter()
                .filter_map(ValueEnum::to_possible_value)
                .map(|value| value.get_name().to_owned())
                .collect::<Vec<_>>()
                .join(", ")
        ),
        Error::NotFound { .. }
        | Error::Folder { .. }
        | Error::Unreadable { .. }
        | Error::NotJson { .. }
        | Error::NoMessages { .. }
        | Error::NotRepairable { .. } => error.hint(),
    };
    let mut failure = Failure::failed(error.to_string(), hint);
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
        place.push_str(&format!(", row {row}"));
    }
    let what = finding.repair.what.as_str();
    words::line(&format!("{place}: {what}: {}", finding.repair.says())) + "\n"
}

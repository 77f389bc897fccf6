//! `onward transcript check`: would a model's API, or a person, trip over this session?
//!
//! It changes nothing. The exit code tells a script: 10 where something is wrong, 0 where not. What is
//! merely untidy is shown, and does not count.

use std::path::PathBuf;

use clap::Args;

use super::{Reading, line};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::{Output, words};
use crate::wire::finding::FindingLine;

/// Say what is wrong with saved sessions: calls without a result, results without a call
///
/// Prints one line for each thing that is wrong, and the sum on standard error. Exits with 10 where
/// something is wrong, with 0 where not. Nothing is changed.
#[derive(Args)]
pub(crate) struct Check {
    /// Saved sessions, plain or packed with gzip
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
}

pub(super) fn run(args: &Check, output: Output) -> Result {
    let mut wrong = 0u64;
    for path in &args.files {
        let examined = args.reading.examine(path, output)?;
        let name = path.display().to_string();
        for finding in &examined.findings {
            wrong += u64::from(finding.repair.what.is_wrong());
            if output.json {
                output.print_json(&FindingLine::of(finding, Some(&name)))?;
            } else {
                output.print(&line(path, finding))?;
            }
        }
    }
    if wrong == 0 {
        output.say("nothing is wrong");
        return Ok(Exit::Done);
    }
    let things = words::count(wrong, "thing is", "things are");
    output.say(&format!(
        "{things} wrong; `onward transcript repair FILE` puts a session right"
    ));
    Ok(Exit::Found)
}

//! `onward transcript check`: reports the parts of a saved session that a model's API would reject.
//!
//! The exit code is 10 if there is a problem, else 0. Harmless findings are printed and do not
//! count.

use std::path::PathBuf;

use clap::Args;

use super::{ReadFlags, line};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::{Output, format};
use crate::wire::finding::FindingLine;

/// Find problems in saved sessions: calls without a result, results without a call
///
/// Prints one line per problem, and the total on standard error. Exits with 10 if there is a
/// problem, else with 0. Changes nothing.
#[derive(Args)]
pub(crate) struct Check {
    /// Saved sessions, plain or gzip
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    flags: ReadFlags,
}

pub(super) fn run(args: &Check, output: Output) -> Result {
    let mut problems = 0u64;
    for path in &args.files {
        let examined = args.flags.examine(path, output)?;
        let name = path.display().to_string();
        for finding in &examined.findings {
            problems += u64::from(finding.repair.kind.is_error());
            if output.json {
                output.print_json(&FindingLine::new(finding, Some(&name)))?;
            } else {
                output.print(&line(path, finding))?;
            }
        }
    }
    if problems == 0 {
        output.note("no problems found");
        return Ok(Exit::Done);
    }
    let problems = format::count(problems, "problem", "problems");
    output.note(&format!(
        "{problems} found; repair a session with `onward transcript repair FILE`"
    ));
    Ok(Exit::ProblemsFound)
}

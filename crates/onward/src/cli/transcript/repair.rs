//! `onward transcript repair`: repairs a saved session.
//!
//! The original is never lost: the result is a new file, or the original is kept as a backup. A
//! session without problems is not written.

use std::path::PathBuf;

use clap::Args;

use super::{ReadFlags, failure, line};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, format};
use crate::transcript::Error;
use crate::transcript::repair::file::FileSnapshot;
use crate::wire::finding::{FindingLine, RepairedFile};

/// Repair a saved session: each call gets a result, and each result has a call
///
/// Writes a new file next to the original. Prints one line per repaired problem. A session without
/// problems is not changed.
#[derive(Args)]
pub(crate) struct Repair {
    /// Saved session, plain or gzip
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace the original, and keep it as a backup
    #[arg(long)]
    in_place: bool,
    #[command(flatten)]
    flags: ReadFlags,
}

pub(super) fn run(args: &Repair, output: Output) -> Result {
    let path = &args.file;
    // Taken before the file is read, to detect lines that the agent appends meanwhile.
    let before = FileSnapshot::capture(path);
    let examined = args.flags.examine(path, output)?;
    if let Some(format) = examined.unsupported_format() {
        let name = path.display().to_string();
        return Err(failure(&Error::NotRepairable { name, format }));
    }
    let written = if examined.has_errors() {
        let written = before.and_then(|before| {
            if args.in_place {
                before.write_in_place(&examined)
            } else {
                before.write_new_file(path, &examined)
            }
        });
        let failure = |error: std::io::Error| {
            let message = format!("cannot repair `{}`: {error}", path.display());
            Failure::failed(
                message,
                "nothing was changed; close the agent and try again",
            )
        };
        Some(written.map_err(failure)?)
    } else {
        None
    };
    let file = path.display().to_string();
    if output.json {
        let repairs = examined.findings.iter().filter(|_| written.is_some());
        output.print_json(&RepairedFile {
            file: &file,
            written: written
                .as_ref()
                .map(|written| written.file.display().to_string()),
            backup: written
                .as_ref()
                .and_then(|written| written.backup.as_ref())
                .map(|backup| backup.display().to_string()),
            repairs: repairs
                .map(|finding| FindingLine::new(finding, None))
                .collect(),
            open_calls: examined.open_calls,
        })?;
    }
    let Some(written) = written else {
        output.note(&format!("no problems found in `{file}`; not changed"));
        return Ok(Exit::Done);
    };
    if !output.json {
        for finding in &examined.findings {
            output.print(&line(path, finding))?;
        }
    }
    let problems = format::count(examined.findings.len() as u64, "problem", "problems");
    let path = written.file.display();
    output.note(&match &written.backup {
        Some(backup) => format!("{problems} repaired; backup in `{}`", backup.display()),
        None => format!("{problems} repaired in `{path}`"),
    });
    Ok(Exit::Done)
}

//! `onward transcript repair`: the same session, without what is wrong with it.
//!
//! The old file is never lost: either the new one stands beside it, or the old one is kept as a backup.
//! A session with nothing wrong is not written at all.

use std::path::PathBuf;

use clap::Args;

use super::{Reading, line};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, words};
use crate::transcript::repair::file::Before;
use crate::wire::finding::{FindingLine, RepairedFile};

/// Put a saved session right: each call gets a result, and each result has a call
///
/// Writes a new file beside the old one and says where. Prints one line for each thing that was put
/// right. A session with nothing wrong is left as it is.
#[derive(Args)]
pub(crate) struct Repair {
    /// A saved session, plain or packed with gzip
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Put the new file into the place of the old one, and keep that as a backup
    #[arg(long)]
    in_place: bool,
    #[command(flatten)]
    reading: Reading,
}

pub(super) fn run(args: &Repair, output: Output) -> Result {
    let path = &args.file;
    // Before it is read, so that whatever is appended later shows.
    let before = Before::of(path);
    let examined = args.reading.examine(path, output)?;
    let written = if examined.is_wrong() {
        let written = before.and_then(|before| {
            if args.in_place {
                before.write_in_place(&examined)
            } else {
                before.write_beside(path, &examined)
            }
        });
        let failed = |why: std::io::Error| {
            let message = format!("`{}` cannot be repaired: {why}", path.display());
            Failure::failed(
                message,
                "nothing was changed; close the agent, and try again",
            )
        };
        Some(written.map_err(failed)?)
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
                .map(|finding| FindingLine::of(finding, None))
                .collect(),
            open_calls: examined.open,
        })?;
    }
    let Some(written) = written else {
        output.say(&format!(
            "nothing is wrong with `{file}`; it stays as it is"
        ));
        return Ok(Exit::Done);
    };
    if !output.json {
        for finding in &examined.findings {
            output.print(&line(path, finding))?;
        }
    }
    let things = words::count(examined.findings.len() as u64, "thing", "things");
    let at = written.file.display();
    output.say(&match &written.backup {
        Some(backup) => format!(
            "{things} put right; the old file is kept as `{}`",
            backup.display()
        ),
        None => format!("{things} put right in `{at}`"),
    });
    Ok(Exit::Done)
}

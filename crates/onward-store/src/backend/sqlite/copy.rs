//! A copy of a file that is in use, as of one moment, in one go.

use std::path::Path;

use rusqlite::backup::StepResult;

use super::{Connection, error};
use crate::error::Error;

/// Copies the file. What stands at the other path is not touched: there must be nothing.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    if to.exists() {
        return Err(Error::Address {
            address: to.display().to_string(),
            why: "there is a file already".to_owned(),
        });
    }
    let source = Connection::open(from, false)?;
    super::prepare_file(to)?;
    let copied = run(&source, to);
    if copied.is_err() {
        // Half a copy is worse than none; that it could not be removed either changes nothing.
        drop(std::fs::remove_file(to));
    }
    copied
}

fn run(source: &Connection, to: &Path) -> Result<(), Error> {
    let failed = |why| error::opening(why, to);
    let mut target = rusqlite::Connection::open(to).map_err(failed)?;
    let backup = rusqlite::backup::Backup::new(&source.file, &mut target).map_err(failed)?;
    // All pages at once: a reader holds up nobody, and a copy in steps would begin anew with
    // every write.
    if backup.step(-1).map_err(failed)? != StepResult::Done {
        let why = "another program holds the file";
        return Err(Error::unavailable(why, "the call can be sent again"));
    }
    drop(backup);
    target
        .execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;")
        .map_err(failed)?;
    let file = std::fs::File::open(to).map_err(|why| error::unreachable(why, to))?;
    file.sync_all().map_err(|why| error::unreachable(why, to))
}

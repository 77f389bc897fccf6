//! A consistent copy of a file that is in use.

use std::path::Path;

use rusqlite::backup::StepResult;

use super::error;
use super::file::File;
use super::paths::{self, resolve};
use crate::error::Error;

/// Copies the file to `to`, which must not exist.
pub(crate) fn back_up(from: &Path, to: &Path) -> Result<(), Error> {
    if to.exists() {
        let hint = "choose another path for the copy";
        return Err(Error::address(
            to.display(),
            "the file already exists",
            hint,
        ));
    }
    let source = File::open_to_read(from)?;
    let to = &resolve(to, true)?;
    paths::create(to)?;
    let copied = run(&source, to);
    if copied.is_err() {
        // A partial copy is worse than none. A failure to remove it is ignored.
        drop(std::fs::remove_file(to));
    }
    copied
}

fn run(source: &File, to: &Path) -> Result<(), Error> {
    let failed = |why| error::opening(why, to);
    let mut target = rusqlite::Connection::open(to).map_err(failed)?;
    let backup = rusqlite::backup::Backup::new(&source.file, &mut target).map_err(failed)?;
    // All pages in one step: a reader blocks no writer, and a copy in several steps would start
    // over with every write.
    if backup.step(-1).map_err(failed)? != StepResult::Done {
        let why = "another program has locked the file";
        return Err(Error::unavailable(why, "retry the call"));
    }
    drop(backup);
    target
        .execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;")
        .map_err(failed)?;
    let file = std::fs::File::open(to).map_err(|why| error::inaccessible(why, to))?;
    file.sync_all().map_err(|why| error::inaccessible(why, to))
}

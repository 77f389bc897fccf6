//! Writes a repaired database of opencode: to a copy, or in place after a backup.

use std::io;
use std::path::Path;

use onward_engine::opencode::{PartChange, copy, replace_parts};

/// Copies the database to the empty file `to` and repairs the copy.
pub(super) fn write_copy(path: &Path, to: &Path, changes: &[PartChange]) -> io::Result<()> {
    copy(path, to)
        .and_then(|()| replace_parts(to, changes))
        .map_err(io::Error::other)
}

/// Copies the database to the empty file `backup` and repairs the original.
pub(super) fn write_in_place(path: &Path, backup: &Path, changes: &[PartChange]) -> io::Result<()> {
    copy(path, backup)
        .and_then(|()| replace_parts(path, changes))
        .map_err(io::Error::other)
}

//! Files whose paths come from agents or repositories: only regular files are opened. Opening a pipe
//! waits for a process at its other end.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file, or a symbolic link to one.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    File::open(path)
}

/// The text of a regular file.
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

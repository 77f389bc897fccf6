//! Whose turn it is to write, of all processes on one file.
//!
//! SQLite lets whoever waits for its lock find out by trying: the lock lies idle until somebody wakes
//! up, and whoever wakes up too early has worked for nothing. So those who want to write stand in a
//! line of the system's own, a lock on an empty file beside the database, in which each is woken when
//! it is next. It is a courtesy: SQLite's own lock still decides, and other programs need not know.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

/// The line of a database.
pub(super) struct Turn {
    name: OsString,
    /// Made when it is first needed: whoever only reads leaves nothing behind. Where there can be no
    /// such file, nobody stands in line.
    file: OnceLock<Option<File>>,
}

impl Turn {
    pub(super) fn of(database: &Path) -> Self {
        let mut name = database.as_os_str().to_owned();
        name.push("-turn");
        Self {
            name,
            file: OnceLock::new(),
        }
    }

    /// Waits until it is this process's turn; it is until the answer is dropped.
    pub(super) fn wait(&self) -> Taken<'_> {
        let file = self.file.get_or_init(|| {
            let mut options = File::options();
            options.create(true).append(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(&self.name).ok()
        });
        let file = file.as_ref();
        Taken(file.filter(|file| file.lock().is_ok()))
    }
}

/// A turn that was taken.
pub(super) struct Taken<'t>(Option<&'t File>);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.0 {
            // A lock that cannot be given back goes with the process.
            drop(file.unlock());
        }
    }
}

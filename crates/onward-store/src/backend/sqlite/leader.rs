//! Leader election among the processes on a file: the leader locks a second, empty file next to the
//! database, until it exits.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::thread;

use tokio::sync::oneshot;

use super::file_id::FileId;
use super::lock_file;
use super::paths::companion;
use crate::backend::Leader;
use crate::error::Error;

/// A locked file; the operating system releases the lock when the file is closed.
struct Locked {
    path: PathBuf,
    file: fs::File,
}

impl Leader for Locked {
    fn lost(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn is_lost(&self) -> bool {
        // If the lock file was deleted, another process creates a new one and locks that.
        let locked = FileId::new(&self.file);
        locked.ok() != FileId::at(&self.path)
    }
}

/// Waits until no other process is the leader for the duty of this name.
pub(crate) async fn lead(database: &Path, duty: &str) -> Result<Box<dyn Leader>, Error> {
    let path = companion(database, &format!("-{duty}"));
    let failed = |why: std::io::Error| {
        let hint = "check that the directory of the database is writable";
        Error::unavailable(why, hint)
    };
    let file = lock_file::open(&path).map_err(failed)?;
    let (sender, locked) = oneshot::channel();
    // A separate thread, because the lock may block for as long as another process runs. If the
    // caller is dropped meanwhile, the unreceived message closes the file.
    thread::Builder::new()
        .name("onward-lead".to_owned())
        .spawn(move || {
            let locked = file.lock().map(|()| file);
            drop(sender.send(locked));
        })
        .map_err(failed)?;
    let locked = locked
        .await
        .unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()));
    let file = locked.map_err(failed)?;
    Ok(Box::new(Locked { path, file }))
}

//! Leader election among the processes on a file: the leader locks a second, empty file next to the
//! database, until it exits.

use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::thread;

use tokio::sync::oneshot;

use crate::backend::Leader;
use crate::error::Error;

/// A locked file; the operating system releases the lock when the file is closed.
struct Locked {
    #[allow(dead_code, reason = "the open file holds the lock")]
    file: fs::File,
}

impl Leader for Locked {
    fn lost(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn is_lost(&self) -> bool {
        false
    }
}

/// Waits until no other process is the leader for the duty of this name.
pub(crate) async fn lead(database: &Path, duty: &str) -> Result<Box<dyn Leader>, Error> {
    let mut name = database.as_os_str().to_owned();
    name.push("-");
    name.push(duty);
    let failed = |why: std::io::Error| {
        let hint = "check that the directory of the database is writable";
        Error::unavailable(why, hint)
    };
    let mut options = fs::File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(name).map_err(failed)?;
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
    Ok(Box::new(Locked { file }))
}

//! Leader election: on each database one process runs the sweep, and one computes embeddings.
//!
//! The leader holds a lock that ends with its process. Other processes block on the lock and are
//! woken when it is released. On SQLite it is a lock on a second, empty file next to the database;
//! on PostgreSQL it is a session-level advisory lock.

use std::fs::File;
use std::path::Path;
use std::thread;

use tokio::sync::oneshot;

use crate::backend::postgres;
use crate::error::Error;

/// A duty that one process performs for all processes on the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    /// Handles stalls.
    Sweep,
    /// Computes embeddings. Separate from the sweep, because not every process has an embedding
    /// model.
    Embed,
}

impl Lead {
    /// Name of its lock.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Lead::Sweep => "sweep",
            Lead::Embed => "embed",
        }
    }
}

/// The leader lock, held until dropped.
pub struct Leadership(Held);

/// The lock of a leader.
enum Held {
    File {
        #[allow(dead_code, reason = "the open file holds the lock")]
        locked: File,
    },
    Server(postgres::Leadership),
}

impl Leadership {
    pub(crate) async fn of_file(database: &Path, lead: Lead) -> Result<Self, Error> {
        let mut name = database.as_os_str().to_owned();
        name.push("-");
        name.push(lead.name());
        let failed = |why: std::io::Error| {
            let hint = "check that the directory of the database is writable";
            Error::unavailable(why, hint)
        };
        let mut options = File::options();
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
        let locked = locked.map_err(failed)?;
        Ok(Self(Held::File { locked }))
    }

    pub(crate) fn of_server(held: postgres::Leadership) -> Self {
        Self(Held::Server(held))
    }

    /// Waits until another process may be the leader. Never returns on SQLite, where a held lock
    /// cannot be lost.
    pub async fn lost(&mut self) {
        match &mut self.0 {
            Held::File { .. } => std::future::pending().await,
            Held::Server(held) => held.lost().await,
        }
    }

    /// Whether another process may be the leader.
    pub fn is_lost(&self) -> bool {
        match &self.0 {
            Held::File { .. } => false,
            Held::Server(held) => held.is_lost(),
        }
    }
}

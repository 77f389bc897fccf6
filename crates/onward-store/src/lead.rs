//! Which process leads: of all on one database, one sweeps, and one asks a model what chunks mean. A lead goes with the process that has
//! it, however that ends, and whoever waits for it is woken, not asked again and again.
//!
//! On a file it is a lock on a second, empty file beside it; on PostgreSQL an advisory lock of a
//! connection.

use std::fs::File;
use std::path::Path;
use std::thread;

use tokio::sync::oneshot;

use crate::backend::postgres;
use crate::error::Error;

/// What one process does for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    /// Acts on stalls.
    Sweep,
    /// Asks a model what chunks mean. A lead of its own: not every process knows a model.
    Embed,
}

impl Lead {
    /// The name of its lock.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Lead::Sweep => "sweep",
            Lead::Embed => "embed",
        }
    }
}

/// The lead, while it is held.
pub struct Leadership(Held);

enum Held {
    File {
        #[allow(dead_code, reason = "the lock is held for as long as the file is open")]
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
            let hint = "check that the directory of the database may be written to";
            Error::unavailable(why, hint)
        };
        let mut options = File::options();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(name).map_err(failed)?;
        let (sender, locked) = oneshot::channel();
        // A thread of its own: it may have to wait for as long as another process lives. If nobody
        // wants the lead any more by then, the file is closed again with the message.
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

    /// Waits until another process may lead; for ever, where that cannot be.
    pub async fn lost(&mut self) {
        match &mut self.0 {
            Held::File { .. } => std::future::pending().await,
            Held::Server(held) => held.lost().await,
        }
    }

    /// Whether another process may lead by now.
    pub fn is_lost(&self) -> bool {
        match &self.0 {
            Held::File { .. } => false,
            Held::Server(held) => held.is_lost(),
        }
    }
}

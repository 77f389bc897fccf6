//! Read connections. A reader sees the snapshot of its first query, however long it takes, and
//! blocks no writer.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::connection::Connection;
use super::file::File;
use super::sign_bit_cache::SignBitCache;
use crate::error::Error;

/// Idle read connections, and how to open more.
#[derive(Clone)]
pub(crate) struct Readers {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Connection>>>,
    /// Connection for `version`: values of `data_version` are comparable only within one
    /// connection.
    poller: Arc<Mutex<Option<File>>>,
    signs: SignBitCache,
}

/// Maximum number of idle connections.
const MAX_IDLE: usize = 8;

impl Readers {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: Arc::new(path.to_owned()),
            idle: Arc::default(),
            poller: Arc::default(),
            signs: SignBitCache::default(),
        }
    }

    /// Begins a read transaction.
    pub(crate) fn begin(&self) -> Result<Connection, Error> {
        let idle = self.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => Connection::new(File::open(&self.path, false)?.sharing(&self.signs)),
        };
        connection.control("BEGIN")?;
        Ok(connection)
    }

    /// Ends it, and keeps the connection for reuse.
    pub(crate) fn end(&self, connection: Connection) {
        if connection.control("ROLLBACK").is_ok() {
            let mut idle = self.lock();
            if idle.len() < MAX_IDLE {
                idle.push(connection);
            }
        }
    }

    /// A number that changes whenever this or another process commits.
    pub(crate) fn version(&self) -> Result<i64, Error> {
        // A panic leaves a connection or none; both are valid.
        let mut poller = self.poller.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match poller.take() {
            Some(file) => file,
            None => File::open(&self.path, false)?,
        };
        poller.insert(file).data_version()
    }

    /// Closes the idle connections.
    pub(crate) fn close(&self) {
        self.lock().clear();
        self.signs.clear();
        let mut poller = self.poller.lock().unwrap_or_else(PoisonError::into_inner);
        poller.take();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        // A panic during a push or a pop leaves the list valid.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

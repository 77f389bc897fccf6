//! Idle read connections of a file.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::connection::Connection;
use super::file::File;
use super::sign_bit_cache::SignBitCache;

/// Maximum number of idle connections.
pub(super) const MAX_IDLE: usize = 8;

/// Connections that are not in use. The writer closes them when it opens another file.
#[derive(Default)]
pub(super) struct ReaderPool {
    idle: Mutex<Idle>,
    /// Connection for `version`: values of `data_version` are comparable only within one
    /// connection.
    poller: Mutex<Option<(u32, File)>>,
}

impl ReaderPool {
    pub(super) fn clear(&self) {
        *self.lock() = Idle::default();
        self.poller().take();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Idle> {
        // A panic during a push or a pop leaves the list valid.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn poller(&self) -> MutexGuard<'_, Option<(u32, File)>> {
        // A panic leaves a connection or none; both are valid.
        self.poller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Idle connections to one file, and their shared state.
#[derive(Default)]
pub(super) struct Idle {
    /// Number of the file (`file_watch`).
    pub(super) generation: u32,
    pub(super) connections: Vec<Connection>,
    pub(super) signs: SignBitCache,
}

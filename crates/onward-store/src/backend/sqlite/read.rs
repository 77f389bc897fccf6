//! Connections that read beside the writer. A reader sees one state of the file, as of its first
//! question, however long it takes, and holds up nobody.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Connection, Held};
use crate::error::Error;
use crate::fault::Faults;
use crate::tx::{self, Tx};

/// Readers that are not in use, and how to make more.
#[derive(Clone)]
pub(crate) struct Readers {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Tx>>>,
    /// The one that is asked whether anything was committed: only the answers of one connection can
    /// be compared with each other.
    pulse: Arc<Mutex<Option<Connection>>>,
    held: Held,
    faults: Faults,
}

/// More than this many are closed again after use.
const KEPT: usize = 8;

impl Readers {
    pub(crate) fn of(path: &Path, faults: Faults) -> Self {
        Self {
            path: Arc::new(path.to_owned()),
            idle: Arc::default(),
            pulse: Arc::default(),
            held: Held::default(),
            faults,
        }
    }

    /// A reader in a transaction of its own.
    pub(crate) fn begin(&self, tenant: Arc<str>) -> Result<Tx, Error> {
        let idle = self.lock().pop();
        let mut tx = match idle {
            Some(tx) => tx,
            None => {
                let connection = Connection::open(&self.path, false)?.holding(&self.held);
                let connection = tx::Connection::Sqlite(connection);
                Tx::new(connection, "".into(), self.faults.clone())
            }
        };
        tx.turn_to(tenant);
        control(&tx, "BEGIN")?;
        Ok(tx)
    }

    /// Ends it, and keeps the connection for the next one.
    pub(crate) fn end(&self, tx: Tx) {
        if control(&tx, "ROLLBACK").is_ok() {
            let mut idle = self.lock();
            if idle.len() < KEPT {
                idle.push(tx);
            }
        }
    }

    /// A number that is another one whenever somebody, here or in another process, has committed.
    pub(crate) fn version(&self) -> Result<i64, Error> {
        // Whoever panicked held a connection, or none: both are whole.
        let mut pulse = self.pulse.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match pulse.take() {
            Some(connection) => connection,
            None => Connection::open(&self.path, false)?,
        };
        pulse.insert(connection).data_version()
    }

    /// Closes those that are not in use.
    pub(crate) fn close(&self) {
        self.lock().clear();
        self.held.clear();
        let mut pulse = self.pulse.lock().unwrap_or_else(PoisonError::into_inner);
        pulse.take();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Tx>> {
        // Whoever panicked held the list for a push or a pop: it is whole.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn control(tx: &Tx, text: &'static str) -> Result<(), Error> {
    match &tx.connection {
        tx::Connection::Sqlite(connection) => connection.control(text),
        tx::Connection::Postgres(_) => Ok(()),
    }
}

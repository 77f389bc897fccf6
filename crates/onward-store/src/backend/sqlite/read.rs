//! Read connections. A reader sees the snapshot of its first query, however long it takes, and
//! blocks no writer.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Connection, Held};
use crate::error::Error;
use crate::fault::Faults;
use crate::tx::{self, Tx};

/// Idle read connections, and how to open more.
#[derive(Clone)]
pub(crate) struct Readers {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Tx>>>,
    /// Connection for `version`: values of `data_version` are comparable only within one
    /// connection.
    pulse: Arc<Mutex<Option<Connection>>>,
    held: Held,
    faults: Faults,
}

/// Maximum number of idle connections.
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

    /// Begins a read transaction.
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

    /// Ends it, and keeps the connection for reuse.
    pub(crate) fn end(&self, tx: Tx) {
        if control(&tx, "ROLLBACK").is_ok() {
            let mut idle = self.lock();
            if idle.len() < KEPT {
                idle.push(tx);
            }
        }
    }

    /// A number that changes whenever this or another process commits.
    pub(crate) fn version(&self) -> Result<i64, Error> {
        // A panic leaves a connection or none; both are valid.
        let mut pulse = self.pulse.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match pulse.take() {
            Some(connection) => connection,
            None => Connection::open(&self.path, false)?,
        };
        pulse.insert(connection).data_version()
    }

    /// Closes the idle connections.
    pub(crate) fn close(&self) {
        self.lock().clear();
        self.held.clear();
        let mut pulse = self.pulse.lock().unwrap_or_else(PoisonError::into_inner);
        pulse.take();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Tx>> {
        // A panic during a push or a pop leaves the list valid.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn control(tx: &Tx, text: &'static str) -> Result<(), Error> {
    match &tx.connection {
        tx::Connection::Sqlite(connection) => connection.control(text),
        tx::Connection::Postgres(_) => Ok(()),
    }
}

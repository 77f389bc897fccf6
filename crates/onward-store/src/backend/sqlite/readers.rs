//! Read connections. A reader sees the snapshot of its first query for the whole transaction, and
//! blocks no writer.

use super::connection::Connection;
use super::file::File;
use super::file_watch::FileWatch;
use super::reader_pool::{Idle, MAX_IDLE};
use super::writer::Writer;
use crate::error::Error;
use crate::interrupt::Stop;

/// Read connections to the writer's file.
#[derive(Clone)]
pub(crate) struct Readers {
    writer: Writer,
}

/// A read transaction.
pub(crate) struct Reading {
    generation: u32,
    connection: Connection,
}

impl Reading {
    /// The connection of the transaction.
    pub(crate) fn connection(&self) -> Connection {
        self.connection.clone()
    }

    /// Stops the statement that runs on the connection.
    pub(crate) fn stop(&self) -> Stop {
        let handle = self.connection.lock().file.get_interrupt_handle();
        Box::new(move || handle.interrupt())
    }
}

impl Readers {
    /// Readers of the writer's file.
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer }
    }

    /// Begins a read transaction. If the file is lost, opens the one that is at the path.
    pub(crate) fn begin(&self) -> Result<Reading, Error> {
        let generation = self.check()?;
        let (idle, signs) = {
            let mut idle = self.writer.pool().lock();
            if idle.generation != generation {
                *idle = Idle {
                    generation,
                    ..Idle::default()
                };
            }
            (idle.connections.pop(), idle.signs.clone())
        };
        let connection = match idle {
            Some(connection) => connection,
            None => Connection::new(self.open()?.sharing(&signs)),
        };
        connection.control("BEGIN")?;
        Ok(Reading {
            generation,
            connection,
        })
    }

    /// Ends it, and keeps the connection for reuse. Fails if the file was lost meanwhile.
    pub(crate) fn end(&self, reading: Reading) -> Result<(), Error> {
        let Reading {
            generation,
            connection,
        } = reading;
        let ended = connection.control("ROLLBACK");
        self.watch().check_generation(generation)?;
        let mut idle = self.writer.pool().lock();
        if ended.is_ok() && generation == idle.generation && idle.connections.len() < MAX_IDLE {
            idle.connections.push(connection);
        }
        Ok(())
    }

    /// A number that changes whenever this or another process commits, or the file is replaced.
    pub(crate) fn version(&self) -> Result<i64, Error> {
        let generation = self.check()?;
        let mut poller = self.writer.pool().poller();
        let (_, file) = match poller.take() {
            Some((of, file)) if of == generation => poller.insert((of, file)),
            Some(_) | None => poller.insert((generation, self.open()?)),
        };
        // SQLite's number has 32 bits.
        Ok((i64::from(generation) << 32) + file.data_version()?)
    }

    /// Closes the idle connections.
    pub(crate) fn close(&self) {
        self.writer.pool().clear();
    }

    /// Opens a connection, which leaves the write-ahead log to the writer when it is closed.
    fn open(&self) -> Result<File, Error> {
        let file = File::open_to_read(&self.watch().path()?)?;
        file.keep_log()?;
        Ok(file)
    }

    /// Number of the open file, which is the one at the path.
    fn check(&self) -> Result<u32, Error> {
        if self.watch().is_lost() {
            self.writer.reopen()?;
        }
        self.watch().check()
    }

    fn watch(&self) -> &FileWatch {
        self.writer.watch()
    }
}

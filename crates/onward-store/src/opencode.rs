//! The SQLite database of opencode: messages and parts of saved sessions, for transcript repair.
//!
//! The schema belongs to opencode, so these statements are not in `query/`. Only the data of parts
//! is changed, in one transaction, and only if no other process changed it.

use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::error::Error;

/// The time to wait for a lock of opencode.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A message of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpencodeMessage {
    /// The id of the session.
    pub session: String,
    /// The message as JSON, without its ids.
    pub data: String,
    /// The parts, in order.
    pub parts: Vec<OpencodePart>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpencodePart {
    /// The id.
    pub id: String,
    /// The part as JSON, without its ids.
    pub data: String,
}

/// A change of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartChange {
    /// The id of the part.
    pub id: String,
    /// The data as read.
    pub before: String,
    /// The new data.
    pub after: String,
}

/// Whether a file is a database, of opencode or of another program.
pub fn is_database(path: &Path) -> bool {
    let mut head = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(16).read_to_end(&mut head));
    read.is_ok() && head == b"SQLite format 3\0"
}

/// Visits the messages of all sessions, by session and time.
///
/// # Errors
///
/// If the file is not a database of opencode or cannot be read.
pub fn visit_messages(
    path: &Path,
    visit: &mut dyn FnMut(OpencodeMessage) -> ControlFlow<()>,
) -> Result<(), Error> {
    let failed = |why: rusqlite::Error| failure(path, why);
    let file = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut read = || {
        let mut messages = file.prepare(
            "SELECT session_id, id, data FROM message ORDER BY session_id, time_created, id",
        )?;
        let mut parts =
            file.prepare("SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id")?;
        let mut rows = messages.query([])?;
        while let Some(row) = rows.next()? {
            let id: String = row.get(1)?;
            let part = |row: &rusqlite::Row<'_>| {
                Ok(OpencodePart {
                    id: row.get(0)?,
                    data: row.get(1)?,
                })
            };
            let message = OpencodeMessage {
                session: row.get(0)?,
                data: row.get(2)?,
                parts: parts.query_map([&id], part)?.collect::<Result<_, _>>()?,
            };
            if visit(message).is_break() {
                break;
            }
        }
        Ok(())
    };
    read().map_err(failed)
}

/// Writes a consistent copy of a database to `to`, which must be empty.
///
/// # Errors
///
/// If one of the files cannot be used.
pub fn copy(path: &Path, to: &Path) -> Result<(), Error> {
    let failed = |why: rusqlite::Error| failure(path, why);
    let file = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let target = to.to_string_lossy();
    let copied = file.execute("VACUUM INTO ?1", [target.as_ref()]);
    copied.map(drop).map_err(failed)
}

/// Replaces the data of parts in one transaction.
///
/// # Errors
///
/// If the file cannot be written, or if a part has changed. Then nothing is changed.
pub fn replace_parts(path: &Path, changes: &[PartChange]) -> Result<(), Error> {
    let failed = |why: rusqlite::Error| failure(path, why);
    let mut file = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let behavior = TransactionBehavior::Immediate;
    let transaction = file.transaction_with_behavior(behavior).map_err(failed)?;
    for change in changes {
        let changed = replace(&transaction, change).map_err(failed)?;
        if changed != 1 {
            return Err(Error::address(
                path.display(),
                format!("part `{}` changed while it was read", change.id),
                "stop opencode, and run the command again",
            ));
        }
    }
    transaction.commit().map_err(failed)
}

fn replace(transaction: &Transaction<'_>, change: &PartChange) -> rusqlite::Result<usize> {
    let values = [&change.after, &change.id, &change.before];
    transaction.execute(
        "UPDATE part SET data = ?1 WHERE id = ?2 AND data = ?3",
        values,
    )
}

fn open(path: &Path, mode: OpenFlags) -> Result<Connection, Error> {
    let failed = |why: rusqlite::Error| failure(path, why);
    let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let file = Connection::open_with_flags(path, flags).map_err(failed)?;
    file.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    Ok(file)
}

fn failure(path: &Path, why: rusqlite::Error) -> Error {
    let message = format!("not readable as a database of opencode: {why}");
    let hint = "check the path and its permissions";
    Error::address(path.display(), message, hint).caused_by(why)
}

//! SQLite backend: one file, one writer, and separate read connections.
//!
//! Several processes on one file are the normal case, because each agent host starts its own. So
//! every write transaction begins with `BEGIN IMMEDIATE` (in WAL mode a reader that becomes a
//! writer fails immediately, and waiting does not help), and the writers of all processes queue for
//! the file (`write_queue`), because SQLite's own busy handler can starve a writer for seconds. A
//! response means that the change is on disk.

mod backup;
mod busy;
mod catalog;
mod connection;
mod error;
mod file;
mod file_id;
mod file_watch;
mod group_commit;
mod leader;
mod lock_file;
mod migrate;
mod nearest;
mod paths;
mod presence;
mod queued_job;
mod reader_pool;
mod readers;
mod relocation;
mod restore;
mod sign_bit_cache;
mod statement_text;
mod write_queue;
mod writer;

pub(crate) use backup::back_up;
pub(crate) use catalog::deviations;
pub(crate) use file::File;
pub(crate) use leader::lead;
pub(crate) use migrate::{VERSION, version};
pub(crate) use paths::{files, log_size};
pub(crate) use presence::{announce, versions};
pub(crate) use readers::Readers;
pub(crate) use relocation::{open_source, open_target};
pub(crate) use restore::restore;
pub(crate) use writer::{Settings, Work, Writer};

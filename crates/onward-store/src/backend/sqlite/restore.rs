//! Replaces a database with a backup. The previous files are kept under another name.
//!
//! The order of the steps matters: whenever the process is terminated, the path refers to either
//! the complete previous database or the complete restored one. The previous log is empty before it
//! is moved, and a restored file in rollback mode next to a log with content is rejected
//! (`file_watch`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::file::File;
use super::file_id::FileId;
use super::file_watch::OpenFile;
use super::paths::{companion, resolve};
use super::{backup, busy, error, lock_file, migrate, write_queue};
use crate::error::Error;

/// Interval between attempts to take the write queue.
const INTERVAL: Duration = Duration::from_millis(20);

/// Copies the backup `from` to the database's path. Returns the new path of the previous database,
/// if there was one. `stamp` makes it unique.
pub(crate) fn restore(given: &Path, from: &Path, stamp: &str) -> Result<Option<PathBuf>, Error> {
    if !from.is_file() {
        return Err(invalid(from, "no such file"));
    }
    let path = resolve(given, true)?;
    if FileId::at(from) == FileId::at(&path) {
        return Err(invalid(from, "it is the database itself"));
    }
    let copy = companion(&path, &format!(".restoring-{stamp}"));
    let restored = verified_copy(from, &copy).and_then(|()| put_in_place(&path, &copy, stamp));
    if restored.is_err() {
        // A failure to remove the copy is ignored: it is not a database that is in use.
        drop(fs::remove_file(&copy));
    }
    restored
}

/// Copies the backup next to the database, and checks the copy.
fn verified_copy(from: &Path, copy: &Path) -> Result<(), Error> {
    backup::back_up(from, copy)?;
    let file = File::open_to_read(copy)?;
    migrate::check_application(&file, from, true)?;
    let (found, known) = (migrate::version(&file)?, migrate::VERSION);
    if found > known {
        return Err(Error::Newer { found, known });
    }
    let check = file
        .file
        .query_row("PRAGMA integrity_check(1)", [], |row| {
            row.get::<_, String>(0)
        })
        .map_err(|why| error::running(why, "integrity_check"))?;
    match check.as_str() {
        "ok" => Ok(()),
        damage => Err(invalid(from, &format!("the backup is damaged: {damage}"))),
    }
}

/// Replaces the database with the copy, while no other process writes.
fn put_in_place(path: &Path, copy: &Path, stamp: &str) -> Result<Option<PathBuf>, Error> {
    let failed = |why| error::inaccessible(why, path);
    let queue = take_queue(path)?;
    let previous = if path.exists() {
        Some(keep_previous(path, stamp)?)
    } else {
        // A log without a database would be applied to the restored one.
        move_companions(path, &companion(path, &before(stamp)))?;
        None
    };
    fs::rename(copy, path).map_err(failed)?;
    sync_directory(path)?;
    drop(queue);
    Ok(previous)
}

fn before(stamp: &str) -> String {
    format!(".before-restore-{stamp}")
}

/// Waits for the write queue, so that other processes do not write. The lock is released when the
/// file is closed.
pub(super) fn take_queue(path: &Path) -> Result<fs::File, Error> {
    let failed = |why| error::inaccessible(why, path);
    let queue = lock_file::open(&companion(path, write_queue::SUFFIX)).map_err(failed)?;
    let since = Instant::now();
    loop {
        match queue.try_lock() {
            Ok(()) => return Ok(queue),
            Err(fs::TryLockError::WouldBlock) if since.elapsed() < busy::QUEUE_TIMEOUT => {
                std::thread::sleep(INTERVAL);
            }
            Err(fs::TryLockError::WouldBlock) => return Err(error::locked()),
            Err(fs::TryLockError::Error(why)) => return Err(failed(why)),
        }
    }
}

/// Gives the previous database a second name, which keeps its content, and moves its log there.
fn keep_previous(path: &Path, stamp: &str) -> Result<PathBuf, Error> {
    let failed = |why| error::inaccessible(why, path);
    empty_log(path)?;
    let kept = companion(path, &before(stamp));
    // Not every file system has hard links.
    if fs::hard_link(path, &kept).is_err() {
        fs::copy(path, &kept).map_err(failed)?;
        let copied = fs::File::open(&kept).and_then(|file| file.sync_all());
        copied.map_err(failed)?;
    }
    sync_directory(path)?;
    move_companions(path, &kept)?;
    Ok(kept)
}

fn move_companions(path: &Path, kept: &Path) -> Result<(), Error> {
    for suffix in ["-wal", "-shm"] {
        match fs::rename(companion(path, suffix), companion(kept, suffix)) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                return Err(error::inaccessible(why, path));
            }
            Ok(()) | Err(_) => {}
        }
    }
    sync_directory(path)
}

/// Copies the log into the previous database, so that the database is complete without it. A file
/// that is not a database, or was overwritten, is kept as it is.
fn empty_log(path: &Path) -> Result<(), Error> {
    if OpenFile::open(path.to_owned()).is_err() {
        return Ok(());
    }
    let Ok(file) = File::open_to_read(path) else {
        return Ok(());
    };
    match file.empty_log() {
        Ok(true) => Ok(()),
        Ok(false) => Err(error::locked()),
        // A damaged database is kept as it is, too: its log is moved with it.
        Err(_) => Ok(()),
    }
}

fn sync_directory(path: &Path) -> Result<(), Error> {
    // Windows cannot open a directory as a file, and its file system has a journal.
    if cfg!(windows) {
        return Ok(());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|why| error::inaccessible(why, folder))
}

fn invalid(from: &Path, why: &str) -> Error {
    Error::address(from.display(), why, "choose another backup")
}

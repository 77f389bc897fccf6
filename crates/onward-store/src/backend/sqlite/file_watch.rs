//! Detects that the database file was deleted, replaced or overwritten while it is open.
//!
//! SQLite continues to use an open file after its path was removed, so writes to it would be
//! acknowledged and then lost. Before each response the store compares the file at the path with
//! the open one. Once they differ, the file is lost: calls fail until the writer has opened the
//! file that is now at the path. A missing file is not created again.
//!
//! A copy made with SQLite's backup interface is in rollback mode. Such a header in a file that is
//! open in WAL mode, or that has a write-ahead log, means that the file was overwritten in place,
//! and that the log belongs to the previous content.
//!
//! A file whose log could not be synced counts as lost, too: after a failed sync the system may
//! report the next one as successful although the data is not on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error;
use super::file_id::{ChangeTime, FileId, inspect, read_exact_at};
use super::paths::{companion, log_size};
use crate::error::{Error, Hint};

/// Open files of this process, with the number of their handles. Closing any descriptor of a file
/// releases all POSIX locks of the process on it, including those of SQLite, so all handles share
/// one descriptor, which is closed with the last one.
static OPEN: Mutex<BTreeMap<FileId, (Arc<fs::File>, usize)>> = Mutex::new(BTreeMap::new());

/// A descriptor of the database file, to read its header.
struct Handle {
    id: FileId,
    file: Arc<fs::File>,
}

impl Handle {
    fn open(path: &Path) -> Result<Self, Error> {
        let failed = |why| error::inaccessible(why, path);
        if !fs::metadata(path).map_err(failed)?.is_file() {
            return Err(error::unreachable("not a regular file", path));
        }
        let (id, _) = inspect(path).map_err(failed)?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((file, handles)) = open.get_mut(&id) {
            *handles += 1;
            let file = Arc::clone(file);
            return Ok(Self { id, file });
        }
        let file = Arc::new(fs::File::open(path).map_err(failed)?);
        let id = FileId::new(&file).map_err(failed)?;
        open.insert(id, (Arc::clone(&file), 1));
        Ok(Self { id, file })
    }

    /// Whether the file is in rollback mode, according to its header.
    fn in_rollback_mode(&self) -> bool {
        self.journal_version() == Some([1, 1])
    }

    fn in_wal_mode(&self) -> bool {
        self.journal_version() == Some([2, 2])
    }

    /// Read and write version of the file format; `None` if the file is empty.
    fn journal_version(&self) -> Option<[u8; 2]> {
        let mut version = [0; 2];
        let read = read_exact_at(&self.file, &mut version, 18);
        read.ok().map(|()| version)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, handles)) = open.get_mut(&self.id) {
            *handles -= 1;
            if *handles == 0 {
                open.remove(&self.id);
            }
        }
    }
}

/// The file that is open, and how to recognise it.
pub(super) struct OpenFile {
    /// Path without symbolic links. The companions of the database have this path and a suffix.
    pub(super) path: PathBuf,
    handle: Handle,
    log: Option<FileId>,
    /// Time of the last change at which the header was checked. In WAL mode only a checkpoint
    /// changes the file.
    checked: Option<ChangeTime>,
}

impl OpenFile {
    /// Takes a descriptor, before SQLite opens the file.
    pub(super) fn open(path: PathBuf) -> Result<Self, Error> {
        let handle = Handle::open(&path)?;
        if handle.in_rollback_mode() && log_size(&path) > 0 {
            return Err(overwritten(&path));
        }
        Ok(Self {
            path,
            handle,
            log: None,
            checked: None,
        })
    }

    /// Records the log, which SQLite has opened.
    pub(super) fn opened(&mut self) {
        self.log = FileId::at(&companion(&self.path, "-wal"));
    }

    fn check(&mut self, given: &Path) -> Result<(), Loss> {
        let (id, changed) = inspect(given).map_err(|_| Loss::Deleted)?;
        if id != self.handle.id {
            return Err(Loss::Replaced);
        }
        if self.log.is_some() && FileId::at(&companion(&self.path, "-wal")) != self.log {
            return Err(Loss::Log);
        }
        if self.checked != Some(changed) {
            if !self.handle.in_wal_mode() {
                return Err(Loss::Overwritten);
            }
            self.checked = Some(changed);
        }
        Ok(())
    }
}

/// What happened to an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    Deleted,
    Replaced,
    Overwritten,
    /// The write-ahead log was deleted or replaced.
    Log,
    /// The write-ahead log could not be synced.
    Unsynced,
}

impl Loss {
    fn error(self, path: &Path) -> Error {
        match self {
            Loss::Deleted => missing(path),
            Loss::Replaced => Error::unavailable(
                format_args!("`{}` was replaced while in use", path.display()),
                "retry the call; it uses the new file",
            ),
            Loss::Overwritten => overwritten(path),
            Loss::Log => Error::unavailable(
                format_args!(
                    "the write-ahead log of `{}` was deleted or replaced while in use",
                    path.display()
                ),
                Hint::for_operator("run `onward doctor`, then retry the call"),
            ),
            Loss::Unsynced => Error::unavailable(
                format_args!(
                    "the write-ahead log of `{}` could not be synced",
                    path.display()
                ),
                "check the disk and its free space, then retry the call",
            ),
        }
    }
}

/// The file of an open database does not exist.
pub(super) fn missing(path: &Path) -> Error {
    Error::unavailable(
        format_args!("`{}` was deleted or moved while in use", path.display()),
        Hint::for_operator(
            "put the file back, or restore a backup with `onward restore FILE`; no restart is \
             needed",
        ),
    )
}

fn overwritten(path: &Path) -> Error {
    Error::unavailable(
        format_args!(
            "`{}` was overwritten; its write-ahead log belongs to the previous content",
            path.display()
        ),
        Hint::for_operator(
            "restore the backup with `onward restore FILE`, which keeps the previous files",
        ),
    )
}

/// Watches the file of a store. Shared by its writer and its readers.
pub(crate) struct FileWatch {
    /// The path as given. The target of a symbolic link may change.
    given: PathBuf,
    state: Mutex<State>,
}

struct State {
    /// Number of files opened so far. A connection to an earlier file must not be used.
    generation: u32,
    /// `None` once another file may be at the path.
    open: Option<OpenFile>,
    /// What happened to the file, if it is lost.
    loss: Option<Loss>,
}

impl FileWatch {
    pub(super) fn new(given: &Path) -> Self {
        Self {
            given: given.to_owned(),
            state: Mutex::new(State {
                generation: 0,
                open: None,
                loss: None,
            }),
        }
    }

    /// Watches another file from now on.
    pub(super) fn watch(&self, open: OpenFile) {
        let mut state = self.lock();
        state.generation += 1;
        state.open = Some(open);
        state.loss = None;
    }

    /// Fails if the file with this number is not the one at the path.
    pub(super) fn check_generation(&self, generation: u32) -> Result<(), Error> {
        if self.check()? == generation {
            Ok(())
        } else {
            Err(Loss::Replaced.error(&self.given))
        }
    }

    /// Fails if the open file is not the one at the path. Returns the number of the open file.
    pub(super) fn check(&self) -> Result<u32, Error> {
        let mut state = self.lock();
        let checked = match (state.loss, &mut state.open) {
            (None, Some(open)) => open.check(&self.given),
            (loss, _) => return Err(loss.unwrap_or(Loss::Deleted).error(&self.given)),
        };
        match checked {
            Ok(()) => Ok(state.generation),
            Err(loss) => {
                state.loss = Some(loss);
                state.open = None;
                Err(loss.error(&self.given))
            }
        }
    }

    /// Records that the log could not be synced. The descriptor stays open: it is the same file, on
    /// which other connections of this process hold locks.
    pub(super) fn sync_failed(&self) {
        self.lock().loss = Some(Loss::Unsynced);
    }

    /// Whether the file must be opened again.
    pub(super) fn is_lost(&self) -> bool {
        let state = self.lock();
        state.loss.is_some() || state.open.is_none()
    }

    /// What happened to the open file.
    pub(super) fn loss(&self) -> Option<Loss> {
        self.lock().loss
    }

    /// The path as given.
    pub(super) fn given(&self) -> &Path {
        &self.given
    }

    /// Path of the open file without symbolic links; fails if it is lost.
    pub(crate) fn path(&self) -> Result<PathBuf, Error> {
        let state = self.lock();
        match (state.loss, &state.open) {
            (None, Some(open)) => Ok(open.path.clone()),
            (loss, _) => Err(loss.unwrap_or(Loss::Deleted).error(&self.given)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic leaves the state valid: it is replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

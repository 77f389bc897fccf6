//! Identity of a file, independent of its path, and the time of its last change.
//!
//! An inode number is not reused while the file is open. Windows has an index for the same purpose;
//! there, a file that SQLite has open can be neither deleted nor replaced.

use std::fs;
use std::io;
use std::path::Path;

/// Identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

/// Time of the last change, in the units of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChangeTime(i64, i64);

impl FileId {
    /// Identity of an open file.
    pub(super) fn new(file: &fs::File) -> io::Result<Self> {
        platform::inspect_open(file).map(|(id, _)| id)
    }

    /// The file at a path; `None` if there is none.
    pub(super) fn at(path: &Path) -> Option<Self> {
        // Some sandboxes do not have the system call.
        #[cfg(target_os = "linux")]
        if let Some(id) = Self::without_times(path) {
            return Some(id);
        }
        inspect(path).ok().map(|(id, _)| id)
    }

    /// Does not read the times of the file: since Linux 6.13, the next write would then update them,
    /// and each sync of the write-ahead log would also write its inode.
    #[cfg(target_os = "linux")]
    fn without_times(path: &Path) -> Option<Self> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
        let file = statx(CWD, path, AtFlags::empty(), StatxFlags::INO).ok()?;
        Some(Self {
            device: makedev(file.stx_dev_major, file.stx_dev_minor),
            inode: file.stx_ino,
        })
    }
}

/// Identity and time of the last change of the file at a path.
pub(super) fn inspect(path: &Path) -> io::Result<(FileId, ChangeTime)> {
    platform::inspect(path)
}

/// Reads bytes at a position, without a seek where the system allows it.
pub(super) fn read_exact_at(file: &fs::File, bytes: &mut [u8], position: u64) -> io::Result<()> {
    platform::read_exact_at(file, bytes, position)
}

#[cfg(unix)]
mod platform {
    use std::fs;
    use std::io;
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};
    use std::path::Path;

    use super::{ChangeTime, FileId};

    pub(super) fn inspect(path: &Path) -> io::Result<(FileId, ChangeTime)> {
        fs::metadata(path).map(|file| identify(&file))
    }

    pub(super) fn inspect_open(file: &fs::File) -> io::Result<(FileId, ChangeTime)> {
        file.metadata().map(|file| identify(&file))
    }

    fn identify(file: &fs::Metadata) -> (FileId, ChangeTime) {
        let id = FileId {
            device: file.dev(),
            inode: file.ino(),
        };
        (id, ChangeTime(file.mtime(), file.mtime_nsec()))
    }

    pub(super) fn read_exact_at(
        file: &fs::File,
        bytes: &mut [u8],
        position: u64,
    ) -> io::Result<()> {
        file.read_exact_at(bytes, position)
    }
}

#[cfg(windows)]
mod platform {
    use std::fs;
    use std::io;
    use std::os::windows::fs::FileExt as _;
    use std::path::Path;

    use super::{ChangeTime, FileId};

    pub(super) fn inspect(path: &Path) -> io::Result<(FileId, ChangeTime)> {
        inspect_open(&fs::File::open(path)?)
    }

    pub(super) fn inspect_open(file: &fs::File) -> io::Result<(FileId, ChangeTime)> {
        let found = winapi_util::file::information(file)?;
        let id = FileId {
            device: found.volume_serial_number(),
            inode: found.file_index(),
        };
        let written = found.last_write_time().unwrap_or_default();
        Ok((id, ChangeTime(written.cast_signed(), 0)))
    }

    pub(super) fn read_exact_at(
        file: &fs::File,
        bytes: &mut [u8],
        position: u64,
    ) -> io::Result<()> {
        match file.seek_read(bytes, position)? {
            read if read == bytes.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

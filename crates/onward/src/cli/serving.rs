//! The address of a running server, in a file next to an SQLite database. The server locks the file,
//! and the operating system releases the lock when the process ends, so a file that is not locked is
//! outdated. A database server has no such file.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use onward_engine::Address;

use crate::private;

/// `paths.rs` in the store lists it among the files of a database.
const SUFFIX: &str = "-serve";
/// Longest address that is read.
const MAX_BYTES: u64 = 100;

/// The address of a server, announced until this is dropped.
pub(super) struct Announcement {
    _locked: File,
}

/// Announces the address of this server. `None` on a database server, and if another server on the
/// same file has announced its address. Not essential, so an error is not reported.
pub(super) fn announce(database: &Address, address: SocketAddr) -> Option<Announcement> {
    let path = file(database)?;
    let mut file = open(&path).ok()?;
    file.try_lock().ok()?;
    let written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| write!(file, "{address}"));
    written.ok()?;
    Some(Announcement { _locked: file })
}

/// The address of a running server on this database.
pub(super) fn find(database: &Address) -> Option<SocketAddr> {
    let path = file(database)?;
    if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let file = File::open(&path).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let mut address = String::new();
    file.take(MAX_BYTES).read_to_string(&mut address).ok()?;
    address.parse().ok()
}

fn file(database: &Address) -> Option<PathBuf> {
    let Address::File(path) = database else {
        return None;
    };
    // All spellings of the path have the same file.
    let mut name = OsString::from(fs::canonicalize(path).ok()?);
    name.push(SUFFIX);
    Some(name.into())
}

/// Opens the file, and creates it if it does not exist. Rejects anything but a regular file: opening
/// a pipe would block.
fn open(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => File::options().read(true).write(true).open(path),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            private::new_file().read(true).open(path)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use onward_testbed::TestDir;

    use super::*;

    #[test]
    fn an_address_is_found_while_its_server_runs() {
        let folder = TestDir::new("serving");
        let path = folder.join("onward.db");
        fs::write(&path, "").unwrap();
        let database = Address::File(path);
        let address: SocketAddr = "127.0.0.1:7171".parse().unwrap();
        assert_eq!(find(&database), None);
        let announced = announce(&database, address).unwrap();
        assert_eq!(find(&database), Some(address));
        let other: SocketAddr = "127.0.0.1:80".parse().unwrap();
        assert!(announce(&database, other).is_none(), "the first one stays");
        assert_eq!(find(&database), Some(address));
        drop(announced);
        assert_eq!(find(&database), None, "the server has ended");
        let again = announce(&database, other).unwrap();
        assert_eq!(find(&database), Some(other), "shorter than the first one");
        drop(again);
    }
}

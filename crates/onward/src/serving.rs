//! The address of a running server, in a file next to an SQLite database, and the links that other
//! processes on the database form with it. The server locks the file, and the operating system
//! releases the lock when the process ends, so a file that is not locked is outdated. A database
//! server has no such file.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use onward_engine::Address;

use crate::private;
use crate::wire::review::ReviewLinks;

/// `paths.rs` in the store lists it among the files of a database.
const SUFFIX: &str = "-serve";
/// Maximum size of a file that is read.
const MAX_BYTES: u64 = 4_096;
/// A process that reads the file locks it for a moment.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_INTERVAL: Duration = Duration::from_millis(2);

/// The address of a server, announced until this is dropped.
pub(crate) struct Announcement {
    _locked: File,
}

/// A running server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    /// Its `serve.public_url`.
    public_url: Option<String>,
}

/// The dashboard that responses link to.
#[derive(Clone)]
pub(crate) enum Dashboard {
    /// That of this server or of `serve.public_url`; none on an unspecified address.
    Fixed(Option<Arc<str>>),
    /// That of a server that runs on the same database, or else this command with its options.
    Running {
        database: Address,
        command: Arc<str>,
    },
}

impl Dashboard {
    /// The base URL. A server may have started or stopped since the last call.
    pub(crate) fn base_url(&self) -> Option<Arc<str>> {
        match self {
            Dashboard::Fixed(url) => url.clone(),
            Dashboard::Running { database, .. } => Some(find(database)?.url().into()),
        }
    }

    /// The links to reviews.
    pub(crate) fn review_links(&self) -> ReviewLinks {
        match (self.base_url(), self) {
            (Some(base), _) => ReviewLinks::Page(base),
            (None, Dashboard::Running { command, .. }) => ReviewLinks::Command(command.clone()),
            (None, Dashboard::Fixed(_)) => ReviewLinks::None,
        }
    }
}

impl Running {
    /// The base URL of its dashboard.
    pub(crate) fn url(&self) -> String {
        let ip = match self.address.ip() {
            // The other processes on the file run on the same machine.
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        let local = || format!("http://{}", SocketAddr::new(ip, self.address.port()));
        self.public_url.clone().unwrap_or_else(local)
    }
}

/// Announces this server. `None` on a database server, and if another server on the same file has
/// announced its address. Not essential, so an error is not reported.
pub(crate) fn announce(
    database: &Address,
    address: SocketAddr,
    public_url: Option<&str>,
) -> Option<Announcement> {
    let path = file(database)?;
    let mut file = open(&path).ok()?;
    lock(&file)?;
    let written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{address}\n{}", public_url.unwrap_or_default()));
    written.ok()?;
    Some(Announcement { _locked: file })
}

fn lock(file: &File) -> Option<()> {
    for _ in 1..LOCK_ATTEMPTS {
        if file.try_lock().is_ok() {
            return Some(());
        }
        sleep(LOCK_INTERVAL);
    }
    file.try_lock().ok()
}

/// The running server on this database.
pub(crate) fn find(database: &Address) -> Option<Running> {
    let path = file(database)?;
    if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let file = File::open(&path).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    Some(Running {
        address: lines.next()?.parse().ok()?,
        public_url: lines
            .next()
            .filter(|url| !url.is_empty())
            .map(str::to_owned),
    })
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

    fn running(address: &str, public_url: Option<&str>) -> Running {
        Running {
            address: address.parse().unwrap(),
            public_url: public_url.map(str::to_owned),
        }
    }

    #[test]
    fn a_server_is_found_while_it_runs() {
        let folder = TestDir::new("serving");
        let path = folder.join("onward.db");
        fs::write(&path, "").unwrap();
        let database = Address::File(path);
        let first = running("127.0.0.1:7171", Some("https://plans.example.org"));
        let other = running("127.0.0.1:80", None);
        let announce =
            |server: &Running| announce(&database, server.address, server.public_url.as_deref());
        assert_eq!(find(&database), None);
        let announced = announce(&first).unwrap();
        assert_eq!(find(&database).as_ref(), Some(&first));
        assert!(announce(&other).is_none(), "the first one stays");
        assert_eq!(find(&database).as_ref(), Some(&first));
        drop(announced);
        assert_eq!(find(&database), None, "the server has ended");
        let again = announce(&other).unwrap();
        assert_eq!(find(&database), Some(other), "shorter than the first one");
        drop(again);
    }

    #[test]
    fn links_use_the_public_url_or_an_address_of_this_machine() {
        let public = "https://plans.example.org";
        for (server, url) in [
            (running("127.0.0.1:80", Some(public)), public),
            (running("127.0.0.1:80", None), "http://127.0.0.1:80"),
            (running("192.0.2.1:80", None), "http://192.0.2.1:80"),
            (running("0.0.0.0:80", None), "http://127.0.0.1:80"),
            (running("[::]:80", None), "http://[::1]:80"),
        ] {
            assert_eq!(server.url(), url);
        }
    }
}

//! Versions of the servers that use a file: each server holds a shared lock on an empty file that
//! has its version in its name. The operating system releases the lock when the process exits.

use std::fs;
use std::path::Path;

use super::lock_file;
use super::paths::{VERSION_SUFFIX, companion, version_files};

/// Announces a version for as long as the returned file is open, and removes the files of versions
/// that are no longer in use. `None` if the file cannot be created or locked: a server also runs
/// without it.
pub(crate) fn announce(database: &Path, version: &str) -> Option<fs::File> {
    for (path, _) in version_files(database) {
        if !is_locked(&path) {
            // Another server may have removed it.
            drop(fs::remove_file(path));
        }
    }
    let file = lock_file::open(&companion(database, &format!("{VERSION_SUFFIX}{version}"))).ok()?;
    file.try_lock_shared().ok().map(|()| file)
}

/// The versions of all servers that use the database now, sorted.
pub(crate) fn versions(database: &Path) -> Vec<String> {
    let used = version_files(database)
        .into_iter()
        .filter(|(path, _)| is_locked(path));
    let mut versions: Vec<String> = used.map(|(_, version)| version).collect();
    versions.sort();
    versions
}

fn is_locked(path: &Path) -> bool {
    let locked = lock_file::open(path).map(|file| file.try_lock());
    matches!(locked, Ok(Err(fs::TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use onward_testbed::TestDir;

    use super::*;

    #[test]
    fn lists_the_versions_of_running_servers_only() {
        let dir = TestDir::new("presence");
        let database = dir.path().join("onward.db");
        assert_eq!(versions(&database), [""; 0]);
        let old = announce(&database, "0.1.0").unwrap();
        let same = announce(&database, "0.1.0").unwrap();
        let new = announce(&database, "0.2.0-rc.1").unwrap();
        assert_eq!(versions(&database), ["0.1.0", "0.2.0-rc.1"]);
        drop(old);
        assert_eq!(versions(&database), ["0.1.0", "0.2.0-rc.1"]);
        drop(same);
        assert_eq!(versions(&database), ["0.2.0-rc.1"]);
        let next = announce(&database, "0.2.0-rc.1").unwrap();
        assert_eq!(
            version_files(&database).len(),
            1,
            "the unused file is removed"
        );
        drop((new, next));
        assert_eq!(versions(&database), [""; 0]);
    }
}

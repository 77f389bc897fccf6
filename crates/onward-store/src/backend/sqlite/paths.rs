//! Paths of a database: the file without symbolic links, and the files next to it.

use std::fs;
use std::path::{Path, PathBuf};

use super::error;
use crate::error::Error;

/// Between the path of a database and a version of this program, in the name of the file that
/// announces the version (`presence`).
pub(super) const VERSION_SUFFIX: &str = "-version-";

/// The files of a database: the database itself, its write-ahead log, the files of locks, and that
/// with the address of a running server. Not all of them exist at all times.
pub(crate) fn files(database: &Path) -> Vec<PathBuf> {
    let resolved = resolve(database, false).unwrap_or_else(|_| database.to_owned());
    let versions = version_files(&resolved);
    ["", "-wal", "-shm", "-queue", "-sweep", "-embed", "-serve"]
        .into_iter()
        .map(|suffix| companion(&resolved, suffix))
        .chain(versions.into_iter().map(|(path, _)| path))
        .collect()
}

/// The files of all versions that have used the database, with the versions.
pub(super) fn version_files(database: &Path) -> Vec<(PathBuf, String)> {
    let (Some(folder), Some(name)) = (database.parent(), database.file_name()) else {
        return Vec::new();
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let prefix = format!("{}{VERSION_SUFFIX}", name.to_string_lossy());
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix(&prefix)?;
            Some((entry.path(), version.to_owned()))
        })
        .collect()
}

/// Size of the write-ahead log in bytes.
pub(crate) fn log_size(database: &Path) -> u64 {
    let log = fs::metadata(companion(database, "-wal"));
    log.map_or(0, |log| log.len())
}

pub(super) fn companion(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Creates the file, readable by its owner only, unless it exists. An existing file is not opened:
/// closing it would release the locks of other connections of this process.
pub(super) fn create(path: &Path) -> Result<(), Error> {
    let mut options = fs::OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(why) if why.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(error::inaccessible(why, path))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The path without symbolic links, so that all processes use the same companion files, regardless
/// of the spelling of the path. Creates the parent directories if `create` is set.
pub(super) fn resolve(given: &Path, create: bool) -> Result<PathBuf, Error> {
    let resolved = follow_links(given, create)?;
    // Errors contain the user's spelling if it refers to the same path.
    let absolute = std::path::absolute(given);
    Ok(if absolute.is_ok_and(|absolute| absolute == resolved) {
        given.to_owned()
    } else {
        resolved
    })
}

fn follow_links(given: &Path, create: bool) -> Result<PathBuf, Error> {
    let failed = |why| error::inaccessible(why, given);
    let mut path = given.to_owned();
    // As many links as Linux follows.
    for _ in 0..40 {
        match fs::canonicalize(&path) {
            Ok(path) => return Ok(path),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
            Err(why) => return Err(failed(why)),
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            Some(_) | None => PathBuf::from("."),
        };
        // A link to a missing file: the database is created at its target.
        if let Ok(target) = fs::read_link(&path) {
            path = folder.join(target);
            continue;
        }
        if create {
            fs::create_dir_all(&folder).map_err(failed)?;
        }
        let folder = fs::canonicalize(&folder).map_err(failed)?;
        let name = path.file_name().unwrap_or_default();
        return Ok(folder.join(name));
    }
    Err(error::unreachable("too many symbolic links", given))
}

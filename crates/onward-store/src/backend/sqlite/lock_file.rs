//! Files that processes lock: empty files next to the database.

use std::fs;
use std::io;
use std::path::Path;

/// Opens a lock file, and creates it if it does not exist. Rejects anything but an empty regular
/// file: opening a pipe would block, and a file with content belongs to another program.
pub(super) fn open(path: &Path) -> io::Result<fs::File> {
    check(path)?;
    let mut options = fs::File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Fails if the path is in use by another kind of file.
pub(super) fn check(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(file) if file.is_file() && file.len() == 0 => Ok(()),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("`{}` is not a lock file of Onward", path.display()),
        )),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(why) => Err(why),
    }
}

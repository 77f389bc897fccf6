//! New files and directories that only their owner may read: mode 0600 and 0700. On Windows, the
//! permissions of the enclosing directory apply.

use std::fs::{DirBuilder, OpenOptions};

/// Options that create a file for writing, and fail if it exists.
pub(crate) fn new_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A builder of directories.
pub(crate) fn new_directory() -> DirBuilder {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "only Unix has modes"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

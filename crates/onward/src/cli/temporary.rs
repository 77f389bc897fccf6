//! A private directory below the system's temporary directory.

use std::path::PathBuf;

use crate::failure::{Failure, Result};
use crate::private;

/// A directory that is removed on drop, unless it is kept.
pub(super) struct TempDir {
    pub(super) path: PathBuf,
    pub(super) keep: bool,
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if !self.keep {
            // If this fails, the system cleans up its temporary directory.
            drop(std::fs::remove_dir_all(&self.path));
        }
    }
}

impl TempDir {
    /// Creates a directory with a name that shows its purpose.
    pub(super) fn create(purpose: &str) -> Result<Self> {
        let mut random = [0; 4];
        let path = getrandom::fill(&mut random).map(|()| {
            let name = format!("onward-{purpose}-{}", u32::from_le_bytes(random));
            std::env::temp_dir().join(name)
        });
        let path = path.map_err(|error| failure(&error.to_string()))?;
        let created = private::new_directory().create(&path);
        created.map_err(|error| failure(&format!("`{}`: {error}", path.display())))?;
        Ok(Self { path, keep: false })
    }
}

fn failure(why: &str) -> Failure {
    Failure::failed(
        format!("cannot create the directory {why}"),
        "set another temporary directory with `TMPDIR`",
    )
}

//! Changes of one configuration file: computes the new text, writes a temporary file and renames
//! it.
//!
//! Symbolic links are followed and preserved. The backup is next to the file and has the same mode.
//! It contains the file without Onward's entries, so a file that already has entries is not backed
//! up.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{ConfigFile, Content};
use crate::failure::{Failure, Result};
use crate::regular_file;

/// The suffix of a backup's name.
const BACKUP_SUFFIX: &str = ".onward-backup";

/// The change of one file.
#[derive(Debug)]
pub(crate) struct Change {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
    /// Whether to write the backup.
    backs_up: bool,
    /// Whether the file is restored from its backup, which is then deleted.
    restored: bool,
}

/// Computes the file with Onward's entries.
pub(super) fn install(file: ConfigFile) -> Result<Change> {
    let before = read(&file.path)?;
    let invalid = |error| cannot_edit(&file.path, error);
    let text = before.as_deref().unwrap_or_default();
    let mut after = file.content.add_to(text).map_err(invalid)?;
    let without = file.content.remove_from(text).map_err(invalid)?;
    let has_no_entries = before.is_some() && without.as_deref() == Some(text);
    if before.is_some() && !has_no_entries && after != text {
        // Outdated entries: if nothing else changed, start from the backup, so that uninstalling
        // can restore it.
        let original = read(&backup_path(&file.path))?.unwrap_or_default();
        if let Some(reinstalled) = reinstall(&file.content, &original, without.as_deref()) {
            after = reinstalled;
        }
    }
    Ok(Change {
        backs_up: has_no_entries && before.as_deref() != Some(after.as_str()),
        path: file.path,
        before,
        after: Some(after),
        restored: false,
    })
}

/// Computes the file without Onward's entries.
pub(super) fn uninstall(file: ConfigFile) -> Result<Change> {
    let before = read(&file.path)?;
    let backup = read(&backup_path(&file.path))?;
    let Some(text) = &before else {
        return Ok(Change::none(file.path));
    };
    let without = file
        .content
        .remove_from(text)
        .map_err(|error| cannot_edit(&file.path, error))?;
    if without.as_deref() == Some(text) {
        return Ok(Change {
            before: before.clone(),
            after: before,
            ..Change::none(file.path)
        });
    }
    let original = backup.as_deref().unwrap_or_default();
    // If the backup cannot be parsed, the entries are removed without it.
    let restored = file
        .content
        .add_to(original)
        .is_ok_and(|installed| installed == *text);
    let after = if restored { backup } else { without };
    Ok(Change {
        path: file.path,
        before,
        after,
        backs_up: false,
        restored,
    })
}

/// Adds the entries to the original, if the current file without entries equals the original.
/// `None` if it differs, or if the original cannot be parsed.
fn reinstall(content: &Content, original: &str, without: Option<&str>) -> Option<String> {
    let installed = content.add_to(original).ok()?;
    let is_same = content.remove_from(&installed).ok()?.as_deref() == without;
    is_same.then_some(installed)
}

fn cannot_edit(path: &Path, error: String) -> Failure {
    Failure::failed(
        format!("cannot edit `{}`: {error}", path.display()),
        "nothing was changed; correct the file and run the command again",
    )
}

/// Reads a file. `None` if it does not exist.
fn read(path: &Path) -> Result<Option<String>> {
    match regular_file::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(None),
        Err(error) => Err(Failure::failed(
            format!("cannot read `{}`: {error}", path.display()),
            "nothing was changed; check the file and run the command again",
        )),
    }
}

fn backup_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(BACKUP_SUFFIX);
    PathBuf::from(name)
}

impl Change {
    fn none(path: PathBuf) -> Self {
        Self {
            path,
            before: None,
            after: None,
            backs_up: false,
            restored: false,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file changes.
    pub(crate) fn has_effect(&self) -> bool {
        self.before != self.after
    }

    /// The effect on the file: `created`, `changed`, `removed` or `unchanged`.
    pub(crate) fn outcome(&self) -> &'static str {
        match (&self.before, &self.after) {
            (before, after) if before == after => "unchanged",
            (None, _) => "created",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "removed",
        }
    }

    /// The path of the backup, if one is written.
    pub(crate) fn backup(&self) -> Option<PathBuf> {
        self.backs_up.then(|| backup_path(&self.path))
    }

    /// The change as a unified diff.
    pub(crate) fn diff(&self) -> String {
        let name = self.path.display().to_string();
        let header = |text: &Option<String>| match text {
            Some(_) => name.clone(),
            None => "/dev/null".to_owned(),
        };
        let (before, after) = (
            self.before.as_deref().unwrap_or_default(),
            self.after.as_deref().unwrap_or_default(),
        );
        similar::TextDiff::from_lines(before, after)
            .unified_diff()
            .context_radius(2)
            .header(&header(&self.before), &header(&self.after))
            .to_string()
    }

    /// Whether the file would change but is read-only.
    pub(super) fn is_blocked_by_mode(&self) -> bool {
        let metadata = fs::metadata(&self.path);
        self.has_effect() && metadata.is_ok_and(|metadata| metadata.permissions().readonly())
    }

    /// Writes the change, after the backup.
    pub(crate) fn apply(&self) -> Result<()> {
        let failed = |error: io::Error| {
            Failure::failed(
                format!("cannot write `{}`: {error}", self.path.display()),
                "check the permissions and run the command again; files listed before this one were changed",
            )
        };
        if !self.has_effect() {
            return Ok(());
        }
        if self.backs_up {
            fs::copy(&self.path, backup_path(&self.path)).map_err(failed)?;
        }
        match &self.after {
            Some(text) => write(&self.path, text).map_err(failed)?,
            None => {
                fs::remove_file(&self.path).map_err(failed)?;
                remove_own_folder(&self.path);
            }
        }
        if self.restored {
            // There is no backup if installing created the file.
            fs::remove_file(backup_path(&self.path)).ok();
        }
        Ok(())
    }
}

/// Removes the folder of a deleted file if its name is Onward's and it is empty.
fn remove_own_folder(path: &Path) {
    let Some(folder) = path.parent() else {
        return;
    };
    let name = folder.file_name().and_then(|name| name.to_str());
    if name.is_some_and(|name| name.starts_with("onward")) {
        // Fails if the folder contains files of the user.
        fs::remove_dir(folder).ok();
    }
}

/// Writes a temporary file in the same directory and renames it, so that no process reads a partial
/// file.
fn write(path: &Path, text: &str) -> io::Result<()> {
    // Writes to the target of a symbolic link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.onward-{}", std::process::id()));
    let written = (|| {
        let mut file = fs::File::create(&temporary)?;
        if let Ok(metadata) = fs::metadata(&path) {
            file.set_permissions(metadata.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    })();
    if written.is_err() {
        fs::remove_file(&temporary).ok();
    }
    written
}

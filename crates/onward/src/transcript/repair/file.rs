//! Writes a repaired session to a new file, or in place of the original.
//!
//! No existing file is overwritten: new files and backups use the first free name. In place, the
//! new file is synced to disk before it is renamed over the original, the original is kept as the
//! backup, and the repair fails if the original has changed meanwhile. Compression and permissions
//! are kept.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Examination, Fix, store_file};

/// The maximum number of file names tried.
const MAX_ATTEMPTS: usize = 10_000;

/// The error of a repair in place if the session is still being written.
const CHANGED: &str = "the file changed while it was read";

/// A written file.
pub(crate) struct WrittenFile {
    pub(crate) file: PathBuf,
    /// The backup of the original.
    pub(crate) backup: Option<PathBuf>,
}

/// The metadata of a file before it is read, to detect later changes.
pub(crate) struct FileSnapshot {
    path: PathBuf,
    metadata: Metadata,
}

impl FileSnapshot {
    /// Reads the metadata of a file; follows a symbolic link.
    pub(crate) fn capture(path: &Path) -> io::Result<Self> {
        let path = if fs::symlink_metadata(path)?.is_symlink() {
            fs::canonicalize(path)?
        } else {
            path.to_owned()
        };
        let metadata = fs::metadata(&path)?;
        Ok(Self { path, metadata })
    }

    fn is_unchanged(&self) -> io::Result<bool> {
        let now = fs::metadata(&self.path)?;
        let same = now.len() == self.metadata.len();
        Ok(same && now.modified().ok() == self.metadata.modified().ok())
    }

    /// Writes the session to a new file next to `original`.
    pub(crate) fn write_new_file(
        &self,
        original: &Path,
        examination: &Examination,
    ) -> io::Result<WrittenFile> {
        let names = (0..MAX_ATTEMPTS)
            .map(|number| original.with_file_name(repaired_name(original, number)));
        let (file, path) = create_first_free(names)?;
        match &examination.fix {
            Fix::Parts(changes) => {
                let written = fs::set_permissions(&path, self.metadata.permissions())
                    .and_then(|()| store_file::write_copy(&self.path, &path, changes));
                if written.is_err() {
                    let _ = fs::remove_file(&path);
                }
                written?;
            }
            Fix::None | Fix::Text(_) | Fix::Edits(_) | Fix::Unsupported(_) => {
                self.write_contents(file, &path, examination)?;
            }
        }
        Ok(WrittenFile {
            file: path,
            backup: None,
        })
    }

    /// Replaces the original, which is kept as a backup.
    pub(crate) fn write_in_place(&self, examination: &Examination) -> io::Result<WrittenFile> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let sibling = |name: String| self.path.with_file_name(name);
        if let Fix::Parts(changes) = &examination.fix {
            let names = (0..MAX_ATTEMPTS).map(|number| sibling(backup_name(&name, number)));
            let (_, backup) = create_first_free(names)?;
            let written = fs::set_permissions(&backup, self.metadata.permissions())
                .and_then(|()| store_file::write_in_place(&self.path, &backup, changes));
            if let Err(error) = written {
                // The changes are one transaction, so the original is unchanged.
                let _ = fs::remove_file(&backup);
                return Err(error);
            }
            return Ok(WrittenFile {
                file: self.path.clone(),
                backup: Some(backup),
            });
        }
        let hidden = (0..MAX_ATTEMPTS).map(|number| sibling(format!(".{name}.onward{number}")));
        let (file, temporary) = create_first_free(hidden)?;
        let backup = self
            .write_contents(file, &temporary, examination)
            .and_then(|()| self.back_up(&name));
        let done = backup.and_then(|backup| fs::rename(&temporary, &self.path).map(|()| backup));
        match done {
            Ok(backup) => {
                self.sync_directory();
                Ok(WrittenFile {
                    file: self.path.clone(),
                    backup: Some(backup),
                })
            }
            Err(error) => {
                // The original is unchanged; remove the temporary file.
                let _ = fs::remove_file(&temporary);
                Err(error)
            }
        }
    }

    /// Creates the backup: a hard link to the original, or a copy.
    fn back_up(&self, name: &str) -> io::Result<PathBuf> {
        if !self.is_unchanged()? {
            return Err(io::Error::other(CHANGED));
        }
        for number in 0..MAX_ATTEMPTS {
            let backup = self.path.with_file_name(backup_name(name, number));
            match fs::hard_link(&self.path, &backup) {
                Ok(()) => return Ok(backup),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // Copy the file if the file system has no hard links.
                Err(_) => match File::create_new(&backup) {
                    Ok(mut copy) => {
                        io::copy(&mut File::open(&self.path)?, &mut copy)?;
                        copy.set_permissions(self.metadata.permissions())?;
                        copy.sync_all()?;
                        return Ok(backup);
                    }
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error),
                },
            }
        }
        Err(io::Error::other("no free name for the backup"))
    }

    fn write_contents(&self, file: File, path: &Path, examination: &Examination) -> io::Result<()> {
        let written = self.write_open_file(file, examination);
        if written.is_err() {
            let _ = fs::remove_file(path);
        }
        written
    }

    fn write_open_file(&self, file: File, examination: &Examination) -> io::Result<()> {
        file.set_permissions(self.metadata.permissions())?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        if is_gzip(&self.path)? {
            let mut encoder = GzEncoder::new(out, Compression::default());
            examination.write(&self.path, &mut encoder)?;
            out = encoder.finish()?;
        } else {
            examination.write(&self.path, &mut out)?;
        }
        out.flush()?;
        out.get_ref().sync_all()
    }

    /// Syncs the directory, so that the new name survives a power failure. Errors are ignored: the
    /// file itself is synced.
    fn sync_directory(&self) {
        if let Some(directory) = self
            .path
            .parent()
            .and_then(|directory| File::open(directory).ok())
        {
            let _ = directory.sync_all();
        }
    }
}

fn is_gzip(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut head)?;
    Ok(head == [0x1f, 0x8b])
}

/// `session.jsonl` becomes `session.jsonl.bak`, then `session.jsonl.bak1`.
fn backup_name(name: &str, number: usize) -> String {
    match number {
        0 => format!("{name}.bak"),
        _ => format!("{name}.bak{number}"),
    }
}

/// `session.jsonl` becomes `session.repaired.jsonl`, then `session.repaired1.jsonl`.
fn repaired_name(path: &Path, number: usize) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = match number {
        0 => String::new(),
        _ => number.to_string(),
    };
    let (name, gzip) = match name.strip_suffix(".gz") {
        Some(name) => (name.to_owned(), ".gz"),
        None => (name.into_owned(), ""),
    };
    match name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, ending)) => format!("{stem}.repaired{number}.{ending}{gzip}"),
        None => format!("{name}.repaired{number}{gzip}"),
    }
}

fn create_first_free(names: impl Iterator<Item = PathBuf>) -> io::Result<(File, PathBuf)> {
    for name in names {
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Ok(file) => return Ok((file, name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("no free name for the new file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_replace_a_file_that_changed_after_it_was_read() {
        let dir = onward_testbed::TestDir::new("changed");
        let path = dir.write("a.jsonl", "{}\n");
        let snapshot = FileSnapshot::capture(&path).unwrap();
        fs::write(&path, "{}\n{}\n").unwrap();
        let written = snapshot.write_in_place(&Examination::clean(Vec::new()));
        assert!(written.is_err_and(|error| error.to_string() == CHANGED));
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n{}\n");
    }

    #[test]
    fn keeps_the_file_extension() {
        let name = |name: &str| repaired_name(Path::new(name), 0);
        assert_eq!(name("a/session.jsonl"), "session.repaired.jsonl");
        assert_eq!(name("session.jsonl.gz"), "session.repaired.jsonl.gz");
        assert_eq!(name("session"), "session.repaired");
        assert_eq!(name(".hidden"), ".hidden.repaired");
        assert_eq!(
            repaired_name(Path::new("a.b.json"), 2),
            "a.b.repaired2.json"
        );
    }
}

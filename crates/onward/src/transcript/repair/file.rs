//! Where a repaired session goes: into a new file beside the old one, or into its place.
//!
//! Nothing is overwritten: a new file and a backup take the first name that is free. In place, the new
//! file is whole and on the disk before it takes the name of the old one, the backup is the old file
//! itself, and what was appended in the meantime stops it all. What was packed is packed again; the
//! permissions are those of the old file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::Examined;

/// How many names are tried.
const NAMES: usize = 10_000;

/// A session that was written.
pub(crate) struct Written {
    pub(crate) file: PathBuf,
    /// Where the old one is kept.
    pub(crate) backup: Option<PathBuf>,
}

/// What was seen of a file before it was read, so that it can be told whether it changed since.
pub(crate) struct Before {
    path: PathBuf,
    metadata: Metadata,
}

impl Before {
    /// Looks at a file; a link stands for what it leads to.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
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

    /// Writes the session into a new file beside the old one, named as it was.
    pub(crate) fn write_beside(&self, named: &Path, examined: &Examined) -> io::Result<Written> {
        let names = (0..NAMES).map(|number| named.with_file_name(repaired_name(named, number)));
        let (file, path) = first_free(names)?;
        self.fill(file, &path, examined)?;
        Ok(Written {
            file: path,
            backup: None,
        })
    }

    /// Writes the session into the place of the old one, which is kept as a backup.
    pub(crate) fn write_in_place(&self, examined: &Examined) -> io::Result<Written> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let beside = |name: String| self.path.with_file_name(name);
        let hidden = (0..NAMES).map(|number| beside(format!(".{name}.onward{number}")));
        let (file, fresh) = first_free(hidden)?;
        let kept = self
            .fill(file, &fresh, examined)
            .and_then(|()| self.keep(&name));
        let done = kept.and_then(|backup| fs::rename(&fresh, &self.path).map(|()| backup));
        match done {
            Ok(backup) => {
                self.sync_folder();
                Ok(Written {
                    file: self.path.clone(),
                    backup: Some(backup),
                })
            }
            Err(why) => {
                // Nothing happened to the old one; a file that nobody asked for would only confuse.
                let _ = fs::remove_file(&fresh);
                Err(why)
            }
        }
    }

    /// Gives the old file a second name, under which it stays.
    fn keep(&self, name: &str) -> io::Result<PathBuf> {
        if !self.is_unchanged()? {
            return Err(io::Error::other("it changed while it was read"));
        }
        for number in 0..NAMES {
            let backup = match number {
                0 => format!("{name}.bak"),
                _ => format!("{name}.bak{number}"),
            };
            let backup = self.path.with_file_name(backup);
            match fs::hard_link(&self.path, &backup) {
                Ok(()) => return Ok(backup),
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
                // Where a file cannot have two names, it is copied.
                Err(_) => match File::create_new(&backup) {
                    Ok(mut copy) => {
                        io::copy(&mut File::open(&self.path)?, &mut copy)?;
                        copy.set_permissions(self.metadata.permissions())?;
                        copy.sync_all()?;
                        return Ok(backup);
                    }
                    Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(why) => return Err(why),
                },
            }
        }
        Err(io::Error::other("there are too many backups"))
    }

    fn fill(&self, file: File, path: &Path, examined: &Examined) -> io::Result<()> {
        let filled = self.fill_open(file, examined);
        if filled.is_err() {
            let _ = fs::remove_file(path);
        }
        filled
    }

    fn fill_open(&self, file: File, examined: &Examined) -> io::Result<()> {
        file.set_permissions(self.metadata.permissions())?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        if is_packed(&self.path)? {
            let mut packed = GzEncoder::new(out, Compression::default());
            examined.write(&self.path, &mut packed)?;
            out = packed.finish()?;
        } else {
            examined.write(&self.path, &mut out)?;
        }
        out.flush()?;
        out.get_ref().sync_all()
    }

    /// A name that is only in memory is gone after a power cut. Where it cannot be done, the file is
    /// whole all the same, under one of its names.
    fn sync_folder(&self) {
        if let Some(folder) = self
            .path
            .parent()
            .and_then(|folder| File::open(folder).ok())
        {
            let _ = folder.sync_all();
        }
    }
}

fn is_packed(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut head)?;
    Ok(head == [0x1f, 0x8b])
}

/// `session.jsonl` becomes `session.repaired.jsonl`, then `session.repaired1.jsonl`.
fn repaired_name(path: &Path, number: usize) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = match number {
        0 => String::new(),
        _ => number.to_string(),
    };
    let (name, packed) = match name.strip_suffix(".gz") {
        Some(name) => (name.to_owned(), ".gz"),
        None => (name.into_owned(), ""),
    };
    match name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, ending)) => format!("{stem}.repaired{number}.{ending}{packed}"),
        None => format!("{name}.repaired{number}{packed}"),
    }
}

fn first_free(names: impl Iterator<Item = PathBuf>) -> io::Result<(File, PathBuf)> {
    for name in names {
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Ok(file) => return Ok((file, name)),
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why),
        }
    }
    Err(io::Error::other("no name is free"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_since_it_was_read_is_not_replaced() {
        let folder = std::env::temp_dir().join(format!("onward-repair-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.jsonl");
        fs::write(&path, "{}\n").unwrap();
        let before = Before::of(&path).unwrap();
        fs::write(&path, "{}\n{}\n").unwrap();
        let written = before.write_in_place(&Examined::nothing(Vec::new()));
        assert!(written.is_err_and(|why| why.to_string() == "it changed while it was read"));
        let left: Vec<_> = fs::read_dir(&folder).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n{}\n");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_new_name_keeps_the_ending() {
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

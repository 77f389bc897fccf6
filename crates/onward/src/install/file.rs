//! A file that is about to change: read, compared, written beside itself and moved into place.
//!
//! A link is followed, and stays a link. The backup is beside the file, under its own rights; it holds
//! what was there before our entries, so it is not written again over a file that has some.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Content, Piece};
use crate::failure::{Failure, Result};

/// What a backup's name ends in.
const BACKUP: &str = ".onward-backup";

/// How one file changes.
#[derive(Debug)]
pub(crate) struct Change {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
    /// What the backup has to hold, where it has to be written.
    keep: bool,
    /// Whether the backup has nothing left to say.
    restored: bool,
}

/// The file with our entries.
pub(super) fn installed(piece: Piece) -> Result<Change> {
    let before = read(&piece.path)?;
    let refused = |why| refused(&piece.path, why);
    let text = before.as_deref().unwrap_or_default();
    let mut after = piece.content.put_in(text).map_err(refused)?;
    let without = piece.content.take_out(text).map_err(refused)?;
    // What has our entries already is no backup: the one from before them is kept.
    let bare = before.is_some() && without.as_deref() == Some(text);
    if before.is_some() && !bare && after != text {
        // Older entries of ours, and nothing else that is new: as if they had never been.
        let original = read(&beside(&piece.path))?.unwrap_or_default();
        if let Some(ours) = made_of(&piece.content, &original, without.as_deref()) {
            after = ours;
        }
    }
    Ok(Change {
        keep: bare && before.as_deref() != Some(after.as_str()),
        path: piece.path,
        before,
        after: Some(after),
        restored: false,
    })
}

/// The file without our entries.
pub(super) fn uninstalled(piece: Piece) -> Result<Change> {
    let before = read(&piece.path)?;
    let backup = read(&beside(&piece.path))?;
    let refused = |why| refused(&piece.path, why);
    let Some(text) = &before else {
        return Ok(Change::none(piece.path));
    };
    let without = piece.content.take_out(text).map_err(refused)?;
    if without.as_deref() == Some(text) {
        return Ok(Change {
            before: before.clone(),
            after: before,
            ..Change::none(piece.path)
        });
    }
    let original = backup.as_deref().unwrap_or_default();
    // A backup that cannot be read any more is no obstacle: our entries still come out.
    let restored = piece
        .content
        .put_in(original)
        .is_ok_and(|ours| ours == *text);
    let after = if restored { backup } else { without };
    Ok(Change {
        path: piece.path,
        before,
        after,
        keep: false,
        restored,
    })
}

/// What installing makes of the original, where a file without our entries is no more than that
/// without them. An original that cannot be read any more is no obstacle: then nobody knows.
fn made_of(content: &Content, original: &str, without: Option<&str>) -> Option<String> {
    let ours = content.put_in(original).ok()?;
    let same = content.take_out(&ours).ok()?.as_deref() == without;
    same.then_some(ours)
}

fn refused(path: &Path, why: String) -> Failure {
    Failure::failed(
        format!("`{}` cannot be changed: {why}", path.display()),
        "nothing was changed; correct the file, and run the command again",
    )
}

/// What a file holds; none where there is none.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(why) if why.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(None),
        Err(why) => Err(Failure::failed(
            format!("`{}` cannot be read: {why}", path.display()),
            "nothing was changed; check the file, and run the command again",
        )),
    }
}

/// Where the backup of a file is.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(BACKUP);
    PathBuf::from(name)
}

impl Change {
    fn none(path: PathBuf) -> Self {
        Self {
            path,
            before: None,
            after: None,
            keep: false,
            restored: false,
        }
    }

    /// Which file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anything changes.
    pub(crate) fn is_any(&self) -> bool {
        self.before != self.after
    }

    /// What becomes of the file, in a word.
    pub(crate) fn word(&self) -> &'static str {
        match (&self.before, &self.after) {
            (before, after) if before == after => "unchanged",
            (None, _) => "created",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "removed",
        }
    }

    /// Where the file is kept as it was, if it has to be.
    pub(crate) fn backup(&self) -> Option<PathBuf> {
        self.keep.then(|| beside(&self.path))
    }

    /// The difference, for people.
    pub(crate) fn difference(&self) -> String {
        let name = self.path.display().to_string();
        let of = |text: &Option<String>| match text {
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
            .header(&of(&self.before), &of(&self.after))
            .to_string()
    }

    /// Whether the owner said that the file shall not change.
    pub(super) fn is_refused_by_its_mode(&self) -> bool {
        let about = fs::metadata(&self.path);
        self.is_any() && about.is_ok_and(|about| about.permissions().readonly())
    }

    /// Writes it.
    pub(crate) fn make(&self) -> Result<()> {
        let failed = |why: io::Error| {
            Failure::failed(
                format!("`{}` cannot be written: {why}", self.path.display()),
                "check who may write there; files that were told of before this one are changed",
            )
        };
        if !self.is_any() {
            return Ok(());
        }
        if self.keep {
            fs::copy(&self.path, beside(&self.path)).map_err(failed)?;
        }
        match &self.after {
            Some(text) => write(&self.path, text).map_err(failed)?,
            None => fs::remove_file(&self.path).map_err(failed)?,
        }
        if self.restored {
            // It says what the file says again; where there was none, there is none.
            fs::remove_file(beside(&self.path)).ok();
        }
        Ok(())
    }
}

/// Writes a file beside itself and moves it into place, so that nobody reads half of it.
fn write(path: &Path, text: &str) -> io::Result<()> {
    // A link stays where it is: what it leads to is written.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{name}.onward-{}", std::process::id()));
    let written = (|| {
        let mut file = fs::File::create(&beside)?;
        if let Ok(about) = fs::metadata(&path) {
            file.set_permissions(about.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    })();
    if written.is_err() {
        // Nothing of it shall stay behind.
        fs::remove_file(&beside).ok();
    }
    written
}

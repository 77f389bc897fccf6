//! Trust in the project's `onward.toml`.
//!
//! A cloned repository can contain this file. Until the user trusts it with `onward trust`, it sets
//! only the keys that are harmless in any repository ([`keys::Trust`](super::keys::Trust)). Trust
//! covers one path and one content: a changed file must be trusted again. A file that other users
//! can change is ignored as a whole, trusted or not.
//!
//! A trusted file has a record in the user's state directory. The name of the record is the hash of
//! path and content, so trusting, revoking and checking need no lock.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use onward_core::Code;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::file::{self, File};
use super::location::{self, PROJECT_FILE};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::format;
use crate::private;

/// The directory of the records, relative to the user's state directory.
const RECORDS: &str = "onward/trust";

/// The part of the project's file that does not apply.
pub(crate) struct Ignored {
    pub(crate) path: PathBuf,
    pub(crate) reason: Reason,
    /// The ignored keys. If empty, the whole file is ignored.
    pub(crate) keys: Vec<&'static str>,
}

/// Why a file does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(
    not(unix),
    allow(dead_code, reason = "the permissions of other users are not checked")
)]
pub(crate) enum Reason {
    /// The user has not trusted this content at this path.
    NotTrusted,
    /// Another user owns the file or its directory.
    OtherOwner,
    /// Other users may write to the file or its directory.
    WritableByOthers,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::NotTrusted => "the file is not trusted",
            Reason::OtherOwner => "another user owns the file or its directory",
            Reason::WritableByOthers => "other users may write to the file or its directory",
        })
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = format::sanitize_line(&self.path.display().to_string());
        let reason = self.reason;
        if self.keys.is_empty() {
            return write!(f, "ignored `{path}`: {reason}");
        }
        let keys = self.keys.join("`, `");
        write!(
            f,
            "ignored `{keys}` in `{path}`: {reason}; review it, then run `onward trust {path}`"
        )
    }
}

/// The applicable part of the project's file, and the ignored part.
pub(super) fn read_project_file(path: &Path) -> Result<(Option<File>, Option<Ignored>)> {
    let ignored = |reason, keys| {
        let path = path.to_owned();
        Some(Ignored { path, reason, keys })
    };
    if let Some(reason) = unsafe_location(path) {
        return Ok((None, ignored(reason, Vec::new())));
    }
    let text = file::read(path)?;
    let mut file = File::parse(path, &text)?;
    let keys = file.keys_that_require_trust();
    if keys.is_empty() || is_trusted(path, &text) {
        return Ok((Some(file), None));
    }
    file.remove_keys_that_require_trust();
    Ok((Some(file), ignored(Reason::NotTrusted, keys)))
}

/// Why other users could change the file: they own it, or may write to it or its directory. Checks
/// the target of a symbolic link as well.
fn unsafe_location(path: &Path) -> Option<Reason> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let places = [Some(target.as_path()), target.parent(), path.parent()];
    places
        .into_iter()
        .flatten()
        .find_map(permissions::unsafe_place)
}

/// The path that a record contains.
#[cfg(unix)]
fn decode_path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn decode_path(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(unix)]
mod permissions {
    use std::fs::{self, Metadata};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use super::Reason;

    /// Write permission of the group, and of all users.
    const GROUP_WRITE: u32 = 0o020;
    const OTHER_WRITE: u32 = 0o002;
    /// Only the owner of a file may replace it in a directory with this bit, such as `/tmp`.
    const STICKY: u32 = 0o1000;

    pub(super) fn unsafe_place(place: &Path) -> Option<Reason> {
        let metadata = fs::metadata(place).ok()?;
        unsafe_permissions(&metadata, rustix::process::geteuid().as_raw())
    }

    fn unsafe_permissions(metadata: &Metadata, user: u32) -> Option<Reason> {
        let mode = metadata.mode();
        // A group with the id of the user is the user's private group.
        let is_group_shared = mode & GROUP_WRITE != 0 && metadata.gid() != user;
        let is_shared = is_group_shared || mode & OTHER_WRITE != 0;
        let is_sticky = metadata.is_dir() && mode & STICKY != 0;
        // Root can change every file anyway.
        if metadata.uid() != user && metadata.uid() != 0 {
            Some(Reason::OtherOwner)
        } else if is_shared && !is_sticky {
            Some(Reason::WritableByOthers)
        } else {
            None
        }
    }
}

/// Windows: the permissions of other users are not checked, so that only the user's trust decides.
#[cfg(not(unix))]
mod permissions {
    pub(super) fn unsafe_place(_: &std::path::Path) -> Option<super::Reason> {
        None
    }
}

/// A trusted file.
#[derive(Serialize)]
pub(crate) struct TrustedFile {
    #[serde(rename = "file", serialize_with = "super::source::serialize_path")]
    pub(crate) path: PathBuf,
    pub(crate) state: State,
}

/// Whether the content of a trusted file is still the trusted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Trusted,
    Changed,
    Missing,
}

impl State {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            State::Trusted => "trusted",
            State::Changed => "changed",
            State::Missing => "missing",
        }
    }
}

/// Trusts the content of a file. Returns its path and the keys that apply from now on.
pub(crate) fn trust(path: Option<&Path>) -> Result<(PathBuf, Vec<&'static str>)> {
    let path = find(path)?;
    if let Some(reason) = unsafe_location(&path) {
        return Err(Failure::new(
            Exit::Rejected,
            Code::Forbidden,
            format!("cannot trust `{}`: {reason}", path.display()),
            "own the file and its directory, and remove the write permission of other users",
        ));
    }
    let text = file::read(&path)?;
    let keys = File::parse(&path, &text)?.keys_that_require_trust();
    let folder = records_directory()?;
    let write = || {
        remove_records(&folder, &path)?;
        private::new_directory().recursive(true).create(&folder)?;
        let record = folder.join(record_name(&path, &text));
        let mut record = private::new_file().open(record)?;
        record.write_all(path.as_os_str().as_encoded_bytes())
    };
    write().map_err(|error| cannot_change(&folder, &error))?;
    Ok((path, keys))
}

/// Removes the trust in a file, which need not exist any more. Returns its path.
pub(crate) fn revoke(path: Option<&Path>) -> Result<PathBuf> {
    let path = find(path)?;
    let folder = records_directory()?;
    let removed = remove_records(&folder, &path).map_err(|error| cannot_change(&folder, &error))?;
    if removed {
        Ok(path)
    } else {
        Err(Failure::new(
            Exit::NotFound,
            Code::InvalidInput,
            format!("`{}` is not trusted", path.display()),
            "list the trusted files with `onward trust --list`",
        ))
    }
}

/// The trusted files, sorted by path.
pub(crate) fn list() -> Result<Vec<TrustedFile>> {
    let folder = records_directory()?;
    let records = records(&folder).map_err(|error| cannot_change(&folder, &error))?;
    let mut files: Vec<TrustedFile> = records
        .into_iter()
        .map(|(record, path)| {
            let state = match file::read(&path) {
                Ok(text) if record.ends_with(record_name(&path, &text)) => State::Trusted,
                Ok(_) => State::Changed,
                Err(_) => State::Missing,
            };
            TrustedFile { path, state }
        })
        .collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// The path of the named file or of the file in the named directory; by default the project's.
fn find(path: Option<&Path>) -> Result<PathBuf> {
    let Some(path) = path else {
        let found = location::project_file(None).map(|path| resolve(&path));
        return found.ok_or_else(|| {
            Failure::new(
                Exit::NotFound,
                Code::InvalidInput,
                format!("no `{PROJECT_FILE}` in this directory or above"),
                "name the file: `onward trust PATH`",
            )
        });
    };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(resolve(&if path.is_dir() {
        path.join(PROJECT_FILE)
    } else {
        path
    }))
}

/// The path without symbolic links in its directory. A link at its end stays: relative paths in the
/// file refer to the directory of the link.
fn resolve(path: &Path) -> PathBuf {
    let folder = path
        .parent()
        .and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        (_, _) => path.to_owned(),
    }
}

fn is_trusted(path: &Path, text: &str) -> bool {
    let record = |folder: PathBuf| folder.join(record_name(&resolve(path), text));
    records_directory().is_ok_and(|folder| record(folder).is_file())
}

fn record_name(path: &Path, text: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(path.as_os_str().as_encoded_bytes());
    hash.update([0]);
    hash.update(text.as_bytes());
    let bytes = hash.finalize();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn records_directory() -> Result<PathBuf> {
    let folder = location::directory("XDG_STATE_HOME", ".local/state").ok_or_else(|| {
        Failure::usage(
            "no state directory: neither `XDG_STATE_HOME` nor `HOME` is set",
            "set `HOME` to your home directory",
        )
    })?;
    Ok(folder.join(RECORDS))
}

/// All records, each with the path of its file.
fn records(folder: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let record = |entry: io::Result<fs::DirEntry>| {
        let record = entry?.path();
        let path = decode_path(fs::read(&record)?);
        Ok((record, path))
    };
    entries.map(record).collect()
}

/// Removes the records of a file, and returns whether there were any.
fn remove_records(folder: &Path, path: &Path) -> io::Result<bool> {
    let mut removed = false;
    for (record, trusted) in records(folder)? {
        if trusted == path {
            fs::remove_file(record)?;
            removed = true;
        }
    }
    Ok(removed)
}

fn cannot_change(folder: &Path, error: &io::Error) -> Failure {
    Failure::failed(
        format!("cannot use `{}`: {error}", folder.display()),
        "check the permissions of the directory",
    )
}

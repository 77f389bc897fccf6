//! What the working tree looks like, as one short text: HEAD, the index, and size, time and content of
//! what git's status lists. Two that differ mean that something changed.
//!
//! `git status` alone does not see a second edit of a file that is dirty already, nor what happens
//! inside of a directory that it does not know; hence the look at the files themselves. That look is
//! bounded: of long files the beginning and the end are read, and past so many files only size and
//! time. The whole has a budget; past it the answer is that nobody knows. Outside of a checkout there
//! is no signal, and no process is started to find that out.

use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use onward_engine::session::Fingerprint;
use sha2::{Digest, Sha256};

/// How long a look may take.
pub(crate) const BUDGET: Duration = Duration::from_millis(100);

/// Longer files are read at both ends.
const WHOLE: u64 = 1 << 20;
/// How much of each end.
const END: u64 = 1 << 16;
/// How many files are read.
const READ: usize = 512;
/// How many files and directories are looked at.
const LOOKED_AT: usize = 20_000;

/// A look at the working tree around a directory.
pub(crate) fn take(directory: &Path, budget: Duration) -> Fingerprint {
    let Some(root) = root(directory, &ceilings()) else {
        return Fingerprint::None;
    };
    let started = Instant::now();
    let git = Arc::new(Mutex::new(None));
    let (says, looked) = channel();
    let (running, at) = (Arc::clone(&git), started);
    let thread = std::thread::Builder::new().spawn(move || {
        // Whoever waits may have given up.
        says.send(look(&root, &running, at + budget)).ok();
    });
    if thread.is_err() {
        return Fingerprint::None;
    }
    let left = budget.saturating_sub(started.elapsed());
    match looked.recv_timeout(left) {
        Ok(fingerprint) => fingerprint,
        Err(RecvTimeoutError::Disconnected) => Fingerprint::None,
        Err(RecvTimeoutError::Timeout) => {
            stop(&git);
            Fingerprint::Late
        }
    }
}

/// The directory at or above this one that is a checkout; as for git itself, below the ceilings.
fn root(directory: &Path, ceilings: &[PathBuf]) -> Option<PathBuf> {
    let open = |folder: &&Path| *folder == directory || !ceilings.iter().any(|it| it == folder);
    let above = directory.ancestors().take_while(open);
    let mut checkouts = above.filter(|folder| folder.join(".git").exists());
    checkouts.next().map(Path::to_owned)
}

/// The folders into which nobody looks up for a checkout.
fn ceilings() -> Vec<PathBuf> {
    let named = std::env::var_os("GIT_CEILING_DIRECTORIES").unwrap_or_default();
    std::env::split_paths(&named).collect()
}

type Running = Mutex<Option<Child>>;

fn stop(git: &Running) {
    let child = git.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut child) = child {
        // It may have ended by itself meanwhile.
        child.kill().ok();
        child.wait().ok();
    }
}

fn look(root: &Path, running: &Running, until: Instant) -> Fingerprint {
    let Some(status) = status(root, running) else {
        // A status that was cut off by its end says nothing.
        return match Instant::now() < until {
            true => Fingerprint::None,
            false => Fingerprint::Late,
        };
    };
    let mut tree = Tree {
        hash: Sha256::new(),
        read: READ,
        left: LOOKED_AT,
        until,
    };
    match tree.all(root, &status) {
        true => Fingerprint::Of(tree.sum()),
        false => Fingerprint::Late,
    }
}

/// What git says; none where it says that something is wrong, or is not there.
fn status(root: &Path, running: &Running) -> Option<Vec<u8>> {
    let mut git = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["--no-optional-locks", "status", "--porcelain=v2", "-z"])
        .args(["--branch", "--no-ahead-behind", "--no-renames"])
        .arg("--untracked-files=normal")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut output = git.stdout.take()?;
    *running.lock().unwrap_or_else(PoisonError::into_inner) = Some(git);
    let mut said = Vec::new();
    output.read_to_end(&mut said).ok()?;
    let git = running
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    git?.wait().ok()?.success().then_some(said)
}

/// The files that are being looked at.
struct Tree {
    hash: Sha256,
    /// How many files may still be read.
    read: usize,
    /// How many may still be looked at.
    left: usize,
    until: Instant,
}

impl Tree {
    /// Looks at all that a status lists; whether there was time for it.
    fn all(&mut self, root: &Path, status: &[u8]) -> bool {
        let entries = status
            .split(|byte| *byte == 0)
            .filter(|entry| !entry.is_empty());
        for entry in entries {
            if let Some(header) = entry.strip_prefix(b"# ") {
                // Where the remote stands is no change of ours.
                if header.starts_with(b"branch.oid") || header.starts_with(b"branch.head") {
                    self.add(header);
                }
                continue;
            }
            self.add(entry);
            let path = match entry.first() {
                Some(b'1') => field(entry, 8),
                Some(b'u') => field(entry, 10),
                Some(b'?') => field(entry, 1),
                Some(_) | None => None,
            };
            if let Some(path) = path.and_then(path_of)
                && !self.file(&root.join(path))
            {
                return false;
            }
        }
        true
    }

    fn add(&mut self, part: &[u8]) {
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
        self.hash.update(length.to_le_bytes());
        self.hash.update(part);
    }

    /// One file, or all that is in a directory; whether there was time for it.
    fn file(&mut self, path: &Path) -> bool {
        let mut waiting = vec![path.to_owned()];
        while let Some(path) = waiting.pop() {
            if Instant::now() >= self.until {
                return false;
            }
            if self.left == 0 {
                return true;
            }
            self.left -= 1;
            // Links are not followed: they may lead anywhere.
            let Ok(about) = fs::symlink_metadata(&path) else {
                self.add(b"gone");
                continue;
            };
            self.add(path.as_os_str().as_encoded_bytes());
            self.add(&size_and_time(&about));
            if about.is_dir() && path.file_name().is_none_or(|name| name != ".git") {
                waiting.extend(inside(&path));
            } else if about.is_symlink() {
                let target = fs::read_link(&path).unwrap_or_default();
                self.add(target.as_os_str().as_encoded_bytes());
            } else if about.is_file() && self.read > 0 {
                self.read -= 1;
                self.content(&path, about.len());
            }
        }
        true
    }

    fn content(&mut self, path: &Path, length: u64) {
        let Ok(mut file) = File::open(path) else {
            return self.add(b"unreadable");
        };
        let mut content = Vec::new();
        let whole = length <= WHOLE;
        let first = if whole { WHOLE } else { END };
        // A file that vanishes while it is read was still there: what was read counts.
        (&mut file).take(first).read_to_end(&mut content).ok();
        if !whole && file.seek(SeekFrom::Start(length - END)).is_ok() {
            file.take(END).read_to_end(&mut content).ok();
        }
        self.add(&content);
    }

    fn sum(self) -> String {
        let bytes = self.hash.finalize();
        bytes
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// What is in a directory, always in the same order.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn size_and_time(about: &Metadata) -> Vec<u8> {
    let since = about
        .modified()
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let nanos = since.map_or(0, |since| since.as_nanos());
    let mut bytes = about.len().to_le_bytes().to_vec();
    // A directory's time changes with what is in it, which is looked at by itself.
    if !about.is_dir() {
        bytes.extend(nanos.to_le_bytes());
    }
    bytes
}

/// What follows so many blanks.
fn field(entry: &[u8], blanks: usize) -> Option<&[u8]> {
    entry.splitn(blanks + 1, |byte| *byte == b' ').nth(blanks)
}

#[cfg(unix)]
#[allow(
    clippy::unnecessary_wraps,
    reason = "elsewhere not every name is a path"
)]
fn path_of(name: &[u8]) -> Option<&Path> {
    use std::os::unix::ffi::OsStrExt;
    Some(Path::new(std::ffi::OsStr::from_bytes(name)))
}

#[cfg(not(unix))]
fn path_of(name: &[u8]) -> Option<&Path> {
    std::str::from_utf8(name).ok().map(Path::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_looks_for_a_checkout_above_a_ceiling() {
        let checkout = std::env::temp_dir().join(format!("onward-ceiling-{}", std::process::id()));
        let inside = checkout.join("a").join("b");
        std::fs::create_dir_all(checkout.join(".git")).unwrap();
        std::fs::create_dir_all(&inside).unwrap();
        let ceiling = std::slice::from_ref(&checkout);
        let found = [
            root(&inside, &[]),
            root(&inside, ceiling),
            root(&checkout, ceiling),
        ];
        std::fs::remove_dir_all(&checkout).unwrap();
        assert_eq!(found, [Some(checkout.clone()), None, Some(checkout)]);
    }
}

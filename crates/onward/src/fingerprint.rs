//! Fingerprint of a working tree: HEAD, the index, and the content of the files that `git status`
//! lists. A different fingerprint means that something changed, and an earlier one that the tree
//! is in an earlier state again.
//!
//! `git status` alone shows neither a second edit of a modified file nor changes inside an
//! untracked directory, so the files are read as well, within limits: large files at both ends
//! with size and time, and beyond a number of files only size and time. If the time budget is
//! exceeded, the result is `TimedOut`. Outside a checkout no process is started. Onward's own
//! database is not part of the tree.
//!
//! The configuration of a checkout can name programs for git to run. None of them runs here: see
//! [`git`] and [`disabled_filters`].

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use onward_engine::session::Fingerprint;
use sha2::{Digest, Sha256};

/// Time budget of a fingerprint.
pub(crate) const BUDGET: Duration = Duration::from_millis(100);

/// Files up to this size are read completely, larger ones at both ends.
const MAX_WHOLE_FILE: u64 = 1 << 20;
/// Bytes read at each end of a large file.
const END_BYTES: u64 = 1 << 16;
/// Maximum number of files whose content is read.
const MAX_FILES_READ: usize = 512;
/// Maximum number of files and directories inspected.
const MAX_ENTRIES: usize = 20_000;

/// A fingerprint that a background thread computes. Git is killed at the end of the time budget, or
/// when this is dropped.
pub(crate) struct Pending(Option<Job>);

struct Job {
    until: Instant,
    git: Arc<Mutex<Git>>,
    result: Receiver<Fingerprint>,
}

impl Pending {
    pub(crate) const UNAVAILABLE: Self = Self(None);

    /// Blocks until the fingerprint is ready or the time budget has expired.
    pub(crate) fn wait(self) -> Fingerprint {
        let Some(Job { until, result, .. }) = &self.0 else {
            return Fingerprint::Unavailable;
        };
        let left = until.saturating_duration_since(Instant::now());
        match result.recv_timeout(left) {
            Ok(fingerprint) => fingerprint,
            Err(RecvTimeoutError::Disconnected) => Fingerprint::Unavailable,
            Err(RecvTimeoutError::Timeout) => Fingerprint::TimedOut,
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        stop(&self.git);
    }
}

/// Starts to take the fingerprint of the working tree that contains a directory.
pub(crate) fn start(directory: &Path, database: Option<&Path>, budget: Duration) -> Pending {
    let Some(root) = checkout(directory) else {
        return Pending::UNAVAILABLE;
    };
    let until = Instant::now() + budget;
    let git = Arc::new(Mutex::new(Git::Idle));
    let (sender, result) = channel();
    let (running, late) = (Arc::clone(&git), Arc::clone(&git));
    let database = database.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    let threads = spawn(move || {
        // The receiver may have timed out.
        sender.send(inspect(&root, database, &running, until)).ok();
    })
    // The caller may be blocked longer than the budget before it waits for the result.
    .and_then(|()| {
        spawn(move || {
            std::thread::sleep(budget);
            stop(&late);
        })
    });
    let job = Job { until, git, result };
    match threads {
        Ok(()) => Pending(Some(job)),
        Err(_) => Pending::UNAVAILABLE,
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().spawn(work).map(drop)
}

/// The git checkout that contains a directory.
pub(crate) fn checkout(directory: &Path) -> Option<PathBuf> {
    root(directory, &ceilings())
}

/// The checkout at or above the directory. Like git, the search stops at the ceiling directories.
fn root(directory: &Path, ceilings: &[PathBuf]) -> Option<PathBuf> {
    let below_ceiling = |path: &&Path| *path == directory || !ceilings.iter().any(|it| it == path);
    let above = directory.ancestors().take_while(below_ceiling);
    let mut checkouts = above.filter(|path| path.join(".git").exists());
    checkouts.next().map(Path::to_owned)
}

/// The ceiling directories from git's environment variable.
fn ceilings() -> Vec<PathBuf> {
    let value = std::env::var_os("GIT_CEILING_DIRECTORIES").unwrap_or_default();
    std::env::split_paths(&value).collect()
}

/// The git process of a fingerprint.
enum Git {
    Idle,
    Running(Child),
    /// No process may start.
    Stopped,
}

fn lock(git: &Mutex<Git>) -> MutexGuard<'_, Git> {
    git.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stop(git: &Mutex<Git>) {
    let stopped = std::mem::replace(&mut *lock(git), Git::Stopped);
    if let Git::Running(mut child) = stopped {
        // The process may already have exited.
        child.kill().ok();
        child.wait().ok();
    }
}

fn inspect(
    root: &Path,
    database: Option<PathBuf>,
    running: &Mutex<Git>,
    until: Instant,
) -> Fingerprint {
    let root = &root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let status = disabled_filters(root, running)
        .filter(|_| Instant::now() < until)
        .and_then(|filters| status(root, &filters, running));
    let Some(status) = status else {
        // After the deadline the process was killed, so its output is incomplete.
        return if Instant::now() < until {
            Fingerprint::Unavailable
        } else {
            Fingerprint::TimedOut
        };
    };
    let mut tree = TreeHash {
        hash: Sha256::new(),
        database,
        reads_left: MAX_FILES_READ,
        entries_left: MAX_ENTRIES,
        until,
    };
    if tree.add_status(root, &status) {
        Fingerprint::Value(tree.finish())
    } else {
        Fingerprint::TimedOut
    }
}

/// A git command that runs no program named in the configuration, except filters.
fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    // Variables for another repository, such as those of a git hook.
    let variables = std::env::vars_os().map(|(name, _)| name);
    for name in variables.filter(|name| name.as_encoded_bytes().starts_with(b"GIT_")) {
        git.env_remove(name);
    }
    // A directory without a valid repository must not select one above.
    if let Some(above) = root.parent() {
        git.env("GIT_CEILING_DIRECTORIES", above);
    }
    git.arg("-C")
        .arg(root)
        .arg("--no-optional-locks")
        .args(["-c", "core.fsmonitor=false"])
        .args(["-c", "core.hooksPath=/dev/null"])
        // A partial clone fetches missing objects with programs such as `core.sshCommand`.
        .env("GIT_ALLOW_PROTOCOL", "")
        .env("GIT_NO_LAZY_FETCH", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    git
}

/// Arguments that disable all configured filters, which git runs on modified files. `None` if git
/// fails or a filter cannot be disabled.
fn disabled_filters(root: &Path, running: &Mutex<Git>) -> Option<Vec<String>> {
    let mut list = git(root);
    list.args(["config", "--null", "--name-only", "--get-regexp"])
        .arg(r"^filter\.");
    let (status, keys) = output(list, running)?;
    // 1: no key matches.
    if !status.success() && status.code() != Some(1) {
        return None;
    }
    let keys = String::from_utf8(keys).ok()?;
    let keys = keys
        .split('\0')
        .filter_map(|key| key.strip_prefix("filter."));
    let names: BTreeSet<&str> = keys
        .filter_map(|key| Some(key.rsplit_once('.')?.0))
        .collect();
    // git would split the argument at the first `=`.
    if names.iter().any(|name| name.contains('=')) {
        return None;
    }
    let settings = names.iter().flat_map(|name| {
        ["clean=", "process=", "required=false"].map(|setting| format!("filter.{name}.{setting}"))
    });
    let arguments = settings.flat_map(|setting| ["-c".to_owned(), setting]);
    Some(arguments.collect())
}

/// Output of `git status`. `None` if git fails or is not installed. In a submodule git would run
/// the programs of its configuration, so only the commit of a submodule is compared.
fn status(root: &Path, disabled_filters: &[String], running: &Mutex<Git>) -> Option<Vec<u8>> {
    let mut status = git(root);
    status
        .args(disabled_filters)
        .args(["status", "--porcelain=v2", "-z", "--branch"])
        .args(["--no-ahead-behind", "--no-renames"])
        .args(["--untracked-files=normal", "--ignore-submodules=dirty"]);
    let (status, stdout) = output(status, running)?;
    status.success().then_some(stdout)
}

/// Exit status and output of a process. `None` if it does not start or was stopped.
fn output(mut command: Command, running: &Mutex<Git>) -> Option<(ExitStatus, Vec<u8>)> {
    let mut output = {
        let mut git = lock(running);
        if matches!(*git, Git::Stopped) {
            return None;
        }
        let mut child = command.spawn().ok()?;
        let output = child.stdout.take();
        *git = Git::Running(child);
        output?
    };
    let mut stdout = Vec::new();
    output.read_to_end(&mut stdout).ok()?;
    let mut child = {
        let mut git = lock(running);
        let Git::Running(child) = std::mem::replace(&mut *git, Git::Stopped) else {
            return None;
        };
        *git = Git::Idle;
        child
    };
    Some((child.wait().ok()?, stdout))
}

/// Hash over the inspected files.
struct TreeHash {
    hash: Sha256,
    database: Option<PathBuf>,
    reads_left: usize,
    entries_left: usize,
    until: Instant,
}

impl TreeHash {
    /// Adds all files of a status. Returns false if the deadline passed.
    fn add_status(&mut self, root: &Path, status: &[u8]) -> bool {
        let entries = status
            .split(|byte| *byte == 0)
            .filter(|entry| !entry.is_empty());
        for entry in entries {
            if let Some(header) = entry.strip_prefix(b"# ") {
                // A change of the upstream branch is not a change of the working tree.
                if header.starts_with(b"branch.oid") || header.starts_with(b"branch.head") {
                    self.add(header);
                }
                continue;
            }
            let path = match entry.first() {
                Some(b'1') => field(entry, 8),
                Some(b'u') => field(entry, 10),
                Some(b'?') => field(entry, 1),
                Some(_) | None => None,
            };
            let path = path.and_then(path_of).map(|path| root.join(path));
            if path.as_deref().is_some_and(|path| self.is_database(path)) {
                continue;
            }
            self.add(entry);
            if let Some(path) = path
                && !self.add_path(&path)
            {
                return false;
            }
        }
        true
    }

    /// Whether a path is a file of Onward's database, or a directory that contains nothing else.
    fn is_database(&self, path: &Path) -> bool {
        let Some(database) = &self.database else {
            return false;
        };
        if path.is_dir() && database.starts_with(path) {
            let entries = entries(path);
            return !entries.is_empty() && entries.iter().all(|entry| self.is_database(entry));
        }
        let names =
            [path, database].map(|path| path.file_name().map(|name| name.as_encoded_bytes()));
        let [Some(name), Some(own)] = names else {
            return false;
        };
        // Its log and its lock have the same name with an extension.
        path.parent() == database.parent() && name.starts_with(own)
    }

    fn add(&mut self, part: &[u8]) {
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
        self.hash.update(length.to_le_bytes());
        self.hash.update(part);
    }

    /// Adds a file, or all files of a directory. Returns false if the deadline passed.
    fn add_path(&mut self, path: &Path) -> bool {
        let mut pending = vec![path.to_owned()];
        while let Some(path) = pending.pop() {
            if Instant::now() >= self.until {
                return false;
            }
            if self.entries_left == 0 {
                return true;
            }
            self.entries_left -= 1;
            if self.is_database(&path) {
                continue;
            }
            // Symbolic links are not followed.
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                self.add(b"gone");
                continue;
            };
            self.add(path.as_os_str().as_encoded_bytes());
            let is_read = metadata.is_file() && self.reads_left > 0;
            // Where the content is read completely, an edit that is undone leaves no trace.
            if !(is_read && metadata.len() <= MAX_WHOLE_FILE) {
                self.add(&size_and_time(&metadata));
            }
            if metadata.is_dir() && path.file_name().is_none_or(|name| name != ".git") {
                pending.extend(entries(&path));
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).unwrap_or_default();
                self.add(target.as_os_str().as_encoded_bytes());
            } else if is_read {
                self.reads_left -= 1;
                self.add_content(&path, metadata.len());
            }
        }
        true
    }

    fn add_content(&mut self, path: &Path, length: u64) {
        let Ok(mut file) = File::open(path) else {
            return self.add(b"unreadable");
        };
        let mut content = Vec::new();
        let whole = length <= MAX_WHOLE_FILE;
        let first = if whole { MAX_WHOLE_FILE } else { END_BYTES };
        // If the file is deleted meanwhile, the bytes read so far count.
        (&mut file).take(first).read_to_end(&mut content).ok();
        if !whole && file.seek(SeekFrom::Start(length - END_BYTES)).is_ok() {
            file.take(END_BYTES).read_to_end(&mut content).ok();
        }
        self.add(&content);
    }

    fn finish(self) -> String {
        let bytes = self.hash.finalize();
        bytes
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// The entries of a directory, sorted.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn size_and_time(metadata: &Metadata) -> Vec<u8> {
    let since = metadata
        .modified()
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let nanos = since.map_or(0, |since| since.as_nanos());
    let mut bytes = metadata.len().to_le_bytes().to_vec();
    // A directory's time changes with its entries, which are added separately.
    if !metadata.is_dir() {
        bytes.extend(nanos.to_le_bytes());
    }
    bytes
}

/// The part of the entry after the given number of spaces.
fn field(entry: &[u8], spaces: usize) -> Option<&[u8]> {
    entry.splitn(spaces + 1, |byte| *byte == b' ').nth(spaces)
}

#[cfg(unix)]
#[allow(
    clippy::unnecessary_wraps,
    reason = "on other platforms not every name is a path"
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
    fn finds_no_checkout_above_a_ceiling_directory() {
        let dir = onward_testbed::TestDir::new("ceiling");
        let checkout = dir.path().to_owned();
        let inside = checkout.join("a").join("b");
        std::fs::create_dir_all(checkout.join(".git")).unwrap();
        std::fs::create_dir_all(&inside).unwrap();
        let ceiling = std::slice::from_ref(&checkout);
        let found = [
            root(&inside, &[]),
            root(&inside, ceiling),
            root(&checkout, ceiling),
        ];
        assert_eq!(found, [Some(checkout.clone()), None, Some(checkout)]);
    }
}

//! The files that the rules look at: what git tracks or would track.
//!
//! Where there is no git, as in an unpacked archive, it is everything but the build's output.
//! Files that are not text are known by their names alone.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One file.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root of the repository, with `/` between the parts.
    pub(crate) path: String,
    /// Empty where it is no text.
    pub(crate) text: String,
}

impl File {
    /// A file that only exists for a test of a rule.
    pub(crate) fn imagined(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }

    pub(crate) fn is_script(&self) -> bool {
        // What has an ending is a program that a script runs, in the language that it says.
        (self.path.starts_with("script/") && !self.name().contains('.')) || self.path == ".ci/run"
    }

    /// A finding about one line, in the form that editors can open.
    pub(crate) fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path, line + 1)
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate stands two folders deep")
        .to_owned()
}

/// Every file of the repository.
pub(crate) fn files() -> Vec<File> {
    let root = root();
    let paths = tracked(&root).unwrap_or_else(|| walked(&root));
    assert!(!paths.is_empty(), "no files under {}", root.display());
    paths
        .into_iter()
        // A file that was deleted but not yet from the index is no longer there to read.
        .filter_map(|path| {
            let bytes = std::fs::read(root.join(&path)).ok()?;
            let text = String::from_utf8(bytes).unwrap_or_default();
            Some(File { path, text })
        })
        .collect()
}

/// What git tracks, and what it would track: a rule should speak before the commit.
fn tracked(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .ok()
        .filter(|listed| listed.status.success())?;
    let paths = String::from_utf8(listed.stdout).ok()?;
    Some(paths.split_terminator('\0').map(str::to_owned).collect())
}

fn walked(root: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            let from_root = path.strip_prefix(root).expect("it is under the root");
            if path.is_dir() {
                if ![Path::new("target"), Path::new(".git")].contains(&from_root) {
                    folders.push(path);
                }
            } else {
                paths.push(from_root.to_string_lossy().into_owned());
            }
        }
    }
    paths.sort();
    paths
}

/// The repository keeps a rule that looks at one file at a time.
#[track_caller]
pub(crate) fn every_file_keeps(rule: fn(&File) -> Vec<String>) {
    let broken: Vec<_> = files().iter().flat_map(rule).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn this_file_is_among_the_files_whether_or_not_git_is_asked() {
    let here = "crates/onward/tests/tidy/tree.rs";
    assert!(files().iter().any(|file| file.path == here));
    let walked = walked(&root());
    assert!(walked.iter().any(|path| path == here));
    assert!(!walked.iter().any(|path| path.starts_with("target/")));
}

//! The files of the repository: tracked by git, or untracked and not ignored.
//!
//! Without git, as in an unpacked archive: all files except the build output. Binary files have no
//! text.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One file.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root of the repository, with `/` between the parts.
    pub(crate) path: String,
    /// Empty if it is not text.
    pub(crate) text: String,
}

impl File {
    /// A file for the test of a rule.
    pub(crate) fn new(path: &str, text: &str) -> Self {
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
        // Files with an extension are programs in other languages.
        (self.path.starts_with("script/") && !self.name().contains('.')) || self.path == ".ci/run"
    }

    /// A violation at a line, in the format that editors recognise.
    pub(crate) fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path, line + 1)
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate is two directories deep")
        .to_owned()
}

/// Every file of the repository.
pub(crate) fn files() -> Vec<File> {
    let root = root();
    let paths = tracked(&root).unwrap_or_else(|| walk(&root));
    assert!(!paths.is_empty(), "no files under {}", root.display());
    paths
        .into_iter()
        // A deleted file can still be in the index.
        .filter_map(|path| {
            let bytes = std::fs::read(root.join(&path)).ok()?;
            let text = String::from_utf8(bytes).unwrap_or_default();
            Some(File { path, text })
        })
        .collect()
}

/// Includes untracked files, so that violations are reported before the commit.
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

fn walk(root: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("the directory is readable") {
            let path = entry.expect("the directory is readable").path();
            let from_root = path.strip_prefix(root).expect("the path is under the root");
            if path.is_dir() {
                if ![Path::new("target"), Path::new(".git")].contains(&from_root) {
                    directories.push(path);
                }
            } else {
                paths.push(from_root.to_string_lossy().into_owned());
            }
        }
    }
    paths.sort();
    paths
}

/// Asserts that no file violates the rule.
#[track_caller]
pub(crate) fn assert_no_violations(rule: fn(&File) -> Vec<String>) {
    let violations: Vec<_> = files().iter().flat_map(rule).collect();
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn lists_this_file_with_and_without_git() {
    let here = "crates/onward/tests/tidy/tree.rs";
    assert!(files().iter().any(|file| file.path == here));
    let walked = walk(&root());
    assert!(walked.iter().any(|path| path == here));
    assert!(!walked.iter().any(|path| path.starts_with("target/")));
}

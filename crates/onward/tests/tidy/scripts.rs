//! The scripts: each can be run as it stands, says which shell it needs, and stops at the first
//! thing that fails.

use std::path::Path;
use std::process::Command;

use crate::tree::{File, every_file_keeps, files, root};

const FIRST_LINE: &str = "#!/usr/bin/env bash";

fn would_go_on_after_a_failure(file: &File) -> Vec<String> {
    let mut broken = Vec::new();
    if file.is_script() && file.text.lines().next() != Some(FIRST_LINE) {
        broken.push(file.at(0, &format!("does not open with `{FIRST_LINE}`")));
    }
    if file.is_script() && !file.text.lines().any(|line| line == "set -euo pipefail") {
        broken.push(format!("{}: has no `set -euo pipefail`", file.path));
    }
    broken
}

fn cannot_be_parsed(script: &Path) -> bool {
    let parsed = Command::new("bash").arg("-n").arg(script).output();
    !parsed.expect("bash starts").status.success()
}

#[cfg(unix)]
fn cannot_be_run(script: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(script)
        .expect("the script is there")
        .permissions()
        .mode();
    mode & 0o111 != 0o111
}

fn scripts() -> Vec<std::path::PathBuf> {
    let scripts: Vec<_> = files()
        .iter()
        .filter(|file| file.is_script())
        .map(|file| root().join(&file.path))
        .collect();
    assert!(scripts.len() >= 2, "script/test and .ci/run are missing");
    scripts
}

/// A file for one test, gone when the test ends.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn holding(name: &str, text: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).expect("a scratch file can be written");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies in the build's own folder, and is overwritten next time.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn every_script_stops_at_the_first_failure() {
    every_file_keeps(would_go_on_after_a_failure);
}

#[test]
fn a_script_that_would_go_on_is_found() {
    let bad = File::imagined("script/a", "#!/bin/sh\ntrue\n");
    assert_eq!(would_go_on_after_a_failure(&bad).len(), 2);
    let good = File::imagined("script/a", &format!("{FIRST_LINE}\nset -euo pipefail\n"));
    assert!(would_go_on_after_a_failure(&good).is_empty());
}

#[test]
fn every_script_can_be_parsed() {
    for script in scripts() {
        assert!(!cannot_be_parsed(&script), "{}", script.display());
    }
}

#[test]
fn a_script_that_cannot_be_parsed_is_found() {
    let bad = Scratch::holding("unparsable", "if true; then\n");
    assert!(cannot_be_parsed(&bad.0));
}

#[cfg(unix)]
#[test]
fn every_script_can_be_run() {
    for script in scripts() {
        assert!(!cannot_be_run(&script), "{}", script.display());
    }
}

#[cfg(unix)]
#[test]
fn a_script_that_cannot_be_run_is_found() {
    let bad = Scratch::holding("not-executable", "true\n");
    assert!(cannot_be_run(&bad.0));
}

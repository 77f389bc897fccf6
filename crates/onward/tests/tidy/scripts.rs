//! Scripts: executable, valid bash, and stopping at the first error.

use std::path::Path;
use std::process::Command;

use onward_testbed::TestDir;

use crate::tree::{File, assert_no_violations, files, root};

const FIRST_LINE: &str = "#!/usr/bin/env bash";

fn ignores_errors(file: &File) -> Vec<String> {
    let mut violations = Vec::new();
    if file.is_script() && file.text.lines().next() != Some(FIRST_LINE) {
        violations.push(file.at(0, &format!("does not start with `{FIRST_LINE}`")));
    }
    if file.is_script() && !file.text.lines().any(|line| line == "set -euo pipefail") {
        violations.push(format!("{}: has no `set -euo pipefail`", file.path));
    }
    violations
}

fn is_invalid_bash(script: &Path) -> bool {
    let parsed = Command::new("bash").arg("-n").arg(script).output();
    !parsed.expect("bash is installed").status.success()
}

#[cfg(unix)]
fn is_not_executable(script: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(script)
        .expect("the script exists")
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

#[test]
fn every_script_stops_at_the_first_error() {
    assert_no_violations(ignores_errors);
}

#[test]
fn detects_a_script_that_ignores_errors() {
    let bad = File::new("script/a", "#!/bin/sh\ntrue\n");
    assert_eq!(ignores_errors(&bad).len(), 2);
    let good = File::new("script/a", &format!("{FIRST_LINE}\nset -euo pipefail\n"));
    assert!(ignores_errors(&good).is_empty());
}

#[test]
fn every_script_can_be_parsed() {
    for script in scripts() {
        assert!(!is_invalid_bash(&script), "{}", script.display());
    }
}

#[test]
fn detects_invalid_bash() {
    let dir = TestDir::new("scripts");
    assert!(is_invalid_bash(&dir.write("bad", "if true; then\n")));
}

#[cfg(unix)]
#[test]
fn every_script_is_executable() {
    for script in scripts() {
        assert!(!is_not_executable(&script), "{}", script.display());
    }
}

#[cfg(unix)]
#[test]
fn detects_a_script_that_is_not_executable() {
    let dir = TestDir::new("scripts");
    assert!(is_not_executable(&dir.write("bad", "true\n")));
}

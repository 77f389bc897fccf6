//! Git, for tests and benchmarks that need a checkout.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a command without the configuration of the user and of the system. It may fail.
pub fn run_git(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("git")
        .args(["-c", "user.name=me", "-c", "user.email=me@example.org"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .stdin(Stdio::null())
        .output()
        .expect("git is installed")
}

/// Runs a command that must succeed. Returns its standard output.
#[track_caller]
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let run = run_git(folder, arguments);
    assert!(run.status.success(), "{arguments:?}: {run:?}");
    String::from_utf8(run.stdout).expect("output is UTF-8")
}

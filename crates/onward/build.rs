//! Sets `ONWARD_COMMIT` and `ONWARD_BUILD`, which `onward --version` prints.
//!
//! The commit comes from the variable `ONWARD_COMMIT`, from the file that `cargo publish` adds to a
//! package, or from git. Git is read for optimized builds only: otherwise every commit would rebuild
//! the program of a developer. The same sources give the same values, so that builds are
//! reproducible.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of characters of a commit.
const LENGTH: usize = 12;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ONWARD_COMMIT");
    let is_optimized = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = env::var("ONWARD_COMMIT")
        .ok()
        .or_else(packaged)
        .or_else(|| if is_optimized { checked_out() } else { None })
        .filter(|commit| !commit.is_empty())
        .map_or_else(
            || "unknown commit".to_owned(),
            |commit| commit.chars().take(LENGTH).collect(),
        );
    let target = env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=ONWARD_COMMIT={commit}");
    println!("cargo::rustc-env=ONWARD_BUILD={} {target}", profile());
}

/// The name of the profile. Cargo passes only `debug` or `release`, but a profile has a directory of
/// its name, which contains `build/onward-HASH/out`.
fn profile() -> String {
    let out = env::var_os("OUT_DIR")
        .map(PathBuf::from)
        .unwrap_or_default();
    let directory = out.ancestors().nth(3).and_then(Path::file_name);
    match directory.and_then(|name| name.to_str()) {
        Some(name @ ("debug" | "release" | "dist")) => name.to_owned(),
        Some(_) | None => env::var("PROFILE").unwrap_or_default(),
    }
}

/// The commit of a package from a registry.
fn packaged() -> Option<String> {
    let text = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    rest.split('"').nth(1).map(str::to_owned)
}

/// The commit of the checkout that contains this crate.
fn checked_out() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // A packaged crate may be below another repository.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let branch = git(&["symbolic-ref", "-q", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = git(&["rev-parse", "--git-path", name])?;
        // Cargo would rebuild each time for a file that does not exist.
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"])
}

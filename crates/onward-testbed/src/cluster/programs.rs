//! Finds PostgreSQL's programs, and selects the user that runs the server.
//!
//! Debian installs each version in a separate directory outside `PATH`; on other systems the
//! programs are found with `pg_config` or in `PATH`. PostgreSQL does not run as root, so root runs
//! it as another user.

use std::env;
use std::iter;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const DEBIAN: &str = "/usr/lib/postgresql";

/// The required programs. A client package contains only some of them.
const REQUIRED: [&str; 4] = ["initdb", "pg_ctl", "postgres", "psql"];

/// A directory with all [`REQUIRED`] programs.
#[derive(Debug)]
pub(crate) struct Programs(PathBuf);

/// The programs of the latest installed version.
pub(crate) fn find() -> Result<Programs, String> {
    versions(Path::new(DEBIAN))
        .into_iter()
        .chain(iter::once_with(configured).flatten())
        .chain(env::split_paths(&env::var_os("PATH").unwrap_or_default()))
        .find(|bin| REQUIRED.iter().all(|name| bin.join(name).is_file()))
        .map(Programs)
        .ok_or_else(|| {
            format!(
                "no PostgreSQL server found in `{DEBIAN}`, with `pg_config` or in `PATH`\n\
                 hint: run `script/test` on Debian; on other systems install version 14 or later"
            )
        })
}

/// The programs in this directory.
pub(crate) fn at(bin: PathBuf) -> Result<Programs, String> {
    match REQUIRED.iter().find(|name| !bin.join(name).is_file()) {
        Some(name) => Err(format!("no `{name}` in `{}`", bin.display())),
        None => Ok(Programs(bin)),
    }
}

/// The program directories of all versions installed by Debian, latest first.
fn versions(root: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<_> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .collect();
    versions.sort_unstable();
    versions
        .into_iter()
        .rev()
        .map(|version| root.join(version.to_string()).join("bin"))
        .collect()
}

/// The directory reported by `pg_config`.
fn configured() -> Option<PathBuf> {
    let bin = run(Command::new("pg_config").arg("--bindir")).ok()?.ok()?;
    Some(PathBuf::from(bin))
}

impl Programs {
    pub(crate) fn directory(&self) -> &Path {
        &self.0
    }

    pub(crate) fn command(&self, name: &str) -> Command {
        Command::new(self.0.join(name))
    }
}

/// Makes `command` run as a user that can run the server: for root, another user.
pub(crate) fn set_server_user(command: &mut Command) -> Result<(), String> {
    let id = |args: &[&str]| -> Option<u32> {
        let output = run(Command::new("id").args(args)).ok()?.ok()?;
        output.parse().ok()
    };
    if id(&["-u"]) != Some(0) {
        return Ok(());
    }
    let (user, group) = ["postgres", "nobody"]
        .iter()
        .find_map(|name| Some((id(&["-u", name])?, id(&["-g", name])?)))
        .ok_or("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`")?;
    command.uid(user).gid(group);
    Ok(())
}

/// Runs a program and returns its stdout, or its stderr if it fails. The outer error means that it
/// could not be started.
pub(crate) fn run(command: &mut Command) -> Result<Result<String, String>, String> {
    let output = command
        .output()
        .map_err(|error| format!("`{}`: {error}", command.get_program().display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    Ok(if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    })
}

#[test]
fn sorts_versions_numerically_latest_first() {
    let root = env::temp_dir().join(format!("onward-versions-{}", std::process::id()));
    for version in ["9.6", "14", "100", "15", "common"] {
        std::fs::create_dir_all(root.join(version)).expect("directory created");
    }
    let found = versions(&root);
    std::fs::remove_dir_all(&root).expect("directory removed");
    let expected = ["100", "15", "14"].map(|version| root.join(version).join("bin"));
    assert_eq!(found, expected);
}

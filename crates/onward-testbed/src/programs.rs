//! PostgreSQL's programs on this machine: where they are, and as whom they can be run.
//!
//! Debian keeps each version's in a directory of its own, outside the path; elsewhere
//! `pg_config` knows, or they are in the path. The server refuses to be run by root, so for root
//! it runs as the user that the package made for it.

use std::env;
use std::iter;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const DEBIAN: &str = "/usr/lib/postgresql";

/// What has to be there; a client alone brings only some.
const NEEDED: [&str; 4] = ["initdb", "pg_ctl", "postgres", "psql"];

/// One directory that has all of [`NEEDED`].
#[derive(Debug)]
pub(crate) struct Programs(PathBuf);

/// The programs of the latest version that is here.
pub(crate) fn find() -> Result<Programs, String> {
    versions(Path::new(DEBIAN))
        .into_iter()
        .chain(iter::once_with(configured).flatten())
        .chain(env::split_paths(&env::var_os("PATH").unwrap_or_default()))
        .find(|bin| NEEDED.iter().all(|name| bin.join(name).is_file()))
        .map(Programs)
        .ok_or_else(|| {
            format!(
                "no PostgreSQL server under `{DEBIAN}`, from `pg_config` or in the path\n\
                 hint: `script/test` installs it on Debian; elsewhere install version 14 or later"
            )
        })
}

/// The programs in a directory that somebody named.
pub(crate) fn at(bin: PathBuf) -> Result<Programs, String> {
    match NEEDED.iter().find(|name| !bin.join(name).is_file()) {
        Some(name) => Err(format!("no `{name}` in `{}`", bin.display())),
        None => Ok(Programs(bin)),
    }
}

/// The directories of all versions in Debian's order of things, the latest first.
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

/// Makes `command` run as somebody for whom the server works: for root that is another user.
pub(crate) fn as_server(command: &mut Command) -> Result<(), String> {
    let id = |what: &[&str]| -> Option<u32> {
        let answer = run(Command::new("id").args(what)).ok()?.ok()?;
        answer.parse().ok()
    };
    if id(&["-u"]) != Some(0) {
        return Ok(());
    }
    let (user, group) = ["postgres", "nobody"]
        .iter()
        .find_map(|name| Some((id(&["-u", name])?, id(&["-g", name])?)))
        .ok_or("root cannot run PostgreSQL, and there is no user `postgres` or `nobody`")?;
    command.uid(user).gid(group);
    Ok(())
}

/// What a program that ends by itself prints: on stdout if it succeeds, and else on stderr.
/// The outer error is that it cannot be started.
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
fn the_latest_version_comes_first_by_number_and_not_by_letter() {
    let root = env::temp_dir().join(format!("onward-versions-{}", std::process::id()));
    for version in ["9.6", "14", "100", "15", "common"] {
        std::fs::create_dir_all(root.join(version)).expect("a directory can be made");
    }
    let found = versions(&root);
    std::fs::remove_dir_all(&root).expect("it can be removed");
    let expected = ["100", "15", "14"].map(|version| root.join(version).join("bin"));
    assert_eq!(found, expected);
}

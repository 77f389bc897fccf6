//! The locations of configuration files, of the default database and of the user's directories.

use std::env;
use std::path::{Path, PathBuf};

/// The project's file, in the project's directory or its nearest ancestor.
pub(super) const PROJECT_FILE: &str = "onward.toml";
/// The same file in a separate directory. It also marks the directory whose plans belong together
/// (`project.rs`).
const PROJECT_FILE_IN_FOLDER: &str = ".onward/config.toml";
/// The user's file, relative to the user's configuration directory.
const USER_FILE: &str = "onward/config.toml";
/// The user's plan templates, relative to the user's configuration directory.
const USER_PLANS: &str = "onward/plans";
/// The default database, relative to the user's data directory.
const DATABASE_FILE: &str = "onward/onward.db";

/// The project's file in a directory or its nearest ancestor, if it exists. `None` is the current
/// directory.
pub(super) fn project_file(directory: Option<&Path>) -> Option<PathBuf> {
    let here = match directory {
        Some(directory) => directory.to_owned(),
        None => env::current_dir().ok()?,
    };
    let mut paths = here
        .ancestors()
        .flat_map(|folder| [PROJECT_FILE, PROJECT_FILE_IN_FOLDER].map(|name| folder.join(name)));
    paths.find(|path| path.is_file())
}

/// The user's file, if it exists.
pub(super) fn user_file() -> Option<PathBuf> {
    let path = directory("XDG_CONFIG_HOME", ".config")?.join(USER_FILE);
    path.is_file().then_some(path)
}

/// The directory of the user's plan templates.
pub(crate) fn user_plans() -> Option<PathBuf> {
    Some(directory("XDG_CONFIG_HOME", ".config")?.join(USER_PLANS))
}

/// The default database. `None` if the user has no data directory.
pub(super) fn default_database() -> Option<PathBuf> {
    Some(directory("XDG_DATA_HOME", ".local/share")?.join(DATABASE_FILE))
}

/// A directory of the user, from the variable or from the default below `HOME`.
pub(super) fn directory(variable: &str, default: &str) -> Option<PathBuf> {
    absolute(variable).or_else(|| home().map(|home| home.join(default)))
}

/// The user's home directory: `HOME`, on Windows also `USERPROFILE`.
pub(crate) fn home() -> Option<PathBuf> {
    let user_profile = || cfg!(windows).then(|| absolute("USERPROFILE")).flatten();
    absolute("HOME").or_else(user_profile)
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// A path for people: `~` for the user's home.
pub(crate) fn display(path: &Path) -> String {
    let below_home =
        home().and_then(|home| Some(Path::new("~").join(path.strip_prefix(home).ok()?)));
    below_home
        .unwrap_or_else(|| path.to_owned())
        .display()
        .to_string()
}

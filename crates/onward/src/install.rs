//! Edits an agent's configuration files: adds the entries of Onward, or removes them.
//!
//! The files belong to the user. Only Onward's entries change; comments and layout are preserved.
//! `agents` lists the files and entries of each agent, `json` and `toml` edit text, and `file`
//! reads and writes files. All edits are computed before the first write, so an invalid file leaves
//! all files unchanged.
//!
//! `texts` lists the skill, the commands and the worker agent; `managed` keeps the user's changes to
//! them. `plugins` packs the same entries and texts for installation by the agents.
//!
//! Installing saves a backup next to each edited file. Uninstalling removes the entries; a file
//! with no other changes since the installation is restored from its backup, byte for byte.

mod agents;
mod agents_md;
mod file;
mod json;
mod managed;
mod plugins;
mod texts;
mod toml;

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::failure::{Failure, Result};
use crate::hooks::Agent;
use crate::regular_file;

pub(crate) use agents::{Program, post_install_note};
pub(crate) use file::Change;
pub(crate) use plugins::plugin_files;

/// Where the agent is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// All projects of the user
    User,
    /// This directory only
    Project,
}

/// The directories that contain the agents' files.
#[derive(Debug, Clone)]
pub(crate) struct Directories {
    /// The user's home directory.
    pub(crate) user: PathBuf,
    /// The project's directory.
    pub(crate) project: PathBuf,
}

/// A configuration file, and the content to install in it.
struct ConfigFile {
    path: PathBuf,
    content: Content,
}

/// The content to install in a file.
enum Content {
    /// The whole file.
    Whole(String),
    /// Entries in a JSON file.
    Json {
        entries: Vec<json::Entry>,
        syntax: json::Syntax,
    },
    /// Entries in a TOML file.
    Toml(Vec<toml::Entry>),
    /// The whole file, unless the user has changed it.
    Managed {
        text: String,
        comment: managed::Comment,
    },
    /// A block in the `AGENTS.md` of a project.
    Block,
}

impl Content {
    /// Returns the text with Onward's entries.
    fn add_to(&self, text: &str) -> std::result::Result<String, String> {
        match self {
            Content::Whole(content) => Ok(content.clone()),
            Content::Json { entries, syntax } => json::add(text, entries, *syntax),
            Content::Toml(entries) => toml::add(text, entries),
            Content::Managed { text: new, comment }
                if text.is_empty() || managed::is_unchanged(text) =>
            {
                Ok(managed::with_mark(new, *comment))
            }
            Content::Managed { .. } => Ok(text.to_owned()),
            Content::Block => agents_md::add(text),
        }
    }

    /// Returns the text without Onward's entries. `None` if the file is to be deleted.
    fn remove_from(&self, text: &str) -> std::result::Result<Option<String>, String> {
        match self {
            Content::Whole(_) if text.starts_with(agents::PLUGIN_HEAD) => Ok(None),
            // A file with the same name that Onward did not write.
            Content::Whole(_) => Ok(Some(text.to_owned())),
            Content::Json { entries, syntax } => json::remove(text, entries, *syntax).map(Some),
            Content::Toml(entries) => toml::remove(text, entries).map(Some),
            Content::Managed { .. } if managed::is_unchanged(text) => Ok(None),
            Content::Managed { .. } => Ok(Some(text.to_owned())),
            Content::Block => agents_md::remove(text),
        }
    }
}

/// Computes the changes of an installation, without writing.
pub(crate) fn install(
    agent: Agent,
    scope: Scope,
    directories: &Directories,
    program: &Program,
) -> Result<Vec<Change>> {
    changes(agent, scope, directories, program, file::install)
}

/// Computes the change of the `AGENTS.md` of a directory, without writing.
pub(crate) fn install_agents_md(directories: &Directories) -> Result<Change> {
    file::install(agents_md_file(directories))
}

/// Computes the removal of the block from the `AGENTS.md` of a directory, without writing.
pub(crate) fn uninstall_agents_md(directories: &Directories) -> Result<Change> {
    file::uninstall(agents_md_file(directories))
}

fn agents_md_file(directories: &Directories) -> ConfigFile {
    ConfigFile {
        path: directories.project.join("AGENTS.md"),
        content: Content::Block,
    }
}

/// Whether the skill is installed for an agent: for the user, in a directory, or with the plugin that
/// runs this hook.
pub(crate) fn has_skill(agent: Agent, directory: Option<&Path>) -> bool {
    if plugin_folder().is_some_and(|folder| texts::skill_file(&folder).is_file()) {
        return true;
    }
    let user = crate::config::home().unwrap_or_default();
    let project = directory.map(Path::to_owned).unwrap_or_default();
    let directories = Directories { user, project };
    [Scope::User, Scope::Project].into_iter().any(|scope| {
        let folder = agents::agent_folder(agent, scope, &directories);
        texts::skill_file(&folder).is_file()
    })
}

/// The folder of the plugin that runs this hook. Claude Code and Codex set the variable.
fn plugin_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("CLAUDE_PLUGIN_ROOT").map(PathBuf::from);
    folder.filter(|folder| folder.is_absolute())
}

/// The database that the installed MCP server of an agent uses, if its entry has one.
pub(crate) fn installed_database(
    agent: Agent,
    scope: Scope,
    directories: &Directories,
    program: &Program,
) -> Option<String> {
    let files = agents::config_files(agent, scope, directories, program);
    files.into_iter().find_map(|file| {
        let text = regular_file::read_to_string(&file.path).ok()?;
        agents::database_in(&text)
    })
}

/// Computes the changes of an uninstallation, without writing.
pub(crate) fn uninstall(
    agent: Agent,
    scope: Scope,
    directories: &Directories,
    program: &Program,
) -> Result<Vec<Change>> {
    changes(agent, scope, directories, program, file::uninstall)
}

fn changes(
    agent: Agent,
    scope: Scope,
    directories: &Directories,
    program: &Program,
    change: fn(ConfigFile) -> Result<Change>,
) -> Result<Vec<Change>> {
    let files = agents::files(agent, scope, directories, program);
    let changes: Vec<Change> = files.into_iter().map(change).collect::<Result<_>>()?;
    match changes.iter().find(|change| change.is_blocked_by_mode()) {
        Some(change) => Err(Failure::failed(
            format!("cannot edit `{}`: read-only file", change.path().display()),
            "nothing was changed; make the file writable and run the command again",
        )),
        None => Ok(changes),
    }
}

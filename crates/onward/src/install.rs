//! What `onward install` writes into an agent's configuration, and takes out again.
//!
//! An agent's configuration is people's own: it is changed in place, with its comments and its layout,
//! and nothing but our own entries is touched. `pieces` says what goes where for each agent, `json` and
//! `toml` change a text, `file` reads and writes files. Nothing is written before every file could be
//! read and changed, so a broken file leaves all of them as they were.
//!
//! What a file was before our entries stands beside it as a backup. To uninstall, our entries are
//! taken out; where the file is exactly what installing makes of its backup, it becomes the backup
//! again, byte for byte.

mod file;
mod json;
mod pieces;
mod toml;

use std::path::PathBuf;

use clap::ValueEnum;

use crate::failure::{Failure, Result};
use crate::hooks::Agent;

pub(crate) use file::Change;
pub(crate) use pieces::{Program, note};

/// For whom the agent is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// Everything that this user does
    User,
    /// This directory alone
    Project,
}

/// Where an agent's files are.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// The user's directory.
    pub(crate) user: PathBuf,
    /// The project's directory.
    pub(crate) project: PathBuf,
}

/// A file, and what has to stand in it.
struct Piece {
    path: PathBuf,
    content: Content,
}

/// What has to stand in a file.
enum Content {
    /// A file that is all ours.
    Whole(String),
    /// Entries in a JSON file.
    Json {
        entries: Vec<json::Entry>,
        leniency: json::Leniency,
    },
    /// Entries in a TOML file.
    Toml(Vec<toml::Entry>),
}

impl Content {
    /// The text with our entries in it.
    fn put_in(&self, text: &str) -> std::result::Result<String, String> {
        match self {
            Content::Whole(ours) => Ok(ours.clone()),
            Content::Json { entries, leniency } => json::put_in(text, entries, *leniency),
            Content::Toml(entries) => toml::put_in(text, entries),
        }
    }

    /// The text without our entries; none where nothing of it is left.
    fn take_out(&self, text: &str) -> std::result::Result<Option<String>, String> {
        match self {
            Content::Whole(_) if text.starts_with(pieces::PLUGIN_HEAD) => Ok(None),
            // Somebody else's file under our name.
            Content::Whole(_) => Ok(Some(text.to_owned())),
            Content::Json { entries, leniency } => {
                json::take_out(text, entries, *leniency).map(Some)
            }
            Content::Toml(entries) => toml::take_out(text, entries).map(Some),
        }
    }
}

/// What installing would change. Nothing is written yet.
pub(crate) fn install(
    agent: Agent,
    scope: Scope,
    home: &Home,
    program: &Program,
) -> Result<Vec<Change>> {
    changes(agent, scope, home, program, file::installed)
}

/// What uninstalling would change. Nothing is written yet.
pub(crate) fn uninstall(
    agent: Agent,
    scope: Scope,
    home: &Home,
    program: &Program,
) -> Result<Vec<Change>> {
    changes(agent, scope, home, program, file::uninstalled)
}

fn changes(
    agent: Agent,
    scope: Scope,
    home: &Home,
    program: &Program,
    change: fn(Piece) -> Result<Change>,
) -> Result<Vec<Change>> {
    let pieces = pieces::of(agent, scope, home, program);
    let all: Vec<Change> = pieces.into_iter().map(change).collect::<Result<_>>()?;
    match all.iter().find(|change| change.is_refused_by_its_mode()) {
        Some(change) => Err(Failure::failed(
            format!("`{}` is read-only", change.path().display()),
            "nothing was changed; make the file writable, and run the command again",
        )),
        None => Ok(all),
    }
}

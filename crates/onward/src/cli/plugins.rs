//! `onward plugins`: the plugins of Claude Code, Codex and Gemini CLI, as the repository contains
//! them.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::install::plugin_files;
use crate::output::Output;

/// Write the plugins for Claude Code, Codex and Gemini CLI to a directory
///
/// A plugin contains what `onward install` writes: MCP server, hooks, skill and commands. It starts
/// `onward` from the search path. Example: `onward plugins .`, then
/// `gemini extensions install plugins/gemini`.
#[derive(Args)]
pub(crate) struct Plugins {
    /// Directory for the plugins and their catalogs; created if it does not exist
    directory: PathBuf,
}

pub(super) fn run(args: &Plugins, output: Output) -> Result {
    for file in plugin_files()? {
        let path = args.directory.join(&file.path);
        write(&path, &file.text).map_err(|error| failure(&path, &error))?;
    }
    output.note(&format!("written to {}", args.directory.display()));
    Ok(Exit::Done)
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}

fn failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(
        format!("cannot write `{}`: {error}", path.display()),
        "choose a directory that you can write to",
    )
}

//! `onward man`: man pages of the program and of each command, as packages install them.

use std::path::{Path, PathBuf};

use clap::Args;

use super::help;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Write the man pages to a directory
///
/// Example: `onward man ~/.local/share/man/man1`, then `man onward`.
#[derive(Args)]
pub(crate) struct Man {
    /// Directory for the pages; created if it does not exist
    directory: PathBuf,
}

pub(super) fn run(args: &Man, output: Output) -> Result {
    let directory = &args.directory;
    let failed = |error| failure(directory, &error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    // Without the commit, the pages of two builds of one version are equal.
    let command = help::command().version(env!("CARGO_PKG_VERSION"));
    clap_mangen::generate_to(command, directory).map_err(failed)?;
    output.note(&format!("written to {}", directory.display()));
    Ok(Exit::Done)
}

fn failure(directory: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(
        format!(
            "cannot write man pages to `{}`: {error}",
            directory.display()
        ),
        "choose a directory that you can write to",
    )
}

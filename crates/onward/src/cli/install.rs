//! `onward install`: edits the configuration of an agent in place, after printing the diff.

use clap::Args;
use serde::Serialize;

use crate::config::Flags;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::hooks::Agent;
use crate::install::{Change, Directories, Program, Scope, install, post_install_note, uninstall};
use crate::output::{Output, confirm, format};

/// Connect an agent: MCP server and hooks
///
/// Prints the diff and, on a terminal, asks for confirmation. Each changed file is backed up next
/// to it with the suffix `.onward-backup`. Running the command again changes nothing. `--database`
/// is written into the entries; without it, they use the configured database.
#[derive(Args)]
pub(crate) struct Install {
    /// Agent to connect
    #[arg(value_name = "AGENT")]
    agent: Agent,
    /// Remove the entries of Onward
    #[arg(long)]
    uninstall: bool,
    /// Print the diff and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Configuration of the user, or of this directory only
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    scope: Scope,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InstallJson {
    agent: &'static str,
    files: Vec<File>,
    written: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    path: String,
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<String>,
    difference: String,
}

pub(super) fn run(args: &Install, flags: &Flags, output: Output) -> Result {
    let (home, program) = (home()?, program()?);
    let program = program.with_database(flags.absolute_database()?);
    let changes = if args.uninstall {
        uninstall(args.agent, args.scope, &home, &program)?
    } else {
        install(args.agent, args.scope, &home, &program)?
    };
    let any = changes.iter().any(Change::has_effect);
    if !output.json {
        for change in changes.iter().filter(|change| change.has_effect()) {
            output.print(&sanitize_diff(&change.diff()))?;
        }
    }
    let written = any && !args.dry_run && confirm(&write_question(&changes)).unwrap_or(true);
    if written {
        for change in &changes {
            change.apply()?;
        }
    }
    if output.json {
        output.print_json(&to_json(args.agent, &changes, written))?;
    }
    print_result(args, output, &changes, any, written);
    Ok(Exit::Done)
}

fn to_json(agent: Agent, changes: &[Change], written: bool) -> InstallJson {
    let file = |change: &Change| File {
        path: change.path().display().to_string(),
        change: change.outcome(),
        backup: change.backup().map(|path| path.display().to_string()),
        difference: change.diff(),
    };
    InstallJson {
        agent: agent.as_str(),
        files: changes.iter().map(file).collect(),
        written,
    }
}

fn print_result(args: &Install, output: Output, changes: &[Change], any: bool, written: bool) {
    let agent = args.agent.as_str();
    match (any, written, args.uninstall) {
        (false, _, false) => output.note(&format!("nothing to do: `{agent}` is already connected")),
        (false, _, true) => output.note(&format!(
            "nothing to do: `{agent}` has no entries of Onward"
        )),
        (true, false, _) => output.note("nothing written"),
        (true, true, _) => {
            for change in changes.iter().filter(|change| change.has_effect()) {
                let path = format::sanitize_line(&change.path().display().to_string());
                match change.backup() {
                    Some(backup) => {
                        let backup = format::sanitize_line(&backup.display().to_string());
                        output.note(&format!(
                            "`{path}` {}, backup in `{backup}`",
                            change.outcome()
                        ));
                    }
                    None => output.note(&format!("`{path}` {}", change.outcome())),
                }
            }
        }
    }
    if let Some(note) =
        post_install_note(args.agent, args.scope).filter(|_| written && !args.uninstall)
    {
        output.note(note);
    }
}

fn write_question(changes: &[Change]) -> String {
    let files = changes.iter().filter(|change| change.has_effect()).count();
    format!("write {}?", format::count(files as u64, "file", "files"))
}

/// A diff without control characters.
fn sanitize_diff(diff: &str) -> String {
    let mut text = format::sanitize(diff);
    text.push('\n');
    text
}

/// The directories with the agents' files.
pub(super) fn home() -> Result<Directories> {
    let user = crate::config::home().ok_or_else(|| {
        Failure::usage(
            "cannot find the home directory: `HOME` is not set",
            "set `HOME` to an absolute path",
        )
    })?;
    let project = std::env::current_dir().map_err(|error| {
        Failure::failed(
            format!("cannot read the current directory: {error}"),
            "change to an existing directory",
        )
    })?;
    Ok(Directories { user, project })
}

/// The path of this binary.
pub(super) fn program() -> Result<Program> {
    let path = std::env::current_exe().ok();
    path.as_deref().and_then(Program::from_path).ok_or_else(|| {
        Failure::failed(
            "the path of this program is unknown or not UTF-8",
            "move the program to a UTF-8 path",
        )
    })
}

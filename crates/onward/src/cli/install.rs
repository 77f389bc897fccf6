//! `onward install`: edits the configuration of an agent in place, after a confirmation on a
//! terminal. Without a terminal it prints the diff instead of asking.

use clap::Args;
use serde::Serialize;

use crate::config::{Flags, location};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::hooks::Agent;
use crate::install::{
    Change, Directories, Program, Scope, install, install_agents_md, post_install_note, uninstall,
    uninstall_agents_md,
};
use crate::output::{Output, ask, format};

/// Connect an agent: MCP server, hooks, skill and commands
///
/// On a terminal, lists the files and asks for confirmation. Without a terminal, prints the diff and
/// writes the files; to write nothing, use `--dry-run`. Each changed file is backed up next to it with
/// the suffix `.onward-backup`. Running the command again changes nothing. `--database` is written into the entries; without it, they use the configured database.
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
    /// Add a block about Onward to the AGENTS.md of this directory
    #[arg(long)]
    agents_md: bool,
    /// Write without asking
    #[arg(long, short)]
    yes: bool,
}

/// Disconnect an agent: remove everything that `onward install` wrote
///
/// Files that you have changed are kept. A block in the AGENTS.md of this directory is removed, too.
#[derive(Args)]
pub(crate) struct Uninstall {
    /// Agent to disconnect
    #[arg(value_name = "AGENT")]
    agent: Agent,
    /// Print the diff and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Configuration of the user, or of this directory only
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    scope: Scope,
    /// Write without asking
    #[arg(long, short)]
    yes: bool,
}

impl From<Uninstall> for Install {
    fn from(args: Uninstall) -> Self {
        Self {
            agent: args.agent,
            uninstall: true,
            dry_run: args.dry_run,
            scope: args.scope,
            agents_md: false,
            yes: args.yes,
        }
    }
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
    let mut changes = if args.uninstall {
        uninstall(args.agent, args.scope, &home, &program)?
    } else {
        install(args.agent, args.scope, &home, &program)?
    };
    if args.uninstall {
        changes.push(uninstall_agents_md(&home)?);
    } else if args.agents_md {
        changes.push(install_agents_md(&home)?);
    }
    let any = changes.iter().any(Change::has_effect);
    let asks = any && !args.dry_run && !args.yes;
    let written = any && !args.dry_run && (args.yes || is_confirmed(&changes, output)?);
    if !asks && !output.json {
        print_diffs(&changes, output)?;
    }
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
        (true, false, _) if args.dry_run => output.note("dry run: nothing written"),
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

/// Asks on a terminal whether to write the files; `d` prints the diff and asks again. In a pipe the
/// diff is printed, and the answer is yes.
fn is_confirmed(changes: &[Change], output: Output) -> Result<bool> {
    let files: Vec<&Change> = changes
        .iter()
        .filter(|change| change.has_effect())
        .collect();
    let paths: Vec<String> = files.iter().map(|change| display_path(change)).collect();
    let width = paths
        .iter()
        .map(|path| format::width(path))
        .max()
        .unwrap_or(0);
    let mut summary = String::new();
    for (change, path) in files.iter().zip(&paths) {
        let (added, removed) = changed_lines(&change.diff());
        let padding = " ".repeat(width.saturating_sub(format::width(path)));
        let added = format::count(added as u64, "line", "lines");
        let removed = match removed {
            0 => String::new(),
            removed => format!(", {removed} removed"),
        };
        summary.push_str(&format!(
            "  {path}{padding}  {}: {added} added{removed}\n",
            change.outcome()
        ));
    }
    let number = format::count(files.len() as u64, "file", "files");
    let question = format!("Write {number} ({})? [y/N/d=diff] ", paths.join(", "));
    let mut prompt = format!("{summary}{question}");
    loop {
        match ask(&prompt).as_deref() {
            Some("y" | "yes") => return Ok(true),
            Some("d" | "diff") => print_diffs(changes, output)?,
            Some(_) => return Ok(false),
            None => {
                if !output.json {
                    print_diffs(changes, output)?;
                }
                return Ok(true);
            }
        }
        // The diff may have scrolled the summary off the screen.
        prompt = format!("\n{summary}{question}");
    }
}

fn print_diffs(changes: &[Change], output: Output) -> Result<()> {
    for change in changes.iter().filter(|change| change.has_effect()) {
        output.print(&sanitize_diff(&change.diff()))?;
    }
    Ok(())
}

/// The path of a file, with `~` for the home directory.
fn display_path(change: &Change) -> String {
    format::sanitize_line(&location::display(change.path()))
}

/// The numbers of added and removed lines of a diff.
fn changed_lines(diff: &str) -> (usize, usize) {
    let count = |sign: char, header: &str| {
        let lines = diff.lines();
        lines
            .filter(|line| line.starts_with(sign) && !line.starts_with(header))
            .count()
    };
    (count('+', "+++ "), count('-', "--- "))
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

//! `onward install`: an agent's configuration, changed in place; the difference is shown first.

use clap::Args;
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::hooks::Agent;
use crate::install::{Change, Home, Program, Scope, install, note, uninstall};
use crate::output::{Output, confirm, words};

/// Set up an agent: the MCP server, and hooks that watch its turns
///
/// The difference is shown first, and a terminal is asked. What was there is kept beside each file,
/// under a name that ends in `.onward-backup`. Running it again changes nothing.
#[derive(Args)]
pub(crate) struct Install {
    /// Which agent
    #[arg(value_name = "AGENT")]
    agent: Agent,
    /// Take out what was put in
    #[arg(long)]
    uninstall: bool,
    /// Show the difference, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// For everything that this user does, or for this directory alone
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    scope: Scope,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
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

pub(super) fn run(args: &Install, output: Output) -> Result {
    let (home, program) = (home()?, program()?);
    let changes = match args.uninstall {
        true => uninstall(args.agent, args.scope, &home, &program)?,
        false => install(args.agent, args.scope, &home, &program)?,
    };
    let any = changes.iter().any(Change::is_any);
    if !output.json {
        for change in changes.iter().filter(|change| change.is_any()) {
            output.print(&shown(&change.difference()))?;
        }
    }
    let written = any && !args.dry_run && confirm("write this?").unwrap_or(true);
    if written {
        for change in &changes {
            change.make()?;
        }
    }
    if output.json {
        output.print_json(&answer(args.agent, &changes, written))?;
    }
    tell(args, output, &changes, any, written);
    Ok(Exit::Done)
}

fn answer(agent: Agent, changes: &[Change], written: bool) -> Answer {
    let file = |change: &Change| File {
        path: change.path().display().to_string(),
        change: change.word(),
        backup: change.backup().map(|path| path.display().to_string()),
        difference: change.difference(),
    };
    Answer {
        agent: agent.as_str(),
        files: changes.iter().map(file).collect(),
        written,
    }
}

fn tell(args: &Install, output: Output, changes: &[Change], any: bool, written: bool) {
    let agent = args.agent.as_str();
    match (any, written, args.uninstall) {
        (false, _, false) => output.say(&format!("nothing to do: `{agent}` is set up already")),
        (false, _, true) => output.say(&format!("nothing to do: nothing of ours is in `{agent}`")),
        (true, false, _) => output.say("nothing was written"),
        (true, true, _) => {
            for change in changes.iter().filter(|change| change.is_any()) {
                let path = words::line(&change.path().display().to_string());
                match change.backup() {
                    Some(backup) => {
                        let backup = words::line(&backup.display().to_string());
                        output.say(&format!(
                            "`{path}` is {}, and kept as `{backup}`",
                            change.word()
                        ));
                    }
                    None => output.say(&format!("`{path}` is {}", change.word())),
                }
            }
        }
    }
    if let Some(note) = note(args.agent, args.scope).filter(|_| written && !args.uninstall) {
        output.say(note);
    }
}

/// A difference as a terminal may see it.
fn shown(difference: &str) -> String {
    let mut text = words::lines(difference);
    text.push('\n');
    text
}

/// Where agents' files are.
pub(super) fn home() -> Result<Home> {
    let user = std::env::var_os("HOME").map(std::path::PathBuf::from);
    let user = user.filter(|user| user.is_absolute()).ok_or_else(|| {
        Failure::usage(
            "there is no home to look for the agent in: `HOME` is not set",
            "set `HOME` to the user's directory",
        )
    })?;
    let project = std::env::current_dir().map_err(|why| {
        Failure::failed(
            format!("the current directory cannot be used: {why}"),
            "go to a directory that is there",
        )
    })?;
    Ok(Home { user, project })
}

/// This binary, where it lies.
pub(super) fn program() -> Result<Program> {
    let here = std::env::current_exe().ok();
    here.as_deref().and_then(Program::at).ok_or_else(|| {
        Failure::failed(
            "where this program lies cannot be told, or is not UTF-8",
            "move it to a path that is",
        )
    })
}

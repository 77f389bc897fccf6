//! Check that the configuration of connected agents equals the one that this version installs.

use clap::ValueEnum;

use super::Check;
use crate::cli::install::{home, program};
use crate::failure::Failure;
use crate::hooks::Agent;
use crate::install::{Change, Directories, Program, Scope, install, installed_database, uninstall};

const HOOKS: &str = "hooks";

/// Adds one check for each agent with entries of Onward, for the user or for this directory.
pub(super) fn check(checks: &mut Vec<Check>) {
    let (home, program) = match (home(), program()) {
        (Ok(home), Ok(program)) => (home, program),
        (Err(failure), _) | (_, Err(failure)) => return checks.push(unreadable(failure)),
    };
    let before = checks.len();
    for agent in Agent::value_variants() {
        for scope in Scope::value_variants() {
            // In the home directory, both scopes are the same file.
            if *scope == Scope::User || home.project != home.user {
                checks.extend(check_agent(*agent, *scope, &home, &program));
            }
        }
    }
    if checks.len() == before {
        let message = "none installed; install them with `onward install claude-code`";
        checks.push(Check::passed(HOOKS, message));
    }
}

/// Checks one agent; `None` if it has no entries of Onward.
fn check_agent(agent: Agent, scope: Scope, home: &Directories, program: &Program) -> Option<Check> {
    let (agent_name, flags) = match scope {
        Scope::User => (agent.as_str().to_owned(), String::new()),
        Scope::Project => (
            format!("{}, in this directory", agent.as_str()),
            " --scope project".to_owned(),
        ),
    };
    let entries = match uninstall(agent, scope, home, program) {
        Ok(entries) => entries,
        Err(failure) => return Some(unreadable(failure)),
    };
    if !entries.iter().any(Change::has_effect) {
        return None;
    }
    let database = installed_database(agent, scope, home, program);
    let program = program.clone().with_database(database);
    Some(match install(agent, scope, home, &program) {
        Ok(wanted) if !wanted.iter().any(Change::has_effect) => {
            Check::passed(HOOKS, format!("{agent_name}: installed"))
        }
        Ok(wanted) => {
            let outdated = wanted.iter().find(|change| change.has_effect());
            let path = outdated.map(|change| change.path().display().to_string());
            let is_missing = outdated.is_some_and(|change| change.outcome() == "created");
            let why = if is_missing {
                "is missing"
            } else {
                "is outdated: it was written by another version or location of `onward`"
            };
            let message = format!("{agent_name}: `{}` {why}", path.unwrap_or_default());
            let hint = format!("update it with `onward install {}{flags}`", agent.as_str());
            Check::failed(HOOKS, message, hint)
        }
        Err(failure) => unreadable(failure),
    })
}

fn unreadable(failure: Failure) -> Check {
    Check::failed(HOOKS, failure.message, failure.hint)
}

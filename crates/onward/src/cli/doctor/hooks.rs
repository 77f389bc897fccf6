//! Whether agents that were set up are set up as this program would do it today.

use clap::ValueEnum;

use super::Check;
use crate::cli::install::{home, program};
use crate::failure::Failure;
use crate::hooks::Agent;
use crate::install::{Change, Home, Program, Scope, install, uninstall};

const HOOKS: &str = "hooks";

/// One line for each agent that has entries of ours, for the user or for this directory.
pub(super) fn look(checks: &mut Vec<Check>) {
    let (home, program) = match (home(), program()) {
        (Ok(home), Ok(program)) => (home, program),
        (Err(why), _) | (_, Err(why)) => return checks.push(failed(why)),
    };
    let before = checks.len();
    for agent in Agent::value_variants() {
        for scope in Scope::value_variants() {
            // Whoever is at home sees one file twice.
            if *scope == Scope::User || home.project != home.user {
                checks.extend(setting(*agent, *scope, &home, &program));
            }
        }
    }
    if checks.len() == before {
        let message = "no agent is set up here; `onward install AGENT` does it";
        checks.push(Check::good(HOOKS, message));
    }
}

/// How one agent is set up; none where nothing of ours is there.
fn setting(agent: Agent, scope: Scope, home: &Home, program: &Program) -> Option<Check> {
    let (agent_name, command) = match scope {
        Scope::User => (agent.as_str().to_owned(), String::new()),
        Scope::Project => (
            format!("{}, in this directory", agent.as_str()),
            " --scope project".to_owned(),
        ),
    };
    let ours = match uninstall(agent, scope, home, program) {
        Ok(ours) => ours,
        Err(why) => return Some(failed(why)),
    };
    if !ours.iter().any(Change::is_any) {
        return None;
    }
    Some(match install(agent, scope, home, program) {
        Ok(wanted) if !wanted.iter().any(Change::is_any) => {
            Check::good(HOOKS, format!("{agent_name}: set up"))
        }
        Ok(wanted) => {
            let other = wanted.iter().find(|change| change.is_any());
            let path = other.map(|change| change.path().display().to_string());
            let message = format!(
                "{agent_name}: `{}` is not what this version of `onward`, where it lies now, would write",
                path.unwrap_or_default()
            );
            let hint = format!("`onward install {}{command}`", agent.as_str());
            Check::fault(HOOKS, message, hint)
        }
        Err(why) => failed(why),
    })
}

fn failed(why: Failure) -> Check {
    Check::fault(HOOKS, why.message, why.hint)
}

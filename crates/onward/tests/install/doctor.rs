//! `onward doctor` for agents: connected, connected by another copy of the binary, or not
//! connected.

use std::process::Command;

use serde_json::Value;

use crate::home::{AGENTS, Home};

/// Runs `onward doctor`. Returns whether all checks passed, and the checks of hooks.
fn hooks(home: &Home) -> (bool, Vec<Value>) {
    let run = Command::new(env!("CARGO_BIN_EXE_onward"))
        .args(["--json", "doctor"])
        .current_dir(home.path("project"))
        .env_clear()
        .env("HOME", home.path(""))
        .output()
        .expect("start the binary");
    let report: Value = serde_json::from_slice(&run.stdout).expect("the output is JSON");
    let checks = report["checks"].as_array().unwrap().iter();
    let hooks = checks.filter(|check| check["check"] == "hooks").cloned();
    let ok = report["ok"].as_bool().unwrap();
    assert_eq!(run.status.code(), Some(i32::from(!ok)), "{report}");
    (ok, hooks.collect())
}

#[test]
fn suggests_install_if_no_agent_is_connected() {
    let (ok, hooks) = hooks(&Home::new("doctor-none"));
    assert!(ok && hooks.len() == 1, "{hooks:?}");
    assert!(
        hooks[0]["message"]
            .as_str()
            .unwrap()
            .contains("onward install")
    );
}

#[test]
fn reports_an_agent_connected_by_another_copy_of_the_binary() {
    let home = Home::new("doctor-moved");
    let copy = home.copy_binary("elsewhere/onward");
    for agent in AGENTS {
        assert_eq!(home.run_with(&copy, &[agent]).status.code(), Some(0));
    }
    let (ok, failed) = hooks(&home);
    assert!(!ok);
    assert_eq!(failed.len(), AGENTS.len());
    for (agent, check) in AGENTS.iter().zip(&failed) {
        assert_eq!(check["ok"], false, "{check}");
        let hint = check["hint"].as_str().unwrap();
        assert!(
            hint.contains(&format!("`onward install {agent}`")),
            "{hint}"
        );
        home.install(&[agent]);
    }
    let (ok, passed) = hooks(&home);
    assert!(ok, "{passed:?}");
    assert_eq!(passed.len(), AGENTS.len());
    for (agent, check) in AGENTS.iter().zip(&passed) {
        assert!(
            check["message"].as_str().unwrap().starts_with(agent),
            "{check}"
        );
    }
}

#[test]
fn distinguishes_the_scopes_of_an_agent() {
    let home = Home::new("doctor-project");
    home.install(&["claude-code", "--scope", "project"]);
    home.install(&["claude-code", "--scope", "user"]);
    let (ok, hooks) = hooks(&home);
    assert!(ok && hooks.len() == 2, "{hooks:?}");
    assert_ne!(hooks[0]["message"], hooks[1]["message"]);
}

#[test]
fn reports_an_invalid_configuration_file() {
    let home = Home::new("doctor-broken");
    home.write(".claude/settings.json", "{ broken");
    let (ok, hooks) = hooks(&home);
    assert!(!ok);
    let check = &hooks[0];
    assert!(
        check["message"]
            .as_str()
            .unwrap()
            .contains(".claude/settings.json"),
        "{check}"
    );
    assert!(check["hint"].is_string(), "{check}");
}

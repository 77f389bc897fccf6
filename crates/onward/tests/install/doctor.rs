//! `onward doctor` on agents: set up, set up by another copy of the program, or not at all.

use std::process::Command;

use serde_json::Value;

use crate::home::{AGENTS, Home};

/// What the doctor says about hooks, and whether all is well.
fn hooks(home: &Home) -> (bool, Vec<Value>) {
    let run = Command::new(env!("CARGO_BIN_EXE_onward"))
        .args(["--json", "doctor"])
        .current_dir(home.path("project"))
        .env_clear()
        .env("HOME", home.path(""))
        .output()
        .expect("the binary starts");
    let answer: Value = serde_json::from_slice(&run.stdout).expect("it is JSON");
    let checks = answer["checks"].as_array().unwrap().iter();
    let hooks = checks.filter(|check| check["check"] == "hooks").cloned();
    let good = answer["ok"].as_bool().unwrap();
    assert_eq!(run.status.code(), Some(i32::from(!good)), "{answer}");
    (good, hooks.collect())
}

#[test]
fn where_no_agent_is_set_up_it_says_how() {
    let (good, hooks) = hooks(&Home::new("doctor-none"));
    assert!(good && hooks.len() == 1, "{hooks:?}");
    assert!(
        hooks[0]["message"]
            .as_str()
            .unwrap()
            .contains("onward install AGENT")
    );
}

#[test]
fn an_agent_that_was_set_up_by_another_copy_of_the_program_is_named_with_what_helps() {
    let home = Home::new("doctor-moved");
    let copy = home.copy_binary("elsewhere/onward");
    for agent in AGENTS {
        assert_eq!(home.run_as(&copy, &[agent]).status.code(), Some(0));
    }
    let (good, faults) = hooks(&home);
    assert!(!good);
    for (agent, fault) in AGENTS.iter().zip(&faults) {
        assert_eq!(fault["ok"], false, "{fault}");
        assert_eq!(
            fault["hint"],
            format!("`onward install {agent}`"),
            "{fault}"
        );
        home.done(&[agent]);
    }
    let (good, mended) = hooks(&home);
    let said: Vec<&str> = mended
        .iter()
        .filter_map(|one| one["message"].as_str())
        .collect();
    assert!(good, "{said:?}");
    assert_eq!(said, AGENTS.map(|agent| format!("{agent}: set up")));
}

#[test]
fn a_directory_s_own_setting_is_told_apart() {
    let home = Home::new("doctor-project");
    home.done(&["claude-code", "--scope", "project"]);
    let (good, hooks) = hooks(&home);
    assert!(good && hooks.len() == 1, "{hooks:?}");
    assert_eq!(
        hooks[0]["message"],
        "claude-code, in this directory: set up"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let home = Home::new("doctor-broken");
    home.write(".claude/settings.json", "{ broken");
    let (good, hooks) = hooks(&home);
    assert!(!good);
    let fault = &hooks[0];
    assert!(
        fault["message"]
            .as_str()
            .unwrap()
            .contains(".claude/settings.json"),
        "{fault}"
    );
    assert!(fault["hint"].is_string(), "{fault}");
}

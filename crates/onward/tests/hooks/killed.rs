//! Calls of a killed agent: after SIGKILL in the middle of a call, the resumed session gets one
//! message about it, which does not mention Onward.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use onward_core::call::{Cause, message};
use onward_testbed::Cluster;
use serde_json::Value;

use crate::harness::Harness;

/// If set, this test binary acts as an agent that sends the value to the hook.
const AGENT: &str = "ONWARD_HOOKS_AGENT";
const SESSION: &str = "7d0c1f6e-6a3f-4c55-9f0e-2b8f6f1c0a11";
const DEADLINE: Duration = Duration::from_secs(60);

/// The agent process: reports a call to its hook through a shell, as agents do, and then never
/// returns from the call. Without the environment variable it does nothing.
#[test]
fn agent_process() {
    let Ok(payload) = std::env::var(AGENT) else {
        return;
    };
    let script = format!("'{}' hook claude-code; true", env!("CARGO_BIN_EXE_onward"));
    let mut hook = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .spawn()
        .expect("start a shell");
    std::io::Write::write_all(&mut hook.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    assert!(hook.wait().unwrap().success());
    loop {
        std::thread::park();
    }
}

/// An agent process, killed on drop.
struct Agent(Child);

impl Agent {
    fn start(harness: &Harness) -> Self {
        let hook = harness.program.command(&[]);
        let mut agent = Command::new(std::env::current_exe().unwrap());
        agent
            .args(["--exact", "killed::agent_process"])
            .current_dir(harness.work_dir())
            .stdout(Stdio::null());
        for (name, value) in hook.get_envs() {
            agent.env(name, value.unwrap_or_default());
        }
        let agent = agent.env(AGENT, harness.payload("before_tool")).spawn();
        Self(agent.expect("start the test binary"))
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The process may have exited.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn first_call(harness: &Harness) -> Option<Value> {
    let list = harness.run(&["session", "list", "--json"], b"");
    if list.code != Some(0) {
        // The first hook creates the database.
        return None;
    }
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    if list["sessions"].as_array().is_some_and(Vec::is_empty) {
        return None;
    }
    let session = harness.run_json(&["session", "show", SESSION, "--json"]);
    session["calls"].get(0).cloned()
}

fn reports_the_call_of_a_killed_agent(harness: &Harness) {
    let mut agent = Agent::start(harness);
    let started = Instant::now();
    let running = loop {
        if let Some(call) = first_call(harness) {
            break call;
        }
        assert!(started.elapsed() < DEADLINE, "no call was recorded");
    };
    assert_eq!(running["status"], "running");
    // The owner is the agent, not the hook or the shell, which have exited.
    assert_eq!(running["owner"]["processId"], agent.0.id(), "{running}");
    assert!(running["staleAt"].is_string(), "{running}");
    harness.send("session_start").assert_empty();
    assert_eq!(
        first_call(harness).unwrap()["status"],
        "running",
        "the agent is alive"
    );
    agent.kill();
    let reply = harness.send("session_start").json();
    let text = reply["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap();
    let call = format!(
        "\n- \"Bash\" \"ls\": {}",
        message::for_model(Cause::OutcomeUnknown, None)
    );
    assert!(text.ends_with(&call), "{text}");
    for word in ["Onward", "onward", "process", "hook"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    harness.send("session_start").assert_empty();
    let interrupted = first_call(harness).unwrap();
    assert_eq!(
        (&interrupted["status"], &interrupted["cause"]),
        (&"interrupted".into(), &"outcome_unknown".into())
    );
    assert_eq!(interrupted["synthetic"], true);
    let text = harness.run(&["session", "show", SESSION], b"").stdout;
    assert!(text.contains("killed"), "{text}");
}

#[test]
fn reports_the_call_of_a_killed_agent_on_sqlite() {
    reports_the_call_of_a_killed_agent(&Harness::new("killed", "claude-code"));
}

#[test]
fn reports_the_call_of_a_killed_agent_on_postgresql() {
    let database = Cluster::shared().database();
    let harness = Harness::new("killed-postgres", "claude-code").with_database(database);
    reports_the_call_of_a_killed_agent(&harness);
}

//! An agent is killed with SIGKILL in the middle of a call; when its session goes on, it is told, once, in
//! words that say nothing of who watched.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use onward_testbed::Cluster;
use serde_json::Value;

use crate::desk::Desk;

/// What tells this program, started anew, to be an agent: its hook's command and its payload.
const AGENT: &str = "ONWARD_HOOKS_AGENT";
const SESSION: &str = "7d0c1f6e-6a3f-4c55-9f0e-2b8f6f1c0a11";
const PATIENCE: Duration = Duration::from_secs(60);

/// The agent: it tells its hook of a call through a shell, as agents do, and then makes the call, which
/// never ends. By itself it does nothing.
#[test]
fn is_an_agent_where_the_environment_says_so() {
    let Ok(payload) = std::env::var(AGENT) else {
        return;
    };
    let script = format!("'{}' hook claude-code; true", env!("CARGO_BIN_EXE_onward"));
    let mut hook = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell starts");
    std::io::Write::write_all(&mut hook.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    assert!(hook.wait().unwrap().success());
    loop {
        std::thread::park();
    }
}

/// An agent that does not outlive its test.
struct Agent(Child);

impl Agent {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may be dead already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn agent(desk: &Desk) -> Agent {
    let as_the_hook = desk.onward(&[]);
    let mut agent = Command::new(std::env::current_exe().unwrap());
    agent
        .args([
            "--exact",
            "killed::is_an_agent_where_the_environment_says_so",
        ])
        .current_dir(desk.work())
        .stdout(Stdio::null());
    for (name, value) in as_the_hook.get_envs() {
        agent.env(name, value.unwrap_or_default());
    }
    let agent = agent.env(AGENT, desk.payload("before")).spawn();
    Agent(agent.expect("this program can be started"))
}

fn call(desk: &Desk) -> Option<Value> {
    let list = desk.ask(&["session", "list", "--json"]);
    if list["sessions"].as_array().is_some_and(Vec::is_empty) {
        return None;
    }
    let shown = desk.ask(&["session", "show", SESSION, "--json"]);
    shown["calls"].get(0).cloned()
}

fn killed(desk: &Desk) {
    let mut agent = agent(desk);
    let began = Instant::now();
    let running = loop {
        if let Some(call) = call(desk) {
            break call;
        }
        assert!(began.elapsed() < PATIENCE, "the agent tells nothing");
    };
    assert_eq!(running["status"], "running");
    // Not the hook, which is gone, nor the shell: the agent.
    assert_eq!(running["owner"]["processId"], agent.0.id(), "{running}");
    let text = desk.send(&["session", "show", SESSION], b"").stdout;
    assert!(text.contains("given up in 2 min"), "{text}");
    desk.tell("session_start").is_silent();
    assert_eq!(call(desk).unwrap()["status"], "running", "it lives");
    agent.kill();
    let told = desk.tell("session_start").json();
    let told = told["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap();
    assert!(
        told.starts_with("1 tool call of this session got no result:\n- Bash `ls`"),
        "{told}"
    );
    assert!(
        told.contains("Check what it did before making it again"),
        "{told}"
    );
    for ours in ["Onward", "onward", "process", "hook", "ledger"] {
        assert!(!told.contains(ours), "{ours}: {told}");
    }
    desk.tell("session_start").is_silent();
    let lost = call(desk).unwrap();
    assert_eq!(
        (&lost["status"], &lost["cause"]),
        (&"interrupted".into(), &"outcome_unknown".into())
    );
    assert_eq!(lost["synthetic"], true);
    let text = desk.send(&["session", "show", SESSION], b"").stdout;
    let words = "interrupted just now: it had begun, and nobody knows how far it came";
    assert!(text.contains(words), "{text}");
}

#[test]
fn a_killed_agents_call_is_told_of_when_its_session_goes_on_on_a_file() {
    killed(&Desk::new("killed", "claude-code"));
}

#[test]
fn a_killed_agents_call_is_told_of_when_its_session_goes_on_on_postgresql() {
    let database = Cluster::shared().database();
    killed(&Desk::new("killed-postgres", "claude-code").on(database));
}

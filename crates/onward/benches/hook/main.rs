//! How long an agent waits for a hook: from the start of the process to its end, beside the start of a
//! process that does nothing (`cargo bench -p onward --bench hook`, or `bench/hook`).
//!
//! Every round starts each of them once, so that what else the machine does falls on all alike. The
//! fingerprint has a budget of its own; `in a checkout` is with it, on a small one.
//! `cargo test --benches` does one round of each and measures nothing.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench prints what it found, and cannot go on without its files"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often each is started.
const ROUNDS: usize = 300;

/// A database and two directories to work in.
struct Place(PathBuf);

impl Place {
    fn make() -> Self {
        let name = format!("onward-bench-hook-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        for place in ["plain", "checkout"] {
            std::fs::create_dir_all(folder.join(place)).expect("a folder can be made");
        }
        std::fs::write(folder.join("checkout/a.txt"), "a").expect("a file can be written");
        let git = Command::new("git")
            .args(["init", "-q"])
            .current_dir(folder.join("checkout"))
            .status();
        assert!(git.expect("git is there").success(), "a checkout is made");
        Self(folder)
    }

    fn hook(&self, event: &str, folder: &str, number: usize) -> Duration {
        let cwd = self.0.join(folder).display().to_string();
        let call = format!(
            r#"{{"tool_name":"Bash","tool_input":{{"command":"cat {number}.md"}},"tool_use_id":"{folder}{number}","tool_response":"line {number} of something that is long enough to be news, or was"}}"#
        );
        let payload = format!(
            r#"{{"session_id":"{folder}","cwd":"{cwd}","hook_event_name":"{event}","tool_name":"Bash","tool_input":{{}},"tool_use_id":"b{number}","tool_calls":[{call}]}}"#
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        command
            .args(["hook", "claude-code"])
            .current_dir(self.0.join(folder))
            .env("ONWARD_DATABASE", self.0.join("onward.db"));
        timed(&mut command, &payload)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What stays behind is in the system's folder for temporary things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// From the start of a process to its end, with this on its standard input.
fn timed(command: &mut Command, input: &str) -> Duration {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started = Instant::now();
    let mut child = command.spawn().expect("it starts");
    if let Some(mut stdin) = child.stdin.take() {
        // A process that reads nothing may be gone already.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().expect("it ends");
    let took = started.elapsed();
    assert!(output.stderr.is_empty(), "{output:?}");
    took
}

fn main() {
    let bench = std::env::args().any(|argument| argument == "--bench");
    let rounds = if bench { ROUNDS } else { 1 };
    let place = Place::make();
    let nothing = Path::new("/bin/true");
    let mut rows: Vec<(&str, Vec<Duration>)> = [
        "a process that does nothing",
        "before a call",
        "after a step",
        "a prompt",
        "after a step, in a checkout",
    ]
    .map(|name| (name, Vec::new()))
    .into();
    for round in 0..rounds {
        let took = [
            timed(&mut Command::new(nothing), ""),
            place.hook("PreToolUse", "plain", round),
            place.hook("PostToolBatch", "plain", round),
            place.hook("UserPromptSubmit", "plain", round),
            place.hook("PostToolBatch", "checkout", round),
        ];
        for ((_, row), took) in rows.iter_mut().zip(took) {
            row.push(took);
        }
    }
    if !bench {
        return;
    }
    println!(
        "{:<30} {:>9} {:>9} {:>9}",
        "what", "p50 ms", "p99 ms", "most ms"
    );
    for (name, mut row) in rows {
        row.sort();
        let at = |share: usize| {
            let took = row.get((row.len() * share / 100).min(row.len() - 1));
            took.map_or(0.0, |took| took.as_secs_f64() * 1_000.0)
        };
        println!(
            "{name:<30} {:>9.2} {:>9.2} {:>9.2}",
            at(50),
            at(99),
            at(100)
        );
    }
}

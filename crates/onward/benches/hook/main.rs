//! Duration of a hook process from start to exit, compared with a process that does nothing
//! (`cargo bench -p onward --bench hook`, or `bench/hook`).
//!
//! Every round starts each process once, so that other load affects all of them equally. The
//! fingerprint has a separate time limit; `in a checkout` includes it, for a small checkout.
//! `cargo test --benches` runs one round of each and measures nothing.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints its results and fails if its files are missing"
)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use onward_testbed::{TestDir, git};

/// Number of runs of each process.
const ROUNDS: usize = 300;

/// A temporary directory with a database and two working directories.
struct Directories(TestDir);

impl Directories {
    fn create() -> Self {
        let dir = TestDir::new("bench-hook");
        std::fs::create_dir(dir.join("plain")).expect("directory created");
        dir.write("checkout/a.txt", "a");
        git(&dir.join("checkout"), &["init", "-q"]);
        Self(dir)
    }

    /// The hook after a call that changes a task list of ten tasks, with the given `[capture]`.
    fn task_list(&self, capture: &str, number: usize) -> Duration {
        let cwd = self.0.join("plain").display().to_string();
        let task = |index: usize| {
            let status = match index.cmp(&(number % 10)) {
                std::cmp::Ordering::Less => "completed",
                std::cmp::Ordering::Equal => "in_progress",
                std::cmp::Ordering::Greater => "pending",
            };
            let list = number / 10;
            format!(r#"{{"content":"Task {index} of list {list}","status":"{status}"}}"#)
        };
        let todos: Vec<String> = (0..10).map(task).collect();
        let payload = format!(
            r#"{{"session_id":"tasks-{capture}","cwd":"{cwd}","hook_event_name":"PostToolUse","tool_name":"TodoWrite","tool_input":{{"todos":[{}]}},"tool_use_id":"t{number}","tool_response":{{"newTodos":[]}}}}"#,
            todos.join(",")
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        command
            .args(["hook", "claude-code"])
            .current_dir(self.0.join("plain"))
            .env("ONWARD_CAPTURE__PLANS", capture)
            .env("ONWARD_DATABASE", self.0.join("onward.db"));
        timed(&mut command, &payload)
    }

    fn hook(&self, event: &str, folder: &str, number: usize) -> Duration {
        let cwd = self.0.join(folder).display().to_string();
        let call = format!(
            r#"{{"tool_name":"Bash","tool_input":{{"command":"cat {number}.md"}},"tool_use_id":"{folder}{number}","tool_response":"line {number} of an output that is long enough to count as progress"}}"#
        );
        let payload = format!(
            r#"{{"session_id":"{folder}","cwd":"{cwd}","hook_event_name":"{event}","tool_name":"Bash","tool_input":{{}},"tool_use_id":"b{number}","tool_calls":[{call}]}}"#
        );
        self.claude_code(folder, &payload)
    }

    /// The hook of an event for which the tokens of new lines of the transcript are counted.
    fn count_tokens(&self, event: &str, length: usize, number: usize) -> Duration {
        let cwd = self.0.join("plain").display().to_string();
        let path = self.0.join("transcript.jsonl");
        Self::append(&path, length, number);
        let path = path.display();
        let payload = format!(
            r#"{{"session_id":"tokens","cwd":"{cwd}","transcript_path":"{path}","hook_event_name":"{event}","tool_name":"mcp__onward__get_next_step","tool_input":{{"planId":"p"}},"tool_use_id":"n{number}"}}"#
        );
        self.claude_code("plain", &payload)
    }

    /// Appends responses of 5 kB each to a transcript.
    fn append(path: &Path, length: usize, number: usize) {
        let text = "x".repeat(5_000);
        let lines: String = (0..length / text.len())
            .map(|line| {
                format!(
                    r#"{{"type":"assistant","message":{{"id":"m{number}-{length}-{line}","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":10,"cache_read_input_tokens":1000,"output_tokens":20}}}}}}"#
                ) + "\n"
            })
            .collect();
        let file = File::options().create(true).append(true).open(path);
        let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
        written.expect("transcript written");
    }

    fn claude_code(&self, folder: &str, payload: &str) -> Duration {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        command
            .args(["hook", "claude-code"])
            .current_dir(self.0.join(folder))
            .env("ONWARD_DATABASE", self.0.join("onward.db"));
        timed(&mut command, payload)
    }
}

/// Runs a process with this standard input and returns its duration.
fn timed(command: &mut Command, input: &str) -> Duration {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started = Instant::now();
    let mut child = command.spawn().expect("process started");
    if let Some(mut stdin) = child.stdin.take() {
        // A process that does not read its input may have exited already.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().expect("process exited");
    let duration = started.elapsed();
    assert!(output.stderr.is_empty(), "{output:?}");
    duration
}

fn main() {
    let bench = std::env::args().any(|argument| argument == "--bench");
    let rounds = if bench { ROUNDS } else { 1 };
    let dir = Directories::create();
    let no_op = Path::new("/bin/true");
    let mut rows: Vec<(&str, Vec<Duration>)> = [
        "a process that does nothing",
        "hook before a call",
        "hook after a step",
        "hook on a prompt",
        "after a step, in a checkout",
        "at the end of a turn",
        "end of a turn, 20 kB of transcript",
        "end of a turn, 1 MB of transcript",
        "before a claim, 20 kB of transcript",
        "after a task list, not captured",
        "after a task list, captured",
    ]
    .map(|name| (name, Vec::new()))
    .into();
    for round in 0..rounds {
        let duration = [
            timed(&mut Command::new(no_op), ""),
            dir.hook("PreToolUse", "plain", round),
            dir.hook("PostToolBatch", "plain", round),
            dir.hook("UserPromptSubmit", "plain", round),
            dir.hook("PostToolBatch", "checkout", round),
            dir.hook("Stop", "plain", round),
            dir.count_tokens("Stop", 20_000, round),
            dir.count_tokens("Stop", 1_000_000, round),
            dir.count_tokens("PreToolUse", 20_000, round),
            dir.task_list("off", round),
            dir.task_list("on", round),
        ];
        for ((_, row), duration) in rows.iter_mut().zip(duration) {
            row.push(duration);
        }
    }
    if !bench {
        return;
    }
    println!(
        "{:<36} {:>9} {:>9} {:>9}",
        "process", "p50 ms", "p99 ms", "max ms"
    );
    for (name, row) in &mut rows {
        row.sort();
        let [p50, p99, max] = [50, 99, 100].map(|percent| at(row, percent));
        println!("{name:<36} {p50:>9.2} {p99:>9.2} {max:>9.2}");
    }
    // Other load affects both rows, so that the ratio can be compared between machines.
    if let [.., (_, off), (_, on)] = rows.as_slice() {
        let ratio = |percent| at(on, percent) / at(off, percent);
        let (p50, p99) = (ratio(50), ratio(99));
        println!("{:<36} {p50:>8.2}x {p99:>8.2}x", "captured / not captured");
    }
}

/// A percentile of sorted durations, in milliseconds.
fn at(row: &[Duration], percent: usize) -> f64 {
    let duration = row.get((row.len() * percent / 100).min(row.len() - 1));
    duration.map_or(0.0, |duration| duration.as_secs_f64() * 1_000.0)
}

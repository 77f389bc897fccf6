//! Test harness: a temporary directory with a database, and an agent that runs the hook there.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};

use onward_testbed::{Program, Run, golden};
use serde_json::Value;

/// The binary, and an agent that runs its hook.
pub(crate) struct Harness {
    pub(crate) program: Program,
    agent: &'static str,
    payloads: AtomicU32,
    turn: AtomicU32,
}

/// Whether the reply rejects the call.
pub(crate) fn is_denied(reply: &Run) -> bool {
    reply.stdout.contains("\"deny\"")
}

impl Harness {
    pub(crate) fn new(test: &str, agent: &'static str) -> Self {
        let program = Program::new(env!("CARGO_BIN_EXE_onward"), test).with_current_dir("work");
        let home = program.dir.join("home");
        // Without the skill, every session starts with the advice that it contains.
        let skill = home.join(match agent {
            "claude-code" => ".claude/skills/onward-plans",
            "codex" => ".codex/skills/onward-plans",
            "gemini" => ".gemini/skills/onward-plans",
            "kimi" => ".kimi-code/skills/onward-plans",
            "cursor" => ".cursor/skills/onward-plans",
            _ => ".config/opencode/skills/onward-plans",
        });
        std::fs::create_dir_all(&skill).expect("create the home directory");
        std::fs::write(skill.join("SKILL.md"), "").expect("write the skill");
        Self {
            program: program
                .with_env("HOME", home.display())
                .with_env("PATH", std::env::var("PATH").unwrap_or_default()),
            agent,
            payloads: AtomicU32::new(0),
            turn: AtomicU32::new(0),
        }
    }

    pub(crate) fn with_env(mut self, name: &'static str, value: impl ToString) -> Self {
        self.program = self.program.with_env(name, value);
        self
    }

    pub(crate) fn with_database(mut self, database: String) -> Self {
        self.program = self.program.with_database(database);
        self
    }

    /// The agent's working directory.
    pub(crate) fn work_dir(&self) -> &Path {
        self.program.current_dir()
    }

    /// Reads a fixture and fills in its placeholders.
    pub(crate) fn payload(&self, name: &str) -> String {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks");
        let path = fixtures.join(self.agent).join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path).expect("fixture exists");
        let number = self.payloads.fetch_add(1, Ordering::SeqCst);
        let turn = match name {
            "prompt" => self.turn.fetch_add(1, Ordering::SeqCst) + 1,
            _ => self.turn.load(Ordering::SeqCst),
        };
        // Words, because the detector masks numbers.
        let words = [
            "ebb", "flow", "moon", "sun", "spring", "neap", "shore", "reef",
        ];
        let new_text = format!(
            "{} {}",
            words[usize::try_from(number).unwrap() % 8],
            words[usize::try_from(number / 8).unwrap() % 8]
        );
        text.replace("{n}", &number.to_string())
            .replace("{turn}", &turn.to_string())
            .replace("{new_text}", &new_text)
            .replace("{folder}", &self.work_dir().display().to_string())
    }

    /// Sends the payload of a fixture to the hook.
    pub(crate) fn send(&self, name: &str) -> Run {
        let payload = self.payload(name);
        self.send_payload(&payload)
    }

    /// Sends a payload to the hook.
    pub(crate) fn send_payload(&self, payload: &str) -> Run {
        self.run(&["hook", self.agent], payload.as_bytes())
    }

    /// Starts the hook and writes the payload of a fixture, without waiting for the output.
    pub(crate) fn start(&self, name: &str) -> Child {
        let payload = self.payload(name);
        self.program
            .spawn(&["hook", self.agent], payload.as_bytes())
    }

    /// Runs the binary with the given standard input.
    pub(crate) fn run(&self, arguments: &[&str], input: &[u8]) -> Run {
        self.program.run_with_input(arguments, input)
    }

    /// Runs the binary and parses its JSON output.
    pub(crate) fn run_json(&self, arguments: &[&str]) -> Value {
        self.program.run_json(arguments)
    }

    /// The first session, with its turns and calls.
    pub(crate) fn session(&self) -> Value {
        let list = self.run_json(&["session", "list", "--json"]);
        let id = list["sessions"][0]["sessionId"].as_str().unwrap();
        self.run_json(&["session", "show", id, "--json"])
    }

    /// Sends idle steps, and returns the last output.
    pub(crate) fn send_idle_steps(&self, steps: u32) -> Run {
        let outputs = (0..steps).map(|_| self.send("idle"));
        outputs.last().expect("at least one step")
    }
}

/// Compares a text with `scripts/NAME.txt`.
#[track_caller]
pub(crate) fn compare_golden(name: &str, text: &str) {
    golden::assert_matches(golden_path(name), text);
}

pub(crate) fn golden_path(name: &str) -> PathBuf {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hooks/scripts");
    scripts.join(name).with_extension("txt")
}

//! Test harness: a temporary directory with a database, and an agent that runs the hook there.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A temporary directory for one test, deleted on drop.
pub(crate) struct Harness {
    pub(crate) folder: PathBuf,
    agent: &'static str,
    database: String,
    /// Environment variables of the binary.
    environment: Vec<(&'static str, String)>,
    payloads: AtomicU32,
    turn: AtomicU32,
}

/// The output of a process.
#[derive(Debug)]
pub(crate) struct HookOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for HookOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl HookOutput {
    /// Parses standard output, which must be one line of JSON.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).expect("the output is JSON")
    }

    /// Asserts success without output.
    #[track_caller]
    pub(crate) fn assert_empty(&self) {
        assert_eq!(
            (self.code, self.stdout.as_str(), self.stderr.as_str()),
            (Some(0), "", "")
        );
    }

    /// Whether the reply rejects the call.
    pub(crate) fn is_denied(&self) -> bool {
        self.stdout.contains("\"deny\"")
    }
}

impl Harness {
    pub(crate) fn new(test: &str, agent: &'static str) -> Self {
        // Not in the build directory, which may be inside a checkout.
        let name = format!("onward-hooks-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(folder.join("home")).expect("create the home directory");
        std::fs::create_dir_all(folder.join("work")).expect("create the work directory");
        let database = folder.join("onward.db").display().to_string();
        Self {
            folder,
            agent,
            database,
            environment: Vec::new(),
            payloads: AtomicU32::new(0),
            turn: AtomicU32::new(0),
        }
    }

    pub(crate) fn with_env(mut self, name: &'static str, value: impl ToString) -> Self {
        self.environment.push((name, value.to_string()));
        self
    }

    pub(crate) fn with_database(mut self, database: String) -> Self {
        self.database = database;
        self
    }

    /// The agent's working directory.
    pub(crate) fn work_dir(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// The binary, in the agent's working directory.
    pub(crate) fn onward(&self, arguments: &[&str]) -> Command {
        let mut onward = Command::new(env!("CARGO_BIN_EXE_onward"));
        onward
            .args(arguments)
            .current_dir(self.work_dir())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("HOME", self.folder.join("home"))
            .env("ONWARD_DATABASE", &self.database)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        onward
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
    pub(crate) fn send(&self, name: &str) -> HookOutput {
        let payload = self.payload(name);
        self.send_payload(&payload)
    }

    /// Sends a payload to the hook.
    pub(crate) fn send_payload(&self, payload: &str) -> HookOutput {
        self.run(&["hook", self.agent], payload.as_bytes())
    }

    /// Starts the hook and writes the payload of a fixture, without waiting for the output.
    pub(crate) fn start(&self, name: &str) -> Child {
        let payload = self.payload(name);
        let mut child = self.onward(&["hook", self.agent]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(payload.as_bytes()).unwrap();
        child
    }

    /// Runs the binary with the given standard input.
    pub(crate) fn run(&self, arguments: &[&str], input: &[u8]) -> HookOutput {
        let mut child = self.onward(arguments).spawn().expect("start the binary");
        let mut stdin = child.stdin.take().expect("standard input is piped");
        // The process may exit without reading its input.
        let _ = stdin.write_all(input);
        drop(stdin);
        HookOutput::from(child.wait_with_output().expect("wait for the binary"))
    }

    /// Runs the binary and parses its JSON output.
    pub(crate) fn run_json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments, b"");
        assert_eq!(output.code, Some(0), "{output:?}");
        output.json()
    }

    /// The first session, with its turns and calls.
    pub(crate) fn session(&self) -> Value {
        let list = self.run_json(&["session", "list", "--json"]);
        let id = list["sessions"][0]["sessionId"].as_str().unwrap();
        self.run_json(&["session", "show", id, "--json"])
    }

    /// Sends idle steps, and returns the last output.
    pub(crate) fn send_idle_steps(&self, steps: u32) -> HookOutput {
        let outputs = (0..steps).map(|_| self.send("idle"));
        outputs.last().expect("at least one step")
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        // On failure, the directory remains in the system's temporary directory.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Compares a text with `scripts/NAME.txt`, or writes the file if `ONWARD_BLESS` is set.
#[track_caller]
pub(crate) fn compare_golden(name: &str, text: &str) {
    let path = golden_path(name);
    if std::env::var_os("ONWARD_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).expect("create the golden directory");
        std::fs::write(&path, text).expect("write the golden file");
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == golden,
        "`{name}.txt` differs; to update it: \
         ONWARD_BLESS=1 cargo test -p onward --test hooks\n\n{text}"
    );
}

pub(crate) fn golden_path(name: &str) -> PathBuf {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hooks/scripts");
    scripts.join(name).with_extension("txt")
}

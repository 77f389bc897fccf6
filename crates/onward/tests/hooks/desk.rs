//! A directory with a database, and an agent that tells of what it does there.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A directory for one test, gone when the test ends.
pub(crate) struct Desk {
    pub(crate) folder: PathBuf,
    agent: &'static str,
    database: String,
    /// Settings for the binary.
    environment: Vec<(&'static str, String)>,
    told: AtomicU32,
    turn: AtomicU32,
}

/// What a hook answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("what is printed is UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// The answer as JSON; it must be one, on one line.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).expect("it is JSON")
    }

    /// Nothing was said, and nothing went wrong.
    #[track_caller]
    pub(crate) fn is_silent(&self) {
        assert_eq!(
            (self.code, self.stdout.as_str(), self.stderr.as_str()),
            (Some(0), "", "")
        );
    }
}

impl Desk {
    pub(crate) fn new(test: &str, agent: &'static str) -> Self {
        // Not in the build's folder, which may stand in a checkout: ours.
        let name = format!("onward-hooks-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(folder.join("home")).expect("a folder can be made");
        std::fs::create_dir_all(folder.join("work")).expect("a folder can be made");
        let database = folder.join("onward.db").display().to_string();
        Self {
            folder,
            agent,
            database,
            environment: Vec::new(),
            told: AtomicU32::new(0),
            turn: AtomicU32::new(0),
        }
    }

    pub(crate) fn set(mut self, name: &'static str, value: impl ToString) -> Self {
        self.environment.push((name, value.to_string()));
        self
    }

    pub(crate) fn on(mut self, database: String) -> Self {
        self.database = database;
        self
    }

    /// Where the agent works.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// The binary, in the agent's directory.
    pub(crate) fn onward(&self, arguments: &[&str]) -> Command {
        let mut onward = Command::new(env!("CARGO_BIN_EXE_onward"));
        onward
            .args(arguments)
            .current_dir(self.work())
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

    /// A payload, with names of its own where it wants any.
    pub(crate) fn payload(&self, name: &str) -> String {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks");
        let path = fixtures.join(self.agent).join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path).expect("the fixture is there");
        let number = self.told.fetch_add(1, Ordering::SeqCst);
        let turn = match name {
            "prompt" => self.turn.fetch_add(1, Ordering::SeqCst) + 1,
            _ => self.turn.load(Ordering::SeqCst),
        };
        // Words: numbers are masked, so that they tell nothing apart.
        let letters = [
            "ebb", "flow", "moon", "sun", "spring", "neap", "shore", "reef",
        ];
        let news = format!(
            "{} {}",
            letters[usize::try_from(number).unwrap() % 8],
            letters[usize::try_from(number / 8).unwrap() % 8]
        );
        text.replace("{n}", &number.to_string())
            .replace("{turn}", &turn.to_string())
            .replace("{news}", &news)
            .replace("{folder}", &self.work().display().to_string())
    }

    /// Tells the hook of something.
    pub(crate) fn tell(&self, name: &str) -> Answer {
        let payload = self.payload(name);
        self.send(&["hook", self.agent], payload.as_bytes())
    }

    /// Runs the binary with this on its standard input.
    pub(crate) fn send(&self, arguments: &[&str], input: &[u8]) -> Answer {
        let mut child = self.onward(arguments).spawn().expect("the binary starts");
        let mut stdin = child.stdin.take().expect("it has a standard input");
        // A binary that reads nothing may be gone already.
        let _ = stdin.write_all(input);
        drop(stdin);
        Answer::of(child.wait_with_output().expect("it ends"))
    }

    /// What the binary prints as JSON.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Value {
        let answer = self.send(arguments, b"");
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer.json()
    }

    /// So many steps in which nothing happens; the last answer.
    pub(crate) fn idle(&self, steps: u32) -> Answer {
        let answers = (0..steps).map(|_| self.tell("idle"));
        answers.last().expect("at least one step")
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // What stays behind is in the system's folder for temporary things.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

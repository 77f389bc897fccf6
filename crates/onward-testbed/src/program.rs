//! The binary under test, with its own directory, database, configuration and environment.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};

use serde_json::Value;

use crate::{Database, TIMEOUT, TestDir};

/// The file with the standard error output of servers.
pub(crate) const LOG: &str = "stderr";

/// A binary, and the directory and environment in which a test runs it. The environment contains
/// only what the test sets.
#[derive(Debug)]
pub struct Program {
    /// The home directory, with the user's configuration and the SQLite file.
    pub dir: TestDir,
    /// The value of `ONWARD_DATABASE`.
    pub database: String,
    binary: PathBuf,
    current_dir: PathBuf,
    config: String,
    environment: Vec<(String, String)>,
}

impl Program {
    /// The binary in an empty directory, with an SQLite file that does not exist yet. Tests pass
    /// `env!("CARGO_BIN_EXE_onward")`.
    pub fn new(binary: impl Into<PathBuf>, test: &str) -> Self {
        let dir = TestDir::new(test);
        Self {
            database: dir.join("onward.db").display().to_string(),
            current_dir: dir.path().to_owned(),
            dir,
            binary: binary.into(),
            config: String::new(),
            environment: Vec::new(),
        }
    }

    /// Uses another database.
    pub fn with_database(mut self, database: String) -> Self {
        self.database = database;
        self
    }

    /// Uses a new PostgreSQL database.
    pub fn on_postgres(self) -> Self {
        self.with_database(Database::create(crate::Backend::Postgres).address())
    }

    /// Appends lines to the user's `config.toml`.
    pub fn with_config(mut self, lines: &str) -> Self {
        self.config.push_str(lines);
        self.config.push('\n');
        self
    }

    /// Sets an environment variable.
    pub fn with_env(mut self, name: &str, value: impl ToString) -> Self {
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    /// Runs the binary in a new directory below [`dir`](Self::dir).
    pub fn with_current_dir(mut self, name: &str) -> Self {
        self.current_dir = self.dir.join(name);
        std::fs::create_dir_all(&self.current_dir).expect("directory created");
        self
    }

    /// The directory in which the binary runs.
    pub fn current_dir(&self) -> &Path {
        &self.current_dir
    }

    /// A command that runs the binary, without standard input.
    pub fn command(&self, arguments: &[&str]) -> Command {
        if !self.config.is_empty() {
            self.dir.write(".config/onward/config.toml", &self.config);
        }
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .current_dir(&self.current_dir)
            .env_clear()
            .env("HOME", self.dir.path())
            .env("USER", "ann")
            .env("ONWARD_DATABASE", &self.database)
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command. Kills it after [`TIMEOUT`].
    pub fn run(&self, arguments: &[&str]) -> Run {
        self.run_with_input(arguments, b"")
    }

    /// Like [`run`](Self::run), with this standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Run {
        wait_with_timeout(self.spawn(arguments, input)).into()
    }

    /// Starts a command with this standard input and piped output.
    pub fn spawn(&self, arguments: &[&str], input: &[u8]) -> Child {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("binary started");
        let mut stdin = child.stdin.take().expect("stdin is piped");
        // The process may exit without reading its input.
        drop(stdin.write_all(input));
        child
    }

    /// Runs a command that must succeed. Returns its standard output without the final newline.
    #[track_caller]
    pub fn run_ok(&self, arguments: &[&str]) -> String {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
        run.stdout.trim_end().to_owned()
    }

    /// Runs a command that must succeed. Returns its parsed output.
    #[track_caller]
    pub fn run_json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run_ok(arguments)).expect("output is JSON")
    }

    /// The standard error output of all servers so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join(LOG)).unwrap_or_default()
    }

    /// Creates a token, and its tenant if it does not exist.
    pub fn token(&self, tenant: &str, name: &str, role: &str) -> String {
        if tenant != "local" {
            // Fails if the tenant exists.
            drop(self.run(&["tenant", "create", tenant]));
        }
        self.run_ok(&[
            "--tenant", tenant, "token", "create", "--name", name, "--role", role,
        ])
    }
}

/// Exit code and output of a process.
#[derive(Debug)]
pub struct Run {
    /// `None` if a signal ended the process.
    pub code: Option<i32>,
    /// The standard output.
    pub stdout: String,
    /// The standard error output.
    pub stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Run {
    /// The standard output, which must be one line of JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).expect("output is JSON")
    }

    /// Asserts success without output.
    #[track_caller]
    pub fn assert_empty(&self) {
        let outcome = (self.code, self.stdout.as_str(), self.stderr.as_str());
        assert_eq!(outcome, (Some(0), "", ""));
    }

    /// The JSON on each line of the standard output.
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).expect("line is JSON");
        self.stdout.lines().map(parse).collect()
    }
}

fn wait_with_timeout(child: Child) -> Output {
    let pid = child.id().to_string();
    let (exited, exit) = channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if exit.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            drop(Command::new("kill").args(["-KILL", &pid]).status());
        }
    });
    let output = child.wait_with_output().expect("process exited");
    drop(exited);
    watchdog.join().expect("watchdog exited");
    output
}

//! One server in a temporary directory, controlled through a separate process: `supervisor.sh`.
//!
//! The supervisor runs as long as its input pipe is open. Closing the pipe is the only way to end a
//! server, so dropping it, a panic and `kill -9` of the test have the same effect. The standard
//! library's pipes are not inherited, so no child process of a test keeps the pipe open.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::programs::{Programs, set_server_user};

/// Below the range for outgoing connections, so that no other process is assigned the port of a
/// stopped server.
const PORTS: std::ops::Range<u16> = 15_000..32_000;

/// The number of ports to try, because another process may take the port first.
const MAX_PORTS: usize = 5;

const MAX_LOG_LINES: usize = 20;

#[derive(Debug)]
pub(crate) struct Server {
    supervisor: Mutex<Supervisor>,
    port: u16,
}

impl Server {
    /// Starts a new cluster and waits until it accepts connections. Removes everything on failure.
    pub(crate) fn start(programs: Programs) -> Result<Self, String> {
        Self::start_with(&programs, "create")
    }

    /// Starts a copy of a server with the next timeline, as after its promotion. Restarts the other
    /// server.
    pub(crate) fn start_promoted_copy(programs: Programs, of: &Self) -> Result<Self, String> {
        of.stop()?;
        let directory = of.directory().display().to_string();
        let copy = Self::start_with(&programs, &format!("copy {directory}"));
        of.restart()?;
        copy
    }

    fn start_with(programs: &Programs, create: &str) -> Result<Self, String> {
        let mut supervisor = Supervisor::start(programs)?;
        supervisor.send(create)?;
        let mut attempt = 1;
        loop {
            let port = free_port()?;
            match supervisor.send(&format!("start {port}")) {
                Ok(()) => {
                    let supervisor = Mutex::new(supervisor);
                    return Ok(Self { supervisor, port });
                }
                Err(error) if attempt == MAX_PORTS => return Err(error),
                Err(_) => attempt += 1,
            }
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn stop(&self) -> Result<(), String> {
        self.send("stop")
    }

    pub(crate) fn restart(&self) -> Result<(), String> {
        self.send("stop")?;
        self.send(&format!("start {}", self.port))
    }

    /// The log of the server.
    pub(crate) fn log(&self) -> Result<String, String> {
        let log = self.directory().join("log");
        let log = std::fs::read(&log).map_err(|error| format!("`{}`: {error}", log.display()))?;
        Ok(String::from_utf8_lossy(&log).into_owned())
    }

    fn directory(&self) -> PathBuf {
        let supervisor = self.supervisor.lock();
        let supervisor = supervisor.unwrap_or_else(PoisonError::into_inner);
        supervisor.directory.clone()
    }

    fn send(&self, command: &str) -> Result<(), String> {
        let mut supervisor = self
            .supervisor
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        supervisor.send(command)
    }
}

/// A port that is not in use.
pub(crate) fn free_port() -> Result<u16, String> {
    // A random start, so that concurrent tests try different ports.
    let random = RandomState::new().hash_one(0);
    let begin = u16::try_from(random % PORTS.len() as u64).unwrap_or_default();
    let (before, after) = (
        PORTS.start..PORTS.start + begin,
        PORTS.start + begin..PORTS.end,
    );
    after
        .chain(before)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| format!("no free port in {PORTS:?}"))
}

#[derive(Debug)]
struct Supervisor {
    process: Child,
    /// `None` after the pipe is closed.
    commands: Option<ChildStdin>,
    responses: BufReader<ChildStdout>,
    directory: PathBuf,
}

impl Supervisor {
    fn start(programs: &Programs) -> Result<Self, String> {
        let mut command = Command::new("sh");
        command
            .args(["-c", include_str!("supervisor.sh"), "supervisor"])
            .arg(programs.directory())
            .arg(match std::env::var_os("ONWARD_TESTBED_AS_SHIPPED") {
                Some(_) => "default",
                None => "small",
            })
            // Tests read the server's log, which must be in English.
            .env("LC_ALL", "C")
            // The server's user may not have access to the current directory.
            .current_dir("/")
            // Signals from the terminal must not reach the supervisor.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // With an inherited stderr, readers of the test's stderr would wait for the supervisor.
            .stderr(Stdio::null());
        set_server_user(&mut command)?;
        let mut process = command
            .spawn()
            .map_err(|error| format!("cannot start the PostgreSQL supervisor: {error}"))?;
        let commands = process.stdin.take();
        let responses = process
            .stdout
            .take()
            .ok_or("the PostgreSQL supervisor has no stdout")?;
        let mut supervisor = Self {
            process,
            commands,
            responses: BufReader::new(responses),
            directory: PathBuf::new(),
        };
        let directory = supervisor.read_response()?;
        if directory.is_empty() {
            return Err("cannot create a temporary directory for PostgreSQL".to_owned());
        }
        supervisor.directory = PathBuf::from(directory);
        Ok(supervisor)
    }

    /// Sends a command and waits for its response. The error contains the end of the log.
    fn send(&mut self, command: &str) -> Result<(), String> {
        // If the supervisor has exited, writing fails and the response is empty.
        if let Some(commands) = &mut self.commands {
            let _ = writeln!(commands, "{command}");
        }
        match self.read_response()?.as_str() {
            "0" => Ok(()),
            status => Err(self.failure(command, status)),
        }
    }

    /// The next line of the supervisor; empty after it has exited.
    fn read_response(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.responses.read_line(&mut line) {
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(format!(
                "cannot read from the PostgreSQL supervisor: {error}"
            )),
        }
    }

    fn failure(&self, command: &str, status: &str) -> String {
        let log = self.directory.join("log");
        let mut text = format!("PostgreSQL: `{command}` failed with status `{status}`");
        match std::fs::read(&log) {
            Ok(bytes) => {
                let log = String::from_utf8_lossy(&bytes);
                let lines: Vec<_> = log.lines().collect();
                let tail = &lines[lines.len().saturating_sub(MAX_LOG_LINES)..];
                let _ = write!(text, "; end of the log:\n{}", tail.join("\n"));
            }
            Err(error) => {
                let _ = write!(text, "; cannot read `{}`: {error}", log.display());
            }
        }
        text.push_str("\nhint: on Debian, run `script/test` to install PostgreSQL");
        text
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.commands.take());
        // The supervisor exits after it has removed everything; tests rely on that.
        let _ = self.process.wait();
    }
}

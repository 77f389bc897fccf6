//! A worker: this test binary once more, as a process of its own that can be killed.
//!
//! It is told what to do by one variable, writes its history to its output, and ends by itself when
//! its input does: a test that is killed leaves none behind.

use std::io::{BufRead, BufReader, Read as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::history::{Line, What};

/// What a worker is told.
const VARIABLE: &str = "ONWARD_WORKER";

/// The test that is the worker, as the harness names it.
const TEST: &str = "worker::works_for_another_test";

/// What a worker has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders {
    /// Its name, which its agents' names begin with.
    pub name: String,
    /// Where its database is.
    pub database: String,
    pub seed: u64,
    pub agents: u64,
    /// What else: each test has its own words for that.
    pub task: String,
}

impl Orders {
    /// Those of this process; none where it is no worker.
    pub fn given() -> Option<Self> {
        let words: Vec<String> = serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()?;
        let [name, database, seed, agents, task] = words.try_into().ok()?;
        Some(Self {
            name,
            database,
            seed: seed.parse().ok()?,
            agents: agents.parse().ok()?,
            task,
        })
    }

    fn written(&self) -> String {
        let (seed, agents) = (self.seed.to_string(), self.agents.to_string());
        serde_json::json!([self.name, self.database, seed, agents, self.task]).to_string()
    }
}

/// A worker that runs.
pub struct Process {
    child: Child,
    /// Its input, open for as long as somebody wants it to live.
    _input: Option<ChildStdin>,
    lines: Receiver<Line>,
    read: Vec<Line>,
    complaints: Option<JoinHandle<String>>,
}

/// How a worker ended, and all that it wrote.
pub struct Ended {
    pub status: ExitStatus,
    pub lines: Vec<Line>,
    pub complaints: String,
}

impl Process {
    pub fn start(orders: &Orders) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        Self::start_through(Command::new(program), orders)
    }

    /// Starts a worker through another program, which ends up as this one.
    pub fn start_through(mut command: Command, orders: &Orders) -> Self {
        command
            .args([
                TEST,
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(VARIABLE, orders.written())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .expect("this program can be started once more");
        let _input = child.stdin.take();
        let output = child.stdout.take().expect("its output is a pipe");
        let mut errors = child.stderr.take().expect("its errors are a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for text in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(line) = Line::read(&text) {
                    drop(sender.send(line));
                }
            }
        });
        let complaints = std::thread::spawn(move || {
            let mut text = Vec::new();
            // A pipe that breaks was a pipe until then.
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let complaints = Some(complaints);
        let read = Vec::new();
        Self {
            child,
            _input,
            lines,
            read,
            complaints,
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until so many answers were written, but no longer than this. False where there were
    /// fewer by then, or the worker has ended.
    pub fn wait_for(&mut self, answers: usize, limit: Duration) -> bool {
        self.wait_until(limit, |lines| {
            let told = |line: &&Line| matches!(line.what, What::Told(_));
            lines.iter().filter(told).count() >= answers
        })
    }

    /// Waits until the lines so far are such, but no longer than this.
    pub fn wait_until(&mut self, limit: Duration, such: impl Fn(&[Line]) -> bool) -> bool {
        let ends = Instant::now() + limit;
        while !such(&self.read) {
            let left = ends.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.read.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
        true
    }

    /// What it wrote so far.
    pub fn so_far(&mut self) -> &[Line] {
        self.read.extend(self.lines.try_iter());
        &self.read
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Kills it with SIGKILL, unless it has ended already.
    pub fn kill(mut self) -> Ended {
        // An error is that it has ended, and been waited for, already.
        let _ = self.child.kill();
        self.gather()
    }

    /// Waits until it ends by itself; one that does not is killed.
    pub fn end(mut self, limit: Duration) -> Ended {
        let ends = Instant::now() + limit;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > ends {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.gather()
    }

    fn gather(mut self) -> Ended {
        let mut lines = std::mem::take(&mut self.read);
        // Ends with the pipe, which ends with the process: nothing that it wrote is missed.
        lines.extend(self.lines.iter());
        let status = self.child.wait().expect("it can be waited for");
        let complaints = self.complaints.take().and_then(|thread| thread.join().ok());
        let complaints = complaints.unwrap_or_default();
        Ended {
            status,
            lines,
            complaints,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// For a worker: ends this process as soon as its input does.
pub fn end_with_input() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
}

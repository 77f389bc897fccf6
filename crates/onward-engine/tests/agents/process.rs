//! Worker processes: this test binary started a second time, as a process that can be killed.
//!
//! A worker reads its configuration from an environment variable and writes its history to stdout.
//! It exits when its stdin closes, so the workers of a killed test exit.

use std::io::{BufRead, BufReader, Read as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onward_engine::engine::Settings;
use onward_engine::{Address, Engine};

use crate::agents::history::Record;

/// Environment variable with the worker's configuration.
const VARIABLE: &str = "ONWARD_WORKER";

/// Name of the test function that runs as the worker.
const TEST: &str = "worker::runs_as_a_worker_process";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerConfig {
    /// Prefix of the names of its agents.
    pub name: String,
    /// Address of the database.
    pub database: String,
    pub seed: u64,
    pub agents: u64,
    /// Instructions in a format of the test.
    pub task: String,
}

impl WorkerConfig {
    /// The configuration of this process; `None` if it is not a worker.
    pub fn from_env() -> Option<Self> {
        let fields: Vec<String> = serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()?;
        let [name, database, seed, agents, task] = fields.try_into().ok()?;
        Some(Self {
            name,
            database,
            seed: seed.parse().ok()?,
            agents: agents.parse().ok()?,
            task,
        })
    }

    /// Opens the database of a worker.
    pub async fn open(&self, settings: Settings) -> Engine {
        let address = Address::parse(&self.database).unwrap();
        let engine = Engine::open(&address, settings).await;
        engine.unwrap_or_else(|error| panic!("{error} ({})", error.hint()))
    }

    fn to_json(&self) -> String {
        let (seed, agents) = (self.seed.to_string(), self.agents.to_string());
        serde_json::json!([self.name, self.database, seed, agents, self.task]).to_string()
    }
}

/// A running worker.
pub struct Process {
    child: Child,
    /// Keeps the worker's stdin open.
    _stdin: Option<ChildStdin>,
    records: Receiver<Record>,
    received: Vec<Record>,
    stderr_reader: Option<JoinHandle<String>>,
}

/// Exit status and output of a worker.
pub struct WorkerOutput {
    pub status: ExitStatus,
    pub records: Vec<Record>,
    pub stderr: String,
}

impl Process {
    pub fn start(config: &WorkerConfig) -> Self {
        let program = std::env::current_exe().expect("path of the test binary is available");
        Self::start_with(Command::new(program), config)
    }

    /// Starts a worker with a command that executes this test binary.
    pub fn start_with(mut command: Command, config: &WorkerConfig) -> Self {
        command
            .args([
                TEST,
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(VARIABLE, config.to_json())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("worker was started");
        let _stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut stderr = child.stderr.take().expect("stderr is piped");
        let (sender, records) = channel();
        std::thread::spawn(move || {
            for text in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(record) = Record::parse(&text) {
                    drop(sender.send(record));
                }
            }
        });
        let stderr_reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            // If the pipe breaks, the text so far is enough.
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            child,
            _stdin,
            records,
            received: Vec::new(),
            stderr_reader: Some(stderr_reader),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for this number of responses. Returns false on timeout or if the worker has exited.
    pub fn wait_for_responses(&mut self, responses: usize, limit: Duration) -> bool {
        self.wait_until(limit, |records| {
            let count = records.iter().filter(|record| record.is_response()).count();
            count >= responses
        })
    }

    /// Waits until the predicate holds for all received records. Returns false on timeout or if the
    /// worker has exited.
    pub fn wait_until(&mut self, limit: Duration, predicate: impl Fn(&[Record]) -> bool) -> bool {
        let deadline = Instant::now() + limit;
        while !predicate(&self.received) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.records.recv_timeout(left) {
                Ok(record) => self.received.push(record),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
        true
    }

    /// All records so far.
    pub fn records(&mut self) -> &[Record] {
        self.received.extend(self.records.try_iter());
        &self.received
    }

    pub fn has_exited(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Sends SIGKILL.
    pub fn kill(mut self) -> WorkerOutput {
        // Fails only if the worker has already exited.
        let _ = self.child.kill();
        self.collect_output()
    }

    /// Waits for the worker to exit, and kills it after the limit.
    pub fn wait_for_exit(mut self, limit: Duration) -> WorkerOutput {
        let deadline = Instant::now() + limit;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.collect_output()
    }

    fn collect_output(mut self) -> WorkerOutput {
        let mut records = std::mem::take(&mut self.received);
        // The channel closes when the pipe does, so no record is missed.
        records.extend(self.records.iter());
        let status = self.child.wait().expect("worker exit status is available");
        let reader = self.stderr_reader.take();
        let stderr = reader.and_then(|thread| thread.join().ok());
        let stderr = stderr.unwrap_or_default();
        WorkerOutput {
            status,
            records,
            stderr,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `work` if this process is a worker. The process exits when its stdin closes.
pub fn run_as_worker(work: impl AsyncFnOnce(WorkerConfig)) {
    let Some(config) = WorkerConfig::from_env() else {
        return;
    };
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(work(config));
}

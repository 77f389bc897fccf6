//! One server with its own directory, kept by a process beside the test: `keeper.sh`.
//!
//! The keeper lives as long as the pipe to it is open. Closing it is the only way in which a
//! server ends, so that dropping it, a panic and a `kill -9` of the test are the same to it.
//! The standard library's pipes are not inherited, so no program that a test starts holds it.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::programs::{Programs, as_server};

/// Below what systems give to outgoing connections: while a server is stopped, nobody who tries
/// to reach it, or anything else, is given its port by chance.
const PORTS: std::ops::Range<u16> = 15_000..32_000;

/// How often another port is tried when somebody was faster.
const ATTEMPTS: usize = 5;

const LINES_OF_LOG: usize = 20;

#[derive(Debug)]
pub(crate) struct Server {
    keeper: Mutex<Keeper>,
    port: u16,
}

impl Server {
    /// A new cluster, whose server accepts connections. Where that fails, nothing is left of it.
    pub(crate) fn start(programs: Programs) -> Result<Self, String> {
        let mut keeper = Keeper::start(&programs)?;
        keeper.order("create")?;
        let mut attempt = 1;
        loop {
            let port = free_port()?;
            match keeper.order(&format!("start {port}")) {
                Ok(()) => {
                    let keeper = Mutex::new(keeper);
                    return Ok(Self { keeper, port });
                }
                Err(error) if attempt == ATTEMPTS || !error.contains("could not bind") => {
                    return Err(error);
                }
                Err(_) => attempt += 1,
            }
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn stop(&self) -> Result<(), String> {
        self.order("stop")
    }

    pub(crate) fn restart(&self) -> Result<(), String> {
        self.order("stop")?;
        self.order(&format!("start {}", self.port))
    }

    fn order(&self, order: &str) -> Result<(), String> {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        keeper.order(order)
    }
}

/// A port that nobody listens on at this moment.
fn free_port() -> Result<u16, String> {
    // Tests that start at the same time begin at different places.
    let chance = RandomState::new().hash_one(0);
    let begin = u16::try_from(chance % PORTS.len() as u64).unwrap_or_default();
    let (before, after) = (
        PORTS.start..PORTS.start + begin,
        PORTS.start + begin..PORTS.end,
    );
    after
        .chain(before)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| format!("no port of {PORTS:?} is free"))
}

#[derive(Debug)]
struct Keeper {
    process: Child,
    /// None when it has been told to end.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    directory: PathBuf,
}

impl Keeper {
    fn start(programs: &Programs) -> Result<Self, String> {
        let mut command = Command::new("sh");
        command
            .args(["-c", include_str!("keeper.sh"), "keeper"])
            .arg(programs.directory())
            .arg(match std::env::var_os("ONWARD_TESTBED_AS_SHIPPED") {
                Some(_) => "shipped",
                None => "little",
            })
            // What the server says about a port is read, in English.
            .env("LC_ALL", "C")
            // Where the test stands may be closed to the user who runs the server.
            .current_dir("/")
            // What a terminal sends to the test must not reach the one who cleans up after it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // An open stderr would make whoever reads that of the test wait for the keeper.
            .stderr(Stdio::null());
        as_server(&mut command)?;
        let mut process = command
            .spawn()
            .map_err(|error| format!("the keeper of a PostgreSQL does not start: {error}"))?;
        let orders = process.stdin.take();
        let answers = process.stdout.take().ok_or("the keeper has no stdout")?;
        let mut keeper = Self {
            process,
            orders,
            answers: BufReader::new(answers),
            directory: PathBuf::new(),
        };
        let directory = keeper.answer()?;
        if directory.is_empty() {
            return Err("no temporary directory can be made for a PostgreSQL".to_owned());
        }
        keeper.directory = PathBuf::from(directory);
        Ok(keeper)
    }

    /// Has something done, and waits until it is. The error shows the end of the log.
    fn order(&mut self, order: &str) -> Result<(), String> {
        // A keeper that is gone does not answer either, and that is what is looked at.
        if let Some(orders) = &mut self.orders {
            let _ = writeln!(orders, "{order}");
        }
        match self.answer()?.as_str() {
            "0" => Ok(()),
            status => Err(self.failure(order, status)),
        }
    }

    /// The next line of the keeper; empty when it has ended.
    fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(format!(
                "the keeper of a PostgreSQL does not answer: {error}"
            )),
        }
    }

    fn failure(&self, order: &str, status: &str) -> String {
        let log = self.directory.join("log");
        let mut text = format!("PostgreSQL failed at `{order}` (status `{status}`)");
        match std::fs::read(&log) {
            Ok(bytes) => {
                let log = String::from_utf8_lossy(&bytes);
                let lines: Vec<_> = log.lines().collect();
                let tail = &lines[lines.len().saturating_sub(LINES_OF_LOG)..];
                let _ = write!(text, ", whose log ends with\n{}", tail.join("\n"));
            }
            Err(error) => {
                let _ = write!(text, ", and `{}` cannot be read: {error}", log.display());
            }
        }
        text.push_str("\nhint: `script/test` installs a PostgreSQL that works, on Debian");
        text
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.orders.take());
        // It ends when everything is gone, and a test may rely on that.
        let _ = self.process.wait();
    }
}

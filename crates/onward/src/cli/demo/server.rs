//! The demo's server: `onward serve` on a free port, with its own environment and directory, so
//! that the user's configuration has no effect.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::cli::temporary::TempDir;
use crate::failure::{Failure, Result};

/// The interval of checks whether the server is running.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// A running server with its temporary directory.
pub(super) struct Server {
    pub(super) url: String,
    child: Child,
    directory: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Every acknowledged write is on disk, so killing the server loses nothing.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Server {
    /// Starts the server, and waits until it is ready.
    pub(super) fn start(keep: bool, is_verbose: bool) -> Result<Self> {
        let mut directory = TempDir::create("demo")?;
        directory.keep = keep;
        let mut serve = onward(&directory.path)?;
        serve
            .args(["serve", "--bind", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        // Ctrl-C reaches only the demo, which then kills the server.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut serve, 0);
        if !is_verbose {
            serve.stderr(Stdio::null());
        }
        let mut child = serve.spawn().map_err(|error| failure(&error.to_string()))?;
        let mut ready = String::new();
        if let Some(output) = child.stdout.take() {
            let read = BufReader::new(output).read_line(&mut ready);
            read.map_err(|error| failure(&error.to_string()))?;
        }
        let server = |url: &str| Self {
            url: format!("http://{url}"),
            child,
            directory,
        };
        match ready.trim().rsplit_once("http://") {
            Some((_, address)) => Ok(server(address)),
            None => {
                drop(server(""));
                Err(failure("it exited immediately"))
            }
        }
    }

    /// A command of this program, with the database of the demo.
    pub(super) fn onward(&self) -> Result<Command> {
        onward(&self.directory.path)
    }

    /// The working directory of the demo's agent.
    pub(super) fn directory(&self) -> &Path {
        &self.directory.path
    }

    /// The path of the database, if it is kept.
    pub(super) fn kept_database(&self) -> Option<PathBuf> {
        self.directory.keep.then(|| database(&self.directory.path))
    }

    /// Waits until the server exits, which is a failure.
    pub(super) async fn exited(&mut self) -> Failure {
        loop {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return failure("it exited");
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }
}

fn database(directory: &Path) -> PathBuf {
    directory.join("onward.db")
}

/// A command of this program with the database in a directory, isolated from the user's
/// configuration.
fn onward(directory: &Path) -> Result<Command> {
    let program = std::env::current_exe().map_err(|error| failure(&error.to_string()))?;
    let mut command = Command::new(program);
    command.env_clear().current_dir(directory);
    for kept in ["PATH", "TMPDIR", "TEMP", "USER", "LANG", "SystemRoot"] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    // A repository around the temporary directory must not count as the working tree of the agent.
    if let Some(parent) = directory.parent() {
        command.env("GIT_CEILING_DIRECTORIES", parent);
    }
    command
        .env("HOME", directory)
        .arg("--database")
        .arg(database(directory));
    Ok(command)
}

fn failure(reason: &str) -> Failure {
    Failure::failed(
        format!("cannot run the demo's server: {reason}"),
        "see the log of the server with `onward -v demo`",
    )
}

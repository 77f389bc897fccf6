//! The server of the demo: this program's own `serve` on a free port, in an environment of its own, so
//! that nothing that the person has configured is touched or matters.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::failure::{Failure, Result};

/// How often it is asked whether the server still runs.
const OFTEN: Duration = Duration::from_millis(500);

/// A running server, with its folder.
pub(super) struct Server {
    /// Where it listens.
    pub(super) url: String,
    child: Child,
    folder: Folder,
}

/// A folder that is gone with the demo, unless it is kept.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed lies where the system keeps what is temporary.
            drop(std::fs::remove_dir_all(&self.path));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What was answered is on the disk: nothing is lost by this.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Server {
    /// Starts it, and waits until it listens.
    pub(super) fn start(keep: bool, is_verbose: bool) -> Result<Self> {
        let folder = Folder::make(keep)?;
        let mut serve = onward(&folder.path)?;
        serve
            .args(["serve", "--bind", "127.0.0.1:0"])
            // Ctrl-C is for the demo, which then ends its server.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if !is_verbose {
            serve.stderr(Stdio::null());
        }
        let mut child = serve.spawn().map_err(|why| broken(&why.to_string()))?;
        let mut ready = String::new();
        if let Some(output) = child.stdout.take() {
            let read = BufReader::new(output).read_line(&mut ready);
            read.map_err(|why| broken(&why.to_string()))?;
        }
        let server = |url: &str| Self {
            url: format!("http://{url}"),
            child,
            folder,
        };
        match ready.trim().rsplit_once("http://") {
            Some((_, address)) => Ok(server(address)),
            None => {
                drop(server(""));
                Err(broken("it ended at once"))
            }
        }
    }

    /// This program, on the database of the demo.
    pub(super) fn onward(&self) -> Result<Command> {
        onward(&self.folder.path)
    }

    /// Where the demo's agent works.
    pub(super) fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// The database, where it is kept.
    pub(super) fn kept(&self) -> Option<PathBuf> {
        self.folder.keep.then(|| database(&self.folder.path))
    }

    /// Waits until it has ended, which it should not.
    pub(super) async fn ended(&mut self) -> Failure {
        loop {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return broken("it ended by itself");
            }
            tokio::time::sleep(OFTEN).await;
        }
    }
}

impl Folder {
    fn make(keep: bool) -> Result<Self> {
        let name = format!("onward-demo-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|why| {
            Failure::failed(
                format!("the folder `{}` cannot be made: {why}", path.display()),
                "name another place for what is temporary with `TMPDIR`",
            )
        })?;
        Ok(Self { path, keep })
    }
}

fn database(folder: &Path) -> PathBuf {
    folder.join("onward.db")
}

/// This program with the database in this folder, and nothing of the person's configuration.
fn onward(folder: &Path) -> Result<Command> {
    let program = std::env::current_exe().map_err(|why| broken(&why.to_string()))?;
    let mut command = Command::new(program);
    command.env_clear().current_dir(folder);
    for kept in ["PATH", "TMPDIR", "USER", "LANG"] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    // Where it lies says nothing about what the agent changes.
    if let Some(above) = folder.parent() {
        command.env("GIT_CEILING_DIRECTORIES", above);
    }
    command
        .env("HOME", folder)
        .arg("--database")
        .arg(database(folder));
    Ok(command)
}

fn broken(why: &str) -> Failure {
    Failure::failed(
        format!("the server of the demo cannot be used: {why}"),
        "`onward -v demo` shows what it says",
    )
}

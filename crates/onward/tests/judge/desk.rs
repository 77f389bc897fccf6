//! How a test runs the command: on the fixtures, or on files of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One finished run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
            code: output.status.code(),
        }
    }
}

/// What `--json` says about a turn: its id, how many steps it has, where it stalled.
pub(crate) type Row = (String, u64, Option<u64>);

impl Run {
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.values()
            .iter()
            .map(|row| {
                (
                    row["id"].as_str().expect("an id").to_owned(),
                    row["steps"].as_u64().expect("a number of steps"),
                    row["stalled_at"].as_u64(),
                )
            })
            .collect()
    }

    pub(crate) fn values(&self) -> Vec<serde_json::Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line is JSON"))
            .collect()
    }
}

pub(crate) fn row(id: &str, steps: u64, stalled_at: Option<u64>) -> Row {
    (id.to_owned(), steps, stalled_at)
}

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/transcript")
}

/// The command, in the folder of the fixtures, so that ids are short.
pub(crate) fn judge(args: &[&str]) -> Run {
    command(args).output().expect("the binary starts").into()
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
    command
        .args(["transcript", "judge"])
        .args(args)
        .current_dir(fixtures())
        .env_remove("NO_COLOR");
    command
}

/// A folder for one test, gone when the test ends.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("judge-{test}"));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        Self(folder)
    }

    /// Writes a file, and says where it is.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a file can be written");
        path.to_str().expect("the path is UTF-8").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays behind is in the build's own folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The text of a fixture.
pub(crate) fn fixture(name: &str) -> String {
    std::fs::read_to_string(fixtures().join(name)).expect("the fixture is there")
}

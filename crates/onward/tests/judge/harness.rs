//! Runs the command on the fixtures, or on files of a test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The result of a run.
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

/// A turn in the JSON output: id, number of steps, and the step of the stall.
pub(crate) type Row = (String, u64, Option<u64>);

impl Run {
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.values()
            .iter()
            .map(|row| {
                (
                    row["id"].as_str().expect("id is a string").to_owned(),
                    row["steps"].as_u64().expect("steps is a number"),
                    row["stalled_at"].as_u64(),
                )
            })
            .collect()
    }

    pub(crate) fn values(&self) -> Vec<serde_json::Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON line"))
            .collect()
    }
}

pub(crate) fn row(id: &str, steps: u64, stalled_at: Option<u64>) -> Row {
    (id.to_owned(), steps, stalled_at)
}

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/transcript")
}

/// Runs the command in the fixture directory, so that ids are short.
pub(crate) fn judge(args: &[&str]) -> Run {
    command(args).output().expect("binary started").into()
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

/// A directory for one test, removed at its end.
pub(crate) struct TestDir(PathBuf);

impl TestDir {
    pub(crate) fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("judge-{test}"));
        std::fs::create_dir_all(&path).expect("directory created");
        Self(path)
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("file written");
        path.to_str().expect("UTF-8 path").to_owned()
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        // Anything left over is in the target directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The text of a fixture.
pub(crate) fn fixture(name: &str) -> String {
    std::fs::read_to_string(fixtures().join(name)).expect("fixture exists")
}

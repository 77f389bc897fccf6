//! Runs the command on the fixtures, or on files of a test.

use std::path::{Path, PathBuf};
use std::process::Command;

use onward_testbed::{Run, TestDir};

/// A turn in the JSON output: id, number of steps, and the step of the stall.
pub(crate) type Row = (String, u64, Option<u64>);

/// The turns in the JSON output.
pub(crate) fn rows(run: &Run) -> Vec<Row> {
    run.json_lines()
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

/// Writes a file and returns its path.
pub(crate) fn file(dir: &TestDir, name: &str, bytes: impl AsRef<[u8]>) -> String {
    dir.write(name, bytes).display().to_string()
}

/// The text of a fixture.
pub(crate) fn fixture(name: &str) -> String {
    std::fs::read_to_string(fixtures().join(name)).expect("fixture exists")
}

//! How a test runs the commands, and writes a log.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// One finished run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

/// A folder for one test, gone when the test ends.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("repair-{test}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        Self(folder)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), bytes).expect("a file can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).expect("the file is there")
    }

    /// What is in the folder, by name.
    pub(crate) fn names(&self) -> Vec<String> {
        let folder = std::fs::read_dir(&self.0).expect("the folder is there");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.expect("an entry").file_name();
            name.into_string().expect("UTF-8")
        };
        let mut names: Vec<String> = folder.map(name).collect();
        names.sort();
        names
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_onward"))
            .arg("transcript")
            .args(args)
            .current_dir(&self.0)
            .output()
            .expect("the binary starts");
        Run {
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
            code: output.status.code(),
        }
    }

    /// What `check` finds: the line, and what it is.
    pub(crate) fn found(&self, name: &str) -> Vec<(u64, String)> {
        let run = self.run(&["check", name, "--json"]);
        let rows: Vec<Value> = values(&run.stdout);
        let wrong = rows.iter().any(|row| row["wrong"] == true);
        assert_eq!(run.code, Some(if wrong { 10 } else { 0 }), "{run:?}");
        rows.iter()
            .map(|row| {
                let place = row["line"].as_u64().or(row["row"].as_u64());
                let what = row["what"].as_str().expect("a word").to_owned();
                (place.expect("a place"), what)
            })
            .collect()
    }

    /// Repairs a log in place, and gives back its lines.
    pub(crate) fn repaired(&self, lines: &[Value]) -> Vec<Value> {
        self.write("a.jsonl", log(lines));
        let run = self.run(&["repair", "--in-place", "a.jsonl"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(self.found("a.jsonl"), []);
        values(&self.read("a.jsonl"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays behind is in the build's own folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn values(text: &str) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).expect("a line is JSON");
    text.lines().map(line).collect()
}

pub(crate) fn log(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A line of Claude Code, long ago.
pub(crate) fn line(uuid: &str, parent: &str, kind: &str, message: Value) -> Value {
    json!({
        "parentUuid": if parent.is_empty() { Value::Null } else { parent.into() },
        "isSidechain": false, "userType": "external", "cwd": "/pier", "sessionId": "5e55",
        "version": "2.1.0", "type": kind, "message": message, "uuid": uuid,
        "timestamp": "2026-03-01T10:00:00.000Z",
    })
}

pub(crate) fn says(uuid: &str, parent: &str, text: &str) -> Value {
    line(
        uuid,
        parent,
        "user",
        json!({"role": "user", "content": text}),
    )
}

pub(crate) fn calls(uuid: &str, parent: &str, message: &str, ids: &[&str]) -> Value {
    let block = |id: &&str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "make"}});
    let content: Vec<Value> = ids.iter().map(block).collect();
    let message =
        json!({"id": message, "type": "message", "role": "assistant", "content": content});
    line(uuid, parent, "assistant", message)
}

pub(crate) fn answers(uuid: &str, parent: &str, text: &str) -> Value {
    let message =
        json!({"id": uuid, "role": "assistant", "content": [{"type": "text", "text": text}]});
    line(uuid, parent, "assistant", message)
}

pub(crate) fn result(uuid: &str, parent: &str, id: &str, content: &str) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
    line(
        uuid,
        parent,
        "user",
        json!({"role": "user", "content": [block]}),
    )
}

/// The ids of the results that a line holds.
pub(crate) fn results(line: &Value) -> Vec<&str> {
    let blocks = line["message"]["content"].as_array().into_iter().flatten();
    blocks
        .filter_map(|block| block["tool_use_id"].as_str())
        .collect()
}

/// The lines from the last one up to the first, by their parents.
pub(crate) fn way_up(lines: &[Value]) -> Vec<&Value> {
    let mut way: Vec<&Value> = Vec::new();
    let mut next = lines.last();
    while let Some(line) = next {
        way.push(line);
        assert!(way.len() <= lines.len(), "a circle of parents");
        next = lines
            .iter()
            .find(|other| other["uuid"] == line["parentUuid"]);
    }
    way
}

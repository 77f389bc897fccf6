//! Runs the commands, and writes log lines.

use std::ops::Deref;
use std::process::Command;

use onward_testbed::{Run, TestDir};
use serde_json::{Value, json};

/// A directory with saved sessions.
pub(crate) struct Harness(TestDir);

impl Deref for Harness {
    type Target = TestDir;

    fn deref(&self) -> &TestDir {
        &self.0
    }
}

impl Harness {
    pub(crate) fn new(test: &str) -> Self {
        Self(TestDir::new(test))
    }

    /// The sorted file names in the directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("directory read");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.expect("directory entry").file_name();
            name.into_string().expect("UTF-8")
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_onward"))
            .arg("transcript")
            .args(args)
            .current_dir(self.path())
            .output();
        output.expect("binary started").into()
    }

    /// The findings of `check`: the line or row, and the kind.
    pub(crate) fn findings(&self, name: &str) -> Vec<(u64, String)> {
        let run = self.run(&["check", name, "--json"]);
        let rows = run.json_lines();
        let has_errors = rows.iter().any(|row| row["wrong"] == true);
        assert_eq!(run.code, Some(if has_errors { 10 } else { 0 }), "{run:?}");
        rows.iter()
            .map(|row| {
                let location = row["line"].as_u64().or(row["row"].as_u64());
                let kind = row["what"].as_str().expect("what is a string").to_owned();
                (location.expect("line or row"), kind)
            })
            .collect()
    }

    /// Repairs a log in place, and returns its lines.
    pub(crate) fn repaired(&self, lines: &[Value]) -> Vec<Value> {
        self.write("a.jsonl", log(lines));
        let run = self.run(&["repair", "--in-place", "a.jsonl"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(self.findings("a.jsonl"), []);
        parse_lines(&self.read("a.jsonl"))
    }
}

pub(crate) fn parse_lines(text: &str) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).expect("JSON line");
    text.lines().map(line).collect()
}

pub(crate) fn log(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A Claude Code line with an old timestamp.
pub(crate) fn line(uuid: &str, parent: &str, kind: &str, message: Value) -> Value {
    json!({
        "parentUuid": if parent.is_empty() { Value::Null } else { parent.into() },
        "isSidechain": false, "userType": "external", "cwd": "/pier", "sessionId": "5e55",
        "version": "2.1.0", "type": kind, "message": message, "uuid": uuid,
        "timestamp": "2026-03-01T10:00:00.000Z",
    })
}

pub(crate) fn user_line(uuid: &str, parent: &str, text: &str) -> Value {
    line(
        uuid,
        parent,
        "user",
        json!({"role": "user", "content": text}),
    )
}

pub(crate) fn call_line(uuid: &str, parent: &str, message: &str, ids: &[&str]) -> Value {
    let block = |id: &&str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "make"}});
    let content: Vec<Value> = ids.iter().map(block).collect();
    let message =
        json!({"id": message, "type": "message", "role": "assistant", "content": content});
    line(uuid, parent, "assistant", message)
}

pub(crate) fn text_line(uuid: &str, parent: &str, text: &str) -> Value {
    let message =
        json!({"id": uuid, "role": "assistant", "content": [{"type": "text", "text": text}]});
    line(uuid, parent, "assistant", message)
}

pub(crate) fn result_line(uuid: &str, parent: &str, id: &str, content: &str) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
    line(
        uuid,
        parent,
        "user",
        json!({"role": "user", "content": [block]}),
    )
}

/// The call ids of the results in a line.
pub(crate) fn result_ids(line: &Value) -> Vec<&str> {
    let blocks = line["message"]["content"].as_array().into_iter().flatten();
    blocks
        .filter_map(|block| block["tool_use_id"].as_str())
        .collect()
}

/// The lines from the last one to the root, by their parents.
pub(crate) fn path_to_root(lines: &[Value]) -> Vec<&Value> {
    let mut path: Vec<&Value> = Vec::new();
    let mut next = lines.last();
    while let Some(line) = next {
        path.push(line);
        assert!(path.len() <= lines.len(), "cycle of parents");
        next = lines
            .iter()
            .find(|other| other["uuid"] == line["parentUuid"]);
    }
    path
}

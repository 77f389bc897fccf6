//! A client over standard input and output: it writes a line, and waits for the line that answers.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

/// Somebody who can be asked.
pub(crate) trait Ask {
    /// Calls a tool; what it answers must be no refusal.
    fn call(&mut self, tool: &str, arguments: Value) -> Value;
}

/// What a tool said, out of an answer.
pub(crate) fn said(mut answer: Value) -> Value {
    let said = answer["result"]["structuredContent"].take();
    assert!(said.is_object(), "this is no answer of a tool: {answer}");
    said
}

/// A running `onward mcp`.
pub(crate) struct Agent {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    last_id: u64,
}

impl Agent {
    pub(crate) fn start(file: &Path) -> Self {
        let mut command = crate::onward(file);
        let mut child = command
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut agent = Self {
            input: child.stdin.take().expect("its input"),
            output: BufReader::new(child.stdout.take().expect("its output")),
            child,
            line: Vec::new(),
            last_id: 0,
        };
        let client = json!({ "name": "bench", "version": "0" });
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client,
        });
        agent.ask("initialize", &hello);
        agent.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn write(&mut self, message: &Value) {
        self.line.clear();
        serde_json::to_writer(&mut self.line, message).expect("a line");
        self.line.push(b'\n');
        self.input.write_all(&self.line).expect("it takes a line");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            self.line.clear();
            let read = self.output.read_until(b'\n', &mut self.line);
            assert!(read.expect("a line") > 0, "the server ended");
            let answer: Value = serde_json::from_slice(&self.line).expect("a message");
            if answer["id"] == id {
                return answer;
            }
        }
    }
}

impl Ask for Agent {
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        said(self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        ))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It would end by itself once its input is closed, which comes after this.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

//! A client of our own, which can also misbehave: it writes any line, and shows every line that
//! comes back.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::place::Place;

/// Longer than anything takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which way of speaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2025-11-25: `initialize` first, then short requests.
    Handshake,
    /// 2026-07-28: every request brings everything along.
    Stateless,
}

pub(crate) const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

/// A running `onward mcp`, and the way to it.
pub(crate) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
    era: Era,
    capabilities: Value,
    last_id: u64,
    /// What came without having been asked for.
    pub(crate) notes: Vec<Value>,
}

/// What a tool answered.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) error: Value,
}

impl Agent {
    pub(crate) fn start(place: &Place, era: Era) -> Self {
        Self::with(place, era, &[], json!({}))
    }

    /// One with other arguments, and other capabilities of its own.
    pub(crate) fn with(place: &Place, era: Era, args: &[&str], capabilities: Value) -> Self {
        let mut command = place.onward();
        command.arg("mcp").args(args);
        Self::of(&mut command, era, capabilities)
    }

    /// Whatever the command is.
    pub(crate) fn of(command: &mut std::process::Command, era: Era, capabilities: Value) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let output = child.stdout.take().expect("it has an output");
        let (said, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line.expect("a line is UTF-8");
                let message = serde_json::from_str(&line);
                let message = message.unwrap_or_else(|_| panic!("this is no message: {line}"));
                if said.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let mut agent = Self {
            child,
            input,
            lines,
            era,
            capabilities,
            last_id: 0,
            notes: Vec::new(),
        };
        if era == Era::Handshake {
            agent.shake_hands();
        }
        agent
    }

    fn shake_hands(&mut self) {
        let answer = self.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": self.capabilities.clone(),
                "clientInfo": { "name": "test", "version": "0" },
            }),
        );
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// Writes a line, whatever it is.
    pub(crate) fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(line).expect("it takes a line");
        input.write_all(b"\n").expect("it takes a line");
        input.flush().expect("it takes a line");
    }

    /// Writes what is not even a line.
    pub(crate) fn write_without_end(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes).expect("it takes bytes");
        input.flush().expect("it takes bytes");
    }

    pub(crate) fn say(&mut self, message: &Value) {
        self.write(message.to_string().as_bytes());
    }

    /// The next line, whatever it is.
    pub(crate) fn hear(&mut self) -> Value {
        self.lines
            .recv_timeout(PATIENCE)
            .expect("a line comes back")
    }

    /// Everything that still comes before it ends.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        self.lines.iter().collect()
    }

    /// Sends a request, and does not wait.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let mut params = params;
        if self.era == Era::Stateless
            && let Value::Object(params) = &mut params
        {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            let about = |name: &str| format!("io.modelcontextprotocol/{name}");
            meta[about("protocolVersion")] = "2026-07-28".into();
            meta[about("clientCapabilities")] = self.capabilities.clone();
            meta[about("clientInfo")] = json!({ "name": "test", "version": "0" });
        }
        let id = self.last_id;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer_to(&mut self, id: u64) -> Value {
        loop {
            let message = self.hear();
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
            self.notes.push(message);
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer_to(id)
    }

    /// Sends a call, and does not wait.
    pub(crate) fn send_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Calls a tool that must do it.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send_call(tool, arguments);
        let answer = self.answer_to(id);
        done(tool, &answer)
    }

    /// Calls a tool that must refuse.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> Refusal {
        let id = self.send_call(tool, arguments);
        let answer = self.answer_to(id);
        refusal(tool, &answer)
    }

    pub(crate) fn tools(&mut self) -> Vec<Map<String, Value>> {
        let answer = self.ask("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().expect("a list");
        tools
            .iter()
            .map(|tool| tool.as_object().expect("an object").clone())
            .collect()
    }

    /// Waits for something that nobody asked for.
    pub(crate) fn note(&mut self, method: &str) -> Value {
        loop {
            let kept = self.notes.iter().position(|note| note["method"] == method);
            if let Some(place) = kept {
                return self.notes.remove(place);
            }
            let message = self.hear();
            self.notes.push(message);
        }
    }

    /// Closes its end.
    pub(crate) fn hang_up(&mut self) {
        self.input = None;
    }

    /// Closes its end, and waits until the server has ended.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.hang_up();
        self.child.wait().expect("it ends")
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // One that ended by itself is not there to be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What a tool answered, which must be the same as data and as text.
pub(crate) fn done(tool: &str, answer: &Value) -> Value {
    let result = &answer["result"];
    assert_ne!(result["isError"], true, "{tool}: {answer}");
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{tool}: {answer}"));
    let said: Value = serde_json::from_str(text).expect("the text is JSON");
    assert_eq!(said, result["structuredContent"], "{tool}");
    said
}

/// Why a tool refused, which stands in the text alone.
pub(crate) fn refusal(tool: &str, answer: &Value) -> Refusal {
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{tool}: {answer}");
    assert!(
        result.get("structuredContent").is_none(),
        "{tool}: {answer}"
    );
    let text = result["content"][0]["text"].as_str().expect("a text");
    let said: Value = serde_json::from_str(text).expect("the text is JSON");
    let error = said["error"].clone();
    for field in ["code", "message", "hint"] {
        assert!(error[field].is_string(), "{tool}: `{field}` of {error}");
    }
    Refusal {
        code: error["code"].as_str().unwrap_or_default().to_owned(),
        error,
    }
}

impl Refusal {
    /// The places of everything that is wrong with the input.
    pub(crate) fn paths(&self) -> Vec<&str> {
        let issues = self.error["details"]["issues"].as_array();
        let issues = issues.map(Vec::as_slice).unwrap_or_default();
        issues
            .iter()
            .filter_map(|issue| issue["path"].as_str())
            .collect()
    }
}

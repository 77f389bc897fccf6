//! An MCP client over stdio that can also misbehave: it writes any bytes and returns every received
//! message.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc;

use serde_json::{Map, Value, json};

use crate::{Program, TIMEOUT};

/// The two generations of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: starts with `initialize`.
    Handshake,
    /// 2026-07-28: every request is self-contained.
    Stateless,
}

/// Both.
pub const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

/// A running `onward mcp` process and the connection to it.
#[derive(Debug)]
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    messages: mpsc::Receiver<Value>,
    era: Era,
    capabilities: Value,
    last_id: u64,
    /// Received messages that are not the awaited response.
    pub notifications: Vec<Value>,
}

/// The error object of a tool call.
#[derive(Debug)]
pub struct Rejection {
    /// The error code.
    pub code: String,
    /// The whole object.
    pub error: Value,
}

impl Client {
    /// Starts `onward mcp`.
    pub fn start(program: &Program, era: Era) -> Self {
        Self::with_options(program, era, &[], json!({}))
    }

    /// Starts `onward mcp` with further arguments and these client capabilities.
    pub fn with_options(program: &Program, era: Era, args: &[&str], capabilities: Value) -> Self {
        let mut command = program.command(&["mcp"]);
        Self::from_command(command.args(args), era, capabilities)
    }

    /// Starts a command that serves MCP over stdio.
    pub fn from_command(command: &mut Command, era: Era, capabilities: Value) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("binary starts");
        let output = child.stdout.take().expect("stdout is piped");
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line.expect("output is UTF-8");
                let message = serde_json::from_str(&line);
                let message = message.unwrap_or_else(|_| panic!("not a message: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let mut client = Self {
            child,
            input,
            messages,
            era,
            capabilities,
            last_id: 0,
            notifications: Vec::new(),
        };
        if era == Era::Handshake {
            client.initialize();
        }
        client
    }

    fn initialize(&mut self) {
        let response = self.request(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": self.capabilities.clone(),
                "clientInfo": { "name": "test", "version": "0" },
            }),
        );
        assert_eq!(response["result"]["protocolVersion"], "2025-11-25");
        self.send_message(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// Writes the bytes and a newline.
    pub fn write_line(&mut self, line: &[u8]) {
        self.write(line);
        self.write(b"\n");
    }

    /// Writes the bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("input is open");
        input.write_all(bytes).expect("server reads its input");
        input.flush().expect("server reads its input");
    }

    /// Writes a message.
    pub fn send_message(&mut self, message: &Value) {
        self.write_line(message.to_string().as_bytes());
    }

    /// The next message of any kind.
    pub fn receive(&mut self) -> Value {
        self.messages
            .recv_timeout(TIMEOUT)
            .expect("server sends a message")
    }

    /// All messages until the server exits.
    pub fn remaining(&mut self) -> Vec<Value> {
        self.messages.iter().collect()
    }

    /// Sends a request without waiting for the response. Returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let mut params = params;
        if self.era == Era::Stateless
            && let Value::Object(params) = &mut params
        {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            let key = |name: &str| format!("io.modelcontextprotocol/{name}");
            meta[key("protocolVersion")] = "2026-07-28".into();
            meta[key("clientCapabilities")] = self.capabilities.clone();
            meta[key("clientInfo")] = json!({ "name": "test", "version": "0" });
        }
        let id = self.last_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send_message(&request);
        id
    }

    /// Waits for the response to a request. It may have arrived before that of a later request.
    pub fn response_to(&mut self, id: u64) -> Value {
        let is_response = |message: &Value| message.get("method").is_none() && message["id"] == id;
        if let Some(place) = self.notifications.iter().position(is_response) {
            return self.notifications.remove(place);
        }
        loop {
            let message = self.receive();
            if is_response(&message) {
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// Sends a request and waits for the response.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.response_to(id)
    }

    /// Sends a tool call without waiting for the response. Returns its id.
    pub fn send_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Calls a tool that must succeed.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send_call(tool, arguments);
        let response = self.response_to(id);
        success(tool, &response)
    }

    /// Calls a tool that must return an error.
    pub fn call_rejected(&mut self, tool: &str, arguments: Value) -> Rejection {
        let id = self.send_call(tool, arguments);
        let response = self.response_to(id);
        rejection(tool, &response)
    }

    /// Lists the tools.
    pub fn tools(&mut self) -> Vec<Map<String, Value>> {
        let response = self.request("tools/list", json!({}));
        let tools = response["result"]["tools"].as_array().expect("tool list");
        tools
            .iter()
            .map(|tool| tool.as_object().expect("tool is an object").clone())
            .collect()
    }

    /// Waits for a notification or request from the server.
    pub fn notification(&mut self, method: &str) -> Value {
        loop {
            let mut received = self.notifications.iter();
            if let Some(index) = received.position(|message| message["method"] == method) {
                return self.notifications.remove(index);
            }
            let message = self.receive();
            self.notifications.push(message);
        }
    }

    /// Closes the input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes the input and waits until the server exits.
    pub fn close(mut self) -> ExitStatus {
        self.close_input();
        self.wait()
    }

    /// Waits until the server exits.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("server exits")
    }

    /// The process id of the server.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The process may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The structured content of a successful call. It must equal the text content.
pub fn success(tool: &str, response: &Value) -> Value {
    let result = &response["result"];
    assert_ne!(result["isError"], true, "{tool}: {response}");
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{tool}: {response}"));
    let content: Value = serde_json::from_str(text).expect("text is JSON");
    assert_eq!(content, result["structuredContent"], "{tool}");
    content
}

/// The error of a failed call, which has only text content.
pub fn rejection(tool: &str, response: &Value) -> Rejection {
    let result = &response["result"];
    assert_eq!(result["isError"], true, "{tool}: {response}");
    assert!(
        result.get("structuredContent").is_none(),
        "{tool}: {response}"
    );
    let text = result["content"][0]["text"].as_str().expect("text content");
    let content: Value = serde_json::from_str(text).expect("text is JSON");
    let error = content["error"].clone();
    for field in ["code", "message", "hint"] {
        assert!(error[field].is_string(), "{tool}: `{field}` of {error}");
    }
    Rejection {
        code: error["code"].as_str().unwrap_or_default().to_owned(),
        error,
    }
}

impl Rejection {
    /// The paths of all issues.
    pub fn paths(&self) -> Vec<&str> {
        let issues = self.error["details"]["issues"].as_array();
        let issues = issues.map(Vec::as_slice).unwrap_or_default();
        issues
            .iter()
            .filter_map(|issue| issue["path"].as_str())
            .collect()
    }
}

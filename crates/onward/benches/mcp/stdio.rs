//! A client over stdio: writes one line and waits for the response line.
//!
//! The testbed's client reads on a second thread. The wake-up of that thread would be part of every
//! measured call.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use onward_testbed::Program;
use serde_json::{Value, json};

/// An MCP client.
pub(crate) trait Client {
    /// Calls a tool and returns its structured result. Panics on an error.
    fn call(&mut self, tool: &str, arguments: Value) -> Value;
}

/// The structured result in a response.
pub(crate) fn structured_result(mut response: Value) -> Value {
    let result = response["result"]["structuredContent"].take();
    assert!(result.is_object(), "not a tool result: {response}");
    result
}

/// A running `onward mcp`.
pub(crate) struct StdioClient {
    _program: Program,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    last_id: u64,
}

impl StdioClient {
    pub(crate) fn start(file: &Path) -> Self {
        let program = crate::onward(file);
        let mut child = program
            .command(&["mcp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("server started");
        let mut client = Self {
            _program: program,
            input: child.stdin.take().expect("stdin is piped"),
            output: BufReader::new(child.stdout.take().expect("stdout is piped")),
            child,
            line: Vec::new(),
            last_id: 0,
        };
        let client_info = json!({ "name": "bench", "version": "0" });
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info,
        });
        client.request("initialize", &params);
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn write(&mut self, message: &Value) {
        self.line.clear();
        serde_json::to_writer(&mut self.line, message).expect("message serialized");
        self.line.push(b'\n');
        self.input.write_all(&self.line).expect("line written");
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            self.line.clear();
            let read = self.output.read_until(b'\n', &mut self.line);
            assert!(read.expect("line read") > 0, "server exited");
            let response: Value = serde_json::from_slice(&self.line).expect("line is JSON");
            if response["id"] == id {
                return response;
            }
        }
    }
}

impl Client for StdioClient {
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        structured_result(self.request(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        ))
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        // The server exits when its stdin is closed, but that happens after this.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

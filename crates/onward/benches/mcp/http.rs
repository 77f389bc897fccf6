//! A client for the stateless HTTP protocol version: one persistent connection, one request at a
//! time.

use std::path::Path;

use onward_testbed::{Connection, Server};
use serde_json::{Value, json};

use crate::stdio::{Client, structured_result};

/// Starts `onward serve` with rate limits effectively disabled.
pub(crate) fn start(file: &Path) -> Server {
    crate::onward(file)
        .with_env("ONWARD_LIMITS__TOKEN_CALLS_PER_SECOND", 1_000_000)
        .with_env("ONWARD_LIMITS__TENANT_CALLS_PER_SECOND", 1_000_000)
        .serve()
}

/// An MCP client on a persistent connection.
pub(crate) struct HttpClient {
    connection: Connection,
    last_id: u64,
}

impl HttpClient {
    pub(crate) fn connect(server: &Server) -> Self {
        Self {
            connection: Connection::open(&server.url),
            last_id: 0,
        }
    }

    /// Sends a request with the metadata that this protocol version requires.
    fn send(&mut self, method: &str, name: Option<&str>, mut params: Value) {
        self.last_id += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let id = self.last_id;
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let name = name.map_or(String::new(), |name| format!("Mcp-Name: {name}\r\n"));
        let headers = format!(
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}"
        );
        self.connection
            .send("POST /mcp", &headers, &body.to_string());
    }

    /// Subscribes to plan changes until the connection is dropped.
    pub(crate) fn subscribe(&mut self) {
        let params = json!({ "notifications": { "resourceSubscriptions": ["onward://plans"] } });
        self.send("subscriptions/listen", None, params);
        let head = self.connection.read_head();
        assert!(head.contains("text/event-stream"), "{head}");
        let mut line = String::new();
        while !line.contains("acknowledged") {
            line.clear();
            self.connection.read_line(&mut line);
        }
    }
}

impl Client for HttpClient {
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send("tools/call", Some(tool), params);
        let (_, body) = self.connection.read_response();
        structured_result(serde_json::from_slice(&body).expect("body is JSON"))
    }
}

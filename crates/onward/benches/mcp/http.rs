//! A client for the stateless HTTP protocol version: one persistent connection, one request at a
//! time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::stdio::{Client, structured_result};

/// A running `onward serve` with rate limits effectively disabled.
pub(crate) struct Server {
    child: Child,
    address: String,
}

impl Server {
    pub(crate) fn start(file: &Path) -> Self {
        let mut command = crate::onward(file);
        let mut child = command
            .args(["serve", "--bind", "127.0.0.1:0"])
            .env("ONWARD_LIMITS__TOKEN_CALLS_PER_SECOND", "1000000")
            .env("ONWARD_LIMITS__TENANT_CALLS_PER_SECOND", "1000000")
            .stdout(Stdio::piped())
            .spawn()
            .expect("server started");
        let mut ready = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("stdout is piped"));
        output
            .read_line(&mut ready)
            .expect("server printed its address");
        let address = ready
            .trim()
            .rsplit_once("http://")
            .expect("line contains an address")
            .1;
        Self {
            address: address.to_owned(),
            child,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn connect(&self) -> HttpClient {
        let stream = TcpStream::connect(&self.address).expect("connected");
        stream.set_nodelay(true).expect("socket option set");
        HttpClient {
            output: BufReader::new(stream.try_clone().expect("socket cloned")),
            stream,
            address: self.address.clone(),
            last_id: 0,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A persistent connection.
pub(crate) struct HttpClient {
    stream: TcpStream,
    output: BufReader<TcpStream>,
    address: String,
    last_id: u64,
}

impl HttpClient {
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
        let body = body.to_string();
        let name = name.map_or(String::new(), |name| format!("Mcp-Name: {name}\r\n"));
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len(),
        );
        let sent = self.stream.write_all(request.as_bytes());
        sent.expect("request sent");
    }

    /// Reads the response headers, in lower case.
    fn headers(&mut self) -> String {
        let mut headers = String::new();
        while !headers.ends_with("\r\n\r\n") {
            let read = self
                .output
                .read_line(&mut headers)
                .expect("header line read");
            assert!(read > 0, "connection closed: {headers}");
        }
        headers.to_lowercase()
    }

    /// Subscribes to plan changes until the connection is dropped.
    pub(crate) fn subscribe(&mut self) {
        let params = json!({ "notifications": { "resourceSubscriptions": ["onward://plans"] } });
        self.send("subscriptions/listen", None, params);
        let headers = self.headers();
        assert!(headers.contains("text/event-stream"), "{headers}");
        let mut line = String::new();
        while !line.contains("acknowledged") {
            line.clear();
            let read = self.output.read_line(&mut line).expect("event line read");
            assert!(read > 0, "connection closed");
        }
    }
}

impl Client for HttpClient {
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send("tools/call", Some(tool), params);
        let headers = self.headers();
        let length = headers.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or_else(|| panic!("no `Content-Length`: {headers}"))];
        self.output.read_exact(&mut body).expect("body read");
        structured_result(serde_json::from_slice(&body).expect("body is JSON"))
    }
}

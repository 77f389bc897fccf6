//! A client over HTTP, in the version without sessions: one connection that stays, a request at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::agent::{Ask, said};

/// A running `onward serve`. The limits that protect a team from one client are out of the way.
pub(crate) struct Server {
    child: Child,
    address: String,
}

impl Server {
    pub(crate) fn start(file: &Path) -> Self {
        let mut command = crate::onward(file);
        let mut child = command
            .args(["serve", "--bind", "127.0.0.1:0"])
            .env("ONWARD_LIMITS_TOKEN_CALLS_PER_SECOND", "1000000")
            .env("ONWARD_LIMITS_TENANT_CALLS_PER_SECOND", "1000000")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut ready = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        output.read_line(&mut ready).expect("a line");
        let address = ready.trim().rsplit_once("http://").expect("an address").1;
        Self {
            address: address.to_owned(),
            child,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Client {
            output: BufReader::new(stream.try_clone().expect("the other half")),
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

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    output: BufReader<TcpStream>,
    address: String,
    last_id: u64,
}

impl Client {
    /// Sends a request, with what every request of this version carries.
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
        sent.expect("it takes a request");
    }

    /// The headers of an answer, in lower case.
    fn headers(&mut self) -> String {
        let mut headers = String::new();
        while !headers.ends_with("\r\n\r\n") {
            let read = self.output.read_line(&mut headers).expect("an answer");
            assert!(read > 0, "the server hung up: {headers}");
        }
        headers.to_lowercase()
    }

    /// Listens for changes of the plans, until the connection is dropped.
    pub(crate) fn listen(&mut self) {
        let wanted = json!({ "notifications": { "resourceSubscriptions": ["onward://plans"] } });
        self.send("subscriptions/listen", None, wanted);
        let headers = self.headers();
        assert!(headers.contains("text/event-stream"), "{headers}");
        let mut line = String::new();
        while !line.contains("acknowledged") {
            line.clear();
            let read = self.output.read_line(&mut line).expect("an event");
            assert!(read > 0, "the server hung up");
        }
    }
}

impl Ask for Client {
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send("tools/call", Some(tool), params);
        let headers = self.headers();
        let length = headers.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or_else(|| panic!("no length: {headers}"))];
        self.output.read_exact(&mut body).expect("a body");
        said(serde_json::from_slice(&body).expect("a message"))
    }
}

//! The demo's agent: an MCP client over HTTP (the protocol version without sessions, one request at
//! a time), and hooks that run `onward hook`.

use std::cell::Cell;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use onward_core::Code;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};

use super::server::Server;
use crate::exit::Exit;
use crate::failure::{Failure, Result};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
pub(super) const RUN_AGAIN: &str =
    "run the demo again, and do not change its plan before it asks for your decision";
const PROTOCOL_VERSION: &str = "2026-07-28";

pub(super) struct Agent {
    client: reqwest::Client,
    base: String,
    last_id: Cell<u64>,
}

/// The error of a rejected tool call.
#[derive(Debug)]
pub(super) struct Refusal {
    code: String,
    pub(super) message: String,
    pub(super) details: Value,
}

impl Agent {
    pub(super) fn new(server: &Server) -> Result<Self> {
        let client = reqwest::Client::builder().timeout(REQUEST_TIMEOUT).build();
        let client = client.map_err(|error| server_failure(&error.to_string()))?;
        Ok(Self {
            client,
            base: server.url.clone(),
            last_id: Cell::new(0),
        })
    }

    /// Calls a tool that must succeed. In the demo it does, unless another client changed the plan.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        self.try_call(tool, arguments).await?.map_err(|refusal| {
            Failure::new(
                Exit::Rejected,
                Code::Conflict,
                format!("demo failed: `{tool}`: {}", refusal.message),
                RUN_AGAIN,
            )
        })
    }

    /// Calls a tool that may reject the call.
    pub(super) async fn try_call(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<std::result::Result<Value, Refusal>> {
        let mut response = self.send(tool, arguments).await?;
        let result = response.get_mut("result").map(Value::take);
        let mut result = result.ok_or_else(|| server_failure(&unexpected(&response)))?;
        if result.get("isError").and_then(Value::as_bool) == Some(true) {
            return Refusal::from_result(&result).map(Err);
        }
        let content = result.get_mut("structuredContent").map(Value::take);
        let content = content.ok_or_else(|| server_failure(&unexpected(&result)))?;
        Ok(Ok(content))
    }

    /// Posts to the HTTP API, as a harness does.
    pub(super) async fn post(&self, path: &str, body: Value) -> Result<()> {
        let request = self
            .client
            .post(format!("{}{path}", self.base))
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        let response = request
            .send()
            .await
            .map_err(|error| server_failure(&error.to_string()))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(server_failure(&format!("`{path}`: {status}"))),
        }
    }

    async fn send(&self, tool: &str, arguments: Value) -> Result<Value> {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        let body = json!({
            "jsonrpc": "2.0",
            "id": id,
            "method": "tools/call",
            "params": {
                "name": tool,
                "arguments": arguments,
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": PROTOCOL_VERSION,
                    "io.modelcontextprotocol/clientInfo": { "name": "onward demo", "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        });
        let request = self
            .client
            .post(format!("{}/mcp", self.base))
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", PROTOCOL_VERSION)
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .body(body.to_string());
        let response = request
            .send()
            .await
            .map_err(|error| server_failure(&error.to_string()))?;
        let text = response
            .text()
            .await
            .map_err(|error| server_failure(&error.to_string()))?;
        serde_json::from_str(&text)
            .map_err(|error| server_failure(&format!("response is not JSON: {error}")))
    }
}

impl Refusal {
    fn from_result(result: &Value) -> Result<Self> {
        let text = result.pointer("/content/0/text").and_then(Value::as_str);
        let content: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
        let error = content.as_ref().and_then(|content| content.get("error"));
        let error = error.ok_or_else(|| server_failure(&unexpected(result)))?;
        let text = |name: &str| {
            let text = error.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        Ok(Self {
            code: text("code"),
            message: text("message"),
            details: error.get("details").cloned().unwrap_or_default(),
        })
    }

    pub(super) fn code(&self) -> &str {
        &self.code
    }
}

/// Runs `onward hook` like an agent, and returns its response.
pub(super) fn run_hook(mut onward: Command, event: &Value) -> Result<Option<Value>> {
    let failure =
        |error: std::io::Error| server_failure(&format!("cannot run `onward hook`: {error}"));
    let mut child = onward
        .args(["hook", "claude-code"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failure)?;
    if let Some(mut input) = child.stdin.take() {
        input
            .write_all(event.to_string().as_bytes())
            .map_err(failure)?;
    }
    let stdout = child.wait_with_output().map_err(failure)?.stdout;
    // Most events have no response.
    Ok(serde_json::from_slice(&stdout).ok())
}

fn unexpected(response: &Value) -> String {
    format!("unexpected response `{response}`")
}

fn server_failure(reason: &str) -> Failure {
    Failure::failed(
        format!("demo failed: {reason}"),
        "see the log of the server with `onward -v demo`",
    )
}

//! The agent of the demo: an MCP client over HTTP, one request at a time, in the version of the
//! protocol without sessions; and its hooks, which are this program's own `onward hook`.

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

/// Nothing that is asked here takes this long.
const PATIENCE: Duration = Duration::from_secs(20);
/// The version of the protocol.
const VERSION: &str = "2026-07-28";

/// An agent at work.
pub(super) struct Agent {
    client: reqwest::Client,
    base: String,
    last_id: Cell<u64>,
}

/// Why a call was not done, as agents are told.
#[derive(Debug)]
pub(super) struct Refusal {
    code: String,
    pub(super) message: String,
    pub(super) details: Value,
}

impl Agent {
    pub(super) fn new(server: &Server) -> Result<Self> {
        let client = reqwest::Client::builder().timeout(PATIENCE).build();
        let client = client.map_err(|why| lost(&why.to_string()))?;
        Ok(Self {
            client,
            base: server.url.clone(),
            last_id: Cell::new(0),
        })
    }

    /// Calls a tool that must do what it is asked. In a demo it does, unless somebody else changed the
    /// plan meanwhile.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        self.try_call(tool, arguments).await?.map_err(|refusal| {
            Failure::new(
                Exit::Refused,
                Code::Conflict,
                format!("the story cannot go on: `{tool}`: {}", refusal.message),
                "run it once more, and leave its plan to the agent until it asks you",
            )
        })
    }

    /// Calls a tool that may be refused.
    pub(super) async fn try_call(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<std::result::Result<Value, Refusal>> {
        let mut answer = self.send(tool, arguments).await?;
        let result = answer.get_mut("result").map(Value::take);
        let mut result = result.ok_or_else(|| lost(&format!("it answers `{answer}`")))?;
        if result.get("isError").and_then(Value::as_bool) == Some(true) {
            return Refusal::of(&result).map(Err);
        }
        let done = result.get_mut("structuredContent").map(Value::take);
        let done = done.ok_or_else(|| lost(&format!("it answers `{result}`")))?;
        Ok(Ok(done))
    }

    /// Tells the server something that is no tool of agents, as a harness does.
    pub(super) async fn tell(&self, path: &str, body: Value) -> Result<()> {
        let request = self
            .client
            .post(format!("{}{path}", self.base))
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        let answer = request.send().await.map_err(|why| lost(&why.to_string()))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(lost(&format!("`{path}`: {status}"))),
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
                    "io.modelcontextprotocol/protocolVersion": VERSION,
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
            .header("mcp-protocol-version", VERSION)
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .body(body.to_string());
        let answer = request.send().await.map_err(|why| lost(&why.to_string()))?;
        let text = answer.text().await.map_err(|why| lost(&why.to_string()))?;
        serde_json::from_str(&text).map_err(|why| lost(&format!("its answer is no JSON: {why}")))
    }
}

impl Refusal {
    fn of(result: &Value) -> Result<Self> {
        let said = result.pointer("/content/0/text").and_then(Value::as_str);
        let said: Option<Value> = said.and_then(|said| serde_json::from_str(said).ok());
        let error = said.as_ref().and_then(|said| said.get("error"));
        let error = error.ok_or_else(|| lost(&format!("it answers `{result}`")))?;
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

/// Runs the hook of an agent, as the agent does; what it answers.
pub(super) fn hook(mut onward: Command, event: &Value) -> Result<Option<Value>> {
    let broken = |why: std::io::Error| lost(&format!("`onward hook` cannot be run: {why}"));
    let mut child = onward
        .args(["hook", "claude-code"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(broken)?;
    if let Some(mut input) = child.stdin.take() {
        input
            .write_all(event.to_string().as_bytes())
            .map_err(broken)?;
    }
    let said = child.wait_with_output().map_err(broken)?.stdout;
    // Mostly a hook has nothing to say.
    Ok(serde_json::from_slice(&said).ok())
}

fn lost(why: &str) -> Failure {
    Failure::failed(
        format!("the server of the demo does not answer as it should: {why}"),
        "`onward -v demo` shows what it says",
    )
}

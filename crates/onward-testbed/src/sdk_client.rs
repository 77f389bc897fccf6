//! The official MCP client (`rmcp`): connected to the binary over stdio or HTTP, or to a server in
//! the same process.
//!
//! `mcp_client` has the low-level client, which can send invalid messages.

use rmcp::ClientHandler;
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport, TokioChildProcess};
use serde_json::Value;

use crate::mcp_client::Era;
use crate::{Program, Server};

/// A connected client. The handler responds to requests of the server, such as forms.
pub struct SdkClient<H: ClientHandler = ClientConfig> {
    /// The connection, for requests that this type has no method for.
    pub connection: RunningService<RoleClient, H>,
}

impl SdkClient {
    /// Starts `onward mcp` and connects to it.
    pub async fn start(program: &Program, era: Era) -> Self {
        let command = tokio::process::Command::from(program.command(&["mcp"]));
        let process = TokioChildProcess::new(command).expect("binary starts");
        Self::with_transport(ClientConfig::default(), process, era).await
    }

    /// Connects to `/mcp` of a server.
    pub async fn connect(server: &Server, era: Era, token: Option<&str>) -> Self {
        Self::with_handler(ClientConfig::default(), server, era, token).await
    }
}

impl<H: ClientHandler> SdkClient<H> {
    /// Like [`connect`](SdkClient::connect), with a handler.
    pub async fn with_handler(handler: H, server: &Server, era: Era, token: Option<&str>) -> Self {
        let url = format!("{}/mcp", server.url);
        let mut config = StreamableHttpClientTransportConfig::with_uri(url);
        if let Some(token) = token {
            config = config.auth_header(token);
        }
        let transport = StreamableHttpClientTransport::from_config(config);
        Self::with_transport(handler, transport, era).await
    }

    /// Connects over any transport.
    pub async fn with_transport<T, E, A>(handler: H, transport: T, era: Era) -> Self
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let lifecycle = match era {
            Era::Handshake => ClientLifecycleMode::Initialize,
            Era::Stateless => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let connection = handler.serve_with_lifecycle(transport, lifecycle).await;
        Self {
            connection: connection.expect("connection is established"),
        }
    }

    /// The names of the tools.
    pub async fn tool_names(&self) -> Vec<String> {
        let tools = self.connection.list_all_tools().await.expect("tool list");
        tools.into_iter().map(|tool| tool.name.into()).collect()
    }

    /// Calls a tool that must succeed. Returns the structured content.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let result = self.send(tool, arguments).await;
        assert_ne!(result.is_error, Some(true), "{tool}: {result:?}");
        result.structured_content.expect("structured content")
    }

    /// Calls a tool that must return an error. Returns the error object.
    pub async fn call_rejected(&self, tool: &str, arguments: Value) -> Value {
        let result = self.send(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{tool}: {result:?}");
        assert!(result.structured_content.is_none(), "{tool}: {result:?}");
        text_content(&result)["error"].clone()
    }

    /// Calls a tool. Returns the text content, which is a result or an error.
    pub async fn response(&self, tool: &str, arguments: Value) -> Value {
        text_content(&self.send(tool, arguments).await)
    }

    async fn send(&self, tool: &str, arguments: Value) -> CallToolResult {
        let arguments = arguments.as_object().expect("arguments are an object");
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        let result = self.connection.call_tool(params).await;
        result.unwrap_or_else(|error| panic!("{tool}: {error}"))
    }

    /// Closes the connection.
    pub async fn close(self) {
        self.connection.cancel().await.expect("connection closes");
    }
}

fn text_content(result: &CallToolResult) -> Value {
    let text = result.content.first().and_then(|content| content.as_text());
    let text = text.expect("text content");
    serde_json::from_str(&text.text).expect("text is JSON")
}

//! `/mcp`: MCP over streamable HTTP, with and without sessions.
//!
//! The middleware has authenticated the request; the handler reads the [`Caller`] from it. Clients
//! of 2026-07-28 and later use no sessions. Sessions of older clients are kept in this process
//! for eight hours of inactivity, because agents pause for long periods. Their number is limited,
//! and only the owner can use a session. A stream ends within seconds after its token is revoked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use onward_core::Code;
use onward_engine::{Caller, Error};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::Site;
use super::auth::error::{AuthError, TOKEN_REQUIRED};
use super::problem::Problem;
use crate::hint::Interface;
use crate::mcp::{Forms, Server, Setup, ToolSet};
use crate::tools::raw;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The first version without sessions.
const WITHOUT_SESSIONS: &str = "2026-07-28";
/// Idle timeout of a session.
const SESSION_TIMEOUT: Duration = Duration::from_secs(8 * 60 * 60);
/// Interval between two authorization checks of an open stream.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);
const MAX_SESSIONS: usize = 5_000;

/// Responds to a request with the SDK's transport.
pub(crate) type Endpoint = Box<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>;

/// Creates an [`Endpoint`]: [`endpoint`] for one type of handler.
pub(crate) type NewEndpoint =
    fn(Setup, Arc<LocalSessionManager>, StreamableHttpServerConfig) -> Endpoint;

/// An endpoint with a handler that extends or replaces [`Server`].
pub(crate) fn endpoint<H: ServerHandler + From<Server>>(
    setup: Setup,
    sessions: Arc<LocalSessionManager>,
    config: StreamableHttpServerConfig,
) -> Endpoint {
    let handler = move || Ok(H::from(Server::new(setup.clone())));
    let service = StreamableHttpService::new(handler, sessions, config);
    Box::new(move |request| {
        let service = service.clone();
        Box::pin(async move { service.handle(request).await.map(Body::new) })
    })
}

/// MCP over HTTP: the endpoint and its sessions.
pub(super) struct McpService {
    endpoint: Endpoint,
    sessions: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, Owner>>,
    cancel: Box<dyn Fn() + Send + Sync>,
}

/// The owner of a session.
#[derive(Clone, PartialEq)]
struct Owner {
    tenant: Arc<str>,
    name: String,
}

impl From<&Caller> for Owner {
    fn from(caller: &Caller) -> Self {
        Self {
            tenant: Arc::clone(&caller.tenant),
            name: caller.name.clone(),
        }
    }
}

impl McpService {
    pub(super) fn new(
        mut context: crate::tools::ToolContext,
        forms: Forms,
        body: usize,
        closing: tokio::sync::watch::Receiver<bool>,
        new_endpoint: NewEndpoint,
    ) -> Self {
        context.interface = Interface::Mcp(ToolSet::All);
        let setup = Setup {
            tool_context: context,
            tool_set: ToolSet::All,
            resolve_caller: Arc::new(|extensions| {
                extensions.get::<Parts>()?.extensions.get().cloned()
            }),
            forms,
            closing,
        };
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SESSION_TIMEOUT);
        let sessions = Arc::new(sessions);
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_max_request_body_bytes(body);
        let cancel = config.cancellation_token.clone();
        Self {
            endpoint: new_endpoint(setup, Arc::clone(&sessions), config),
            sessions,
            owners: Mutex::default(),
            cancel: Box::new(move || cancel.cancel()),
        }
    }

    pub(super) fn close_streams(&self) {
        (self.cancel)();
    }

    /// Checks that the request may use its session, or start a new one.
    async fn check_session(
        &self,
        method: &Method,
        headers: &HeaderMap,
        owner: &Owner,
    ) -> Result<(), Problem> {
        match text(headers, &SESSION) {
            // A session of another owner is reported as not found.
            Some(session) => match self.lock_owners().get(session) {
                Some(session_owner) if session_owner == owner => Ok(()),
                Some(_) | None => Err(Problem::new(
                    Code::InvalidInput,
                    "session not found",
                    "start a new session with `initialize`",
                )
                .status(StatusCode::NOT_FOUND)),
            },
            None if method == Method::POST
                && text(headers, &VERSION) != Some(WITHOUT_SESSIONS)
                && self.sessions.sessions.read().await.len() >= MAX_SESSIONS =>
            {
                Err(Problem::new(
                    Code::RateLimited,
                    "too many open sessions",
                    "close a session with `DELETE`, use an MCP version without sessions, or retry later",
                ))
            }
            None => Ok(()),
        }
    }

    /// Records the owner of a new session and drops the owners of closed sessions.
    async fn record_owner(&self, session: String, owner: Owner) {
        let open = self.sessions.sessions.read().await;
        let mut owners = self.lock_owners();
        owners.retain(|session, _| open.contains_key(session.as_str()));
        owners.entry(session).or_insert(owner);
    }

    fn lock_owners(&self) -> std::sync::MutexGuard<'_, HashMap<String, Owner>> {
        // A poisoned map is consistent: every use is one operation.
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn is_stream(headers: &HeaderMap) -> bool {
    text(headers, &CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// Completes when the caller of a stream is no longer authorized. Database errors do not count.
async fn access_revoked(site: Arc<Site>, headers: HeaderMap, owner: Owner) {
    loop {
        tokio::time::sleep(RECHECK_INTERVAL).await;
        match site.auth.identify(&site.engine, &headers, "/mcp").await {
            Ok(principal) if Owner::from(&principal.caller) == owner => {}
            Err(AuthError::Failed(_)) => {}
            Ok(_)
            | Err(
                AuthError::Missing
                | AuthError::Malformed(_)
                | AuthError::Invalid(_)
                | AuthError::SessionExpired
                | AuthError::InsufficientScope(_),
            ) => {
                return;
            }
        }
    }
}

/// Passes a request to the SDK. If it cannot parse the body, a tool call with readable arguments
/// takes its place, so that the caller gets a tool error and its work is kept.
async fn respond(site: &Site, request: Request) -> Result<Response, Problem> {
    if request.method() != Method::POST {
        return Ok((site.mcp.endpoint)(request).await);
    }
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, site.limits.body).await;
    // Other errors close the connection, so this is the size limit.
    let bytes = bytes.map_err(|_| site.limits.too_large())?;
    let request = Request::from_parts(parts.clone(), Body::from(bytes.clone()));
    let response = (site.mcp.endpoint)(request).await;
    if response.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return Ok(response);
    }
    let Some((message, invalid)) = raw::read_tool_call(&bytes) else {
        return Ok(response);
    };
    let mut parts = parts;
    parts.headers.remove(CONTENT_LENGTH);
    parts.extensions.insert(invalid);
    let request = Request::from_parts(parts, Body::from(message.to_string()));
    Ok((site.mcp.endpoint)(request).await)
}

pub(super) async fn handle(State(site): State<Arc<Site>>, request: Request) -> Response {
    let Some(owner) = request.extensions().get::<Caller>().map(Owner::from) else {
        // Unreachable: the middleware rejects requests without a caller.
        return Problem::from(Error::Unauthorized(TOKEN_REQUIRED)).into_response();
    };
    if let Err(problem) = site
        .mcp
        .check_session(request.method(), request.headers(), &owner)
        .await
    {
        return problem.into_response();
    }
    let has_session = request.headers().contains_key(SESSION);
    let headers = request.headers().clone();
    let mut response = match respond(&site, request).await {
        Ok(response) => response,
        Err(problem) => return problem.into_response(),
    };
    if is_stream(response.headers()) {
        let revoked = access_revoked(Arc::clone(&site), headers, owner.clone());
        response =
            response.map(|body| Body::from_stream(body.into_data_stream().take_until(revoked)));
    }
    let started = text(response.headers(), &SESSION).map(str::to_owned);
    if let Some(session) = started.filter(|_| !has_session) {
        site.mcp.record_owner(session, owner).await;
    }
    response
}

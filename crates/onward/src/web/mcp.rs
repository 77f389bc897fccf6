//! `/mcp`: MCP over streamable HTTP, with and without sessions.
//!
//! The middleware has authenticated the request; the handler reads the [`Caller`] from it. Clients
//! of 2026-07-28 and later use no sessions. Sessions of older clients are kept in this process
//! for eight hours of inactivity, because agents pause for long periods. Their number is limited
//! (`sessions.rs`), and only the owner can use a session. A stream ends within seconds after its
//! token is revoked.

mod sessions;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use onward_core::Code;
use onward_core::role::Permission;
use onward_engine::{Caller, Error};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;

use super::Site;
use super::auth::Principal;
use super::auth_error::{AuthError, TOKEN_REQUIRED};
use super::body::SMALL;
use super::held_body::hold;
use super::pages::APP;
use super::problem::Problem;
use super::shares::Shares;
use super::waiting::Lease;
use crate::config;
use crate::hint::Interface;
use crate::mcp::{Forms, Server, Setup, ToolSet};
use crate::tools::raw;
use sessions::{Owner, Sessions, Use};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The first version without sessions.
const WITHOUT_SESSIONS: &str = "2026-07-28";
/// Idle timeout of a session.
const SESSION_TIMEOUT: Duration = Duration::from_secs(8 * 60 * 60);
/// Interval between two authorization checks of an open stream.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);

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
    manager: Arc<LocalSessionManager>,
    sessions: Arc<Sessions>,
    shares: Shares,
    cancel: Box<dyn Fn() + Send + Sync>,
}

impl McpService {
    pub(super) fn new(
        mut context: crate::tools::ToolContext,
        forms: Forms,
        limits: &config::Limits,
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
            app: APP,
            directory: None,
        };
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(SESSION_TIMEOUT);
        let manager = Arc::new(manager);
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_max_request_body_bytes(size(limits.body_bytes));
        let cancel = config.cancellation_token.clone();
        Self {
            endpoint: new_endpoint(setup, Arc::clone(&manager), config),
            manager,
            sessions: Arc::default(),
            shares: Shares::new(size(limits.sessions)),
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
        principal: &Principal,
    ) -> Result<Option<Use>, Problem> {
        let owner = Owner::from(&principal.caller);
        if let Some(session) = text(headers, &SESSION) {
            // A session of another owner is reported as not found.
            let found = self.sessions.start_use(session, &owner);
            return found.map(Some).ok_or_else(|| {
                Problem::new(
                    Code::InvalidInput,
                    "session not found",
                    "start a new session with `initialize`",
                )
                .status(StatusCode::NOT_FOUND)
            });
        }
        if method == Method::POST && text(headers, &VERSION) != Some(WITHOUT_SESSIONS) {
            self.make_room(&owner, self.shares.of(principal)).await?;
        }
        Ok(None)
    }

    /// Closes the oldest idle session of an owner who has used up its share.
    async fn make_room(&self, owner: &Owner, shares: Shares) -> Result<(), Problem> {
        let closed = {
            let open = self.manager.sessions.read().await;
            let is_open = |id: &str| open.contains_key(id);
            self.sessions.make_room(owner, shares, is_open)
        };
        let closed = closed.map_err(|exhausted| {
            Problem::new(
                Code::RateLimited,
                format!("too many active sessions {}", exhausted.as_str()),
                "close a session with `DELETE`, use an MCP version without sessions, or retry later",
            )
        })?;
        if let Some(session) = closed {
            // Fails only if the session has ended.
            drop(self.manager.close_session(&session.into()).await);
        }
        Ok(())
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

/// The size limit of a message. A caller who stores nothing sends no texts.
fn max_body(caller: &Caller) -> usize {
    if caller.allow(Permission::Work).is_ok() {
        usize::MAX
    } else {
        SMALL
    }
}

/// Passes a request to the SDK. If it cannot parse the body, a tool call with readable arguments
/// takes its place, so that the caller gets a tool error and its work is kept.
async fn respond(
    site: &Site,
    principal: &Principal,
    request: Request,
) -> Result<Response, Problem> {
    if request.method() != Method::POST {
        return Ok((site.mcp.endpoint)(request).await);
    }
    let (parts, body) = request.into_parts();
    let bodies = &site.limits.bodies;
    let body = bodies
        .read_json(principal, &parts.headers, body, max_body(&principal.caller))
        .await?;
    // The message keeps its share of the memory until the call is complete or waits.
    if let Some(lease) = parts.extensions.get::<Lease>() {
        lease.start_work((body.arrived, body.value));
    }
    let bytes = body.bytes;
    // A large message is kept only if the SDK cannot parse it.
    let kept = bytes.len() <= SMALL || serde_json::from_slice::<IgnoredAny>(&bytes).is_err();
    let kept = kept.then(|| bytes.clone());
    let request = Request::from_parts(parts.clone(), Body::from(bytes));
    let response = (site.mcp.endpoint)(request).await;
    let invalid = kept.filter(|_| response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let Some((message, invalid)) = invalid.and_then(|bytes| raw::read_tool_call(&bytes)) else {
        return Ok(response);
    };
    let mut parts = parts;
    parts.headers.remove(CONTENT_LENGTH);
    parts.extensions.insert(invalid);
    let request = Request::from_parts(parts, Body::from(message.to_string()));
    Ok((site.mcp.endpoint)(request).await)
}

pub(super) async fn handle(State(site): State<Arc<Site>>, request: Request) -> Response {
    let Some(principal) = request.extensions().get::<Principal>().cloned() else {
        // Unreachable: the middleware rejects requests without a caller.
        return Problem::from(Error::Unauthorized(TOKEN_REQUIRED)).into_response();
    };
    let owner = Owner::from(&principal.caller);
    let checked = site
        .mcp
        .check_session(request.method(), request.headers(), &principal)
        .await;
    let in_use = match checked {
        Ok(in_use) => in_use,
        Err(problem) => return problem.into_response(),
    };
    let headers = request.headers().clone();
    let mut response = match respond(&site, &principal, request).await {
        Ok(response) => response,
        Err(problem) => return problem.into_response(),
    };
    let started = text(response.headers(), &SESSION).map(str::to_owned);
    if let Some(session) = started.filter(|_| in_use.is_none()) {
        site.mcp.sessions.add(session, owner.clone());
    }
    if is_stream(response.headers()) {
        let revoked = access_revoked(Arc::clone(&site), headers, owner);
        response =
            response.map(|body| Body::from_stream(body.into_data_stream().take_until(revoked)));
    }
    hold(response, in_use)
}

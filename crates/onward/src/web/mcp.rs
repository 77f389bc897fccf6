//! `/mcp`: the tools for agents, over streamable HTTP, in both eras.
//!
//! The gate has checked host and origin and said who asks; the handler finds the [`Caller`] with each
//! request. Clients of 2026-07-28 bring everything along. The sessions of those before live in this
//! process, for hours, since agents think long; there are so many at most, and each belongs to whoever
//! began it: to everybody else it does not exist. A stream ends soon after its token was revoked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use onward_core::Code;
use onward_engine::Caller;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::Site;
use super::gate::Refused;
use super::problem::Problem;
use crate::mcp::{Forms, Offered, Server, Setup};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The first version without sessions.
const WITHOUT_SESSIONS: &str = "2026-07-28";
/// A session ends after so long without a word.
const SILENCE: Duration = Duration::from_secs(8 * 60 * 60);
/// For how long it is believed that somebody may still have their stream.
const BELIEVED: Duration = Duration::from_secs(5);
/// How many sessions there are at most.
const MOST: usize = 5_000;

/// MCP over HTTP.
pub(super) struct Mount {
    service: StreamableHttpService<Server, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, Owner>>,
    end: Box<dyn Fn() + Send + Sync>,
}

/// Whose a session is.
#[derive(Clone, PartialEq)]
struct Owner {
    tenant: Arc<str>,
    name: String,
}

impl Owner {
    fn of(caller: &Caller) -> Self {
        Self {
            tenant: Arc::clone(&caller.tenant),
            name: caller.name.clone(),
        }
    }
}

impl Mount {
    pub(super) fn new(
        desk: crate::tools::Desk,
        forms: Forms,
        body: usize,
        closing: tokio::sync::watch::Receiver<bool>,
    ) -> Self {
        let setup = Setup {
            desk,
            offered: Offered::All,
            who: Arc::new(|extensions| extensions.get::<Parts>()?.extensions.get().cloned()),
            forms,
            closing,
        };
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SILENCE);
        let sessions = Arc::new(sessions);
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_max_request_body_bytes(body);
        let cancel = config.cancellation_token.clone();
        Self {
            service: StreamableHttpService::new(
                move || Ok(Server::new(setup.clone())),
                Arc::clone(&sessions),
                config,
            ),
            sessions,
            owners: Mutex::default(),
            end: Box::new(move || cancel.cancel()),
        }
    }

    /// Ends what streams.
    pub(super) fn end(&self) {
        (self.end)();
    }

    /// Whether the request may have the session that it names, or begin one.
    async fn admit(
        &self,
        method: &Method,
        headers: &HeaderMap,
        owner: &Owner,
    ) -> Result<(), Problem> {
        match text(headers, &SESSION) {
            // To anybody else it is as one that never was.
            Some(session) => match self.owned().get(session) {
                Some(whose) if whose == owner => Ok(()),
                Some(_) | None => Err(Problem::new(
                    Code::InvalidInput,
                    "there is no such session",
                    "begin a new one with `initialize`",
                )
                .status(StatusCode::NOT_FOUND)),
            },
            None if method == Method::POST
                && text(headers, &VERSION) != Some(WITHOUT_SESSIONS)
                && self.sessions.sessions.read().await.len() >= MOST =>
            {
                Err(Problem::new(
                    Code::Unavailable,
                    "too many sessions are open",
                    "end one with `DELETE`, speak a version of MCP without them, or try again later",
                ))
            }
            None => Ok(()),
        }
    }

    /// Remembers whose a session is that has just begun, and forgets those that are over.
    async fn remember(&self, session: String, owner: Owner) {
        let open = self.sessions.sessions.read().await;
        let mut owners = self.owned();
        owners.retain(|session, _| open.contains_key(session.as_str()));
        owners.entry(session).or_insert(owner);
    }

    fn owned(&self) -> std::sync::MutexGuard<'_, HashMap<String, Owner>> {
        // Whoever panicked while holding it left it whole: every use is one operation.
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn is_stream(headers: &HeaderMap) -> bool {
    text(headers, &CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// Waits until whoever opened a stream may not have it any more. A database that is away turns nobody
/// away.
async fn turned_away(site: Arc<Site>, headers: HeaderMap, owner: Owner) {
    loop {
        tokio::time::sleep(BELIEVED).await;
        match site.gate.who(&site.engine, &headers, "/mcp").await {
            Ok(guest) if Owner::of(&guest.caller) == owner => {}
            Err(Refused::Failed(_)) => {}
            Ok(_) | Err(Refused::Nobody | Refused::Wrong(_) | Refused::Scope(_)) => return,
        }
    }
}

pub(super) async fn answer(State(site): State<Arc<Site>>, request: Request) -> Response {
    let Some(owner) = request.extensions().get().map(Owner::of) else {
        // No route stands before the gate; one that did would be closed.
        return Problem::new(Code::Unauthorized, "a token is needed", "send one").into_response();
    };
    if let Err(problem) = site
        .mcp
        .admit(request.method(), request.headers(), &owner)
        .await
    {
        return problem.into_response();
    }
    let named = request.headers().contains_key(SESSION);
    let headers = request.headers().clone();
    let answered = site.mcp.service.handle(request).await;
    let mut response = answered.map(Body::new);
    if is_stream(response.headers()) {
        let turned_away = turned_away(Arc::clone(&site), headers, owner.clone());
        response =
            response.map(|body| Body::from_stream(body.into_data_stream().take_until(turned_away)));
    }
    let begun = text(response.headers(), &SESSION).map(str::to_owned);
    if let Some(session) = begun.filter(|_| !named) {
        site.mcp.remember(session, owner).await;
    }
    response
}

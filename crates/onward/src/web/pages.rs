//! The dashboard: pages for people, rendered here, one file per page.
//!
//! Every page works without its script, which only makes it live: `onward.js` hears of changes at
//! `/live`, asks for the page anew, and puts the parts in place that are marked. What people wrote or
//! agents sent is data: templates escape it, and `show.rs` takes out what would turn text around.
//! Every form carries a mark (`session.rs`) beside the gate's look at `Origin`; whether somebody may
//! is decided by the engine, and asked here a second time only to say so before they try.

mod acts;
mod assets;
mod export;
mod frame;
mod login;
mod notices;
mod plan;
mod plans;
pub(super) mod problem;
mod prose;
mod provider;
mod reviews;
mod search;
pub(super) mod session;
mod sessions;
pub(super) mod settings;
mod show;
mod skills;
mod step;
pub(super) mod tally;
mod text;
mod timeline;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Form, FromRequest, FromRequestParts, Query, Request};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use onward_core::Code;
use onward_core::role::Permission;
use onward_engine::{Caller, Error};

use super::problem::Problem;
use super::sign_in::CALLBACK;
use super::{Site, events};
use crate::tools::running;

/// What a page may load and where its forms may go: nothing but from here, and nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// What is for programs and agents, and never a page.
const OTHERS: [&str; 6] = [
    "/api/",
    "/mcp",
    "/metrics",
    "/healthz",
    "/readyz",
    "/.well-known/",
];

/// Whether a path leads to a page, or to something that a page needs.
pub(super) fn is_page(path: &str) -> bool {
    !OTHERS.iter().any(|other| path.starts_with(other))
}

/// What everybody may see who comes from a place that may: how to sign in, and how it looks.
pub(super) fn is_open(path: &str) -> bool {
    path == "/login" || path.starts_with("/login/") || path.starts_with("/assets/")
}

/// Whether a person in front of a browser will read the answer.
pub(super) fn is_for_people(request: &Request) -> bool {
    let accepts = request.headers().get(ACCEPT);
    let accepts = accepts.and_then(|accepts| accepts.to_str().ok());
    is_page(request.uri().path()) && accepts.is_some_and(|kinds| kinds.contains("text/html"))
}

/// Leads somebody to where they sign in, and back from there.
pub(super) fn sign_in(site: &Site, request: &Request) -> Response {
    let back = match request.method() {
        &Method::GET => request.uri().path_and_query().map(|path| path.as_str()),
        _ => None,
    };
    let place = login::address(back.unwrap_or("/"));
    let mut response = to(&place);
    if session::cookie(request.headers()).is_some() && site.gate.open.is_none() {
        // It is over, or of a token that is no longer good.
        if let Ok(unset) = HeaderValue::try_from(session::unset()) {
            response.headers_mut().insert(SET_COOKIE, unset);
        }
    }
    response
}

/// The pages, and what they need.
pub(super) fn router() -> Router<Arc<Site>> {
    Router::new()
        .route("/", get(|| async { to("/plans") }))
        .route("/assets/{name}", get(assets::show))
        .route("/live", get(events::listen))
        .route("/login", get(login::show).post(login::enter))
        .route("/login/provider", get(provider::leave_for))
        .route(CALLBACK, get(provider::come_back))
        .route("/logout", post(login::leave))
        .route("/notices", get(notices::show))
        .route("/plans", get(plans::show))
        .route("/plans/sample", post(plans::sample))
        .route("/plans/{plan}", get(plan::show))
        .route("/plans/{plan}/resume", post(acts::resume))
        .route("/plans/{plan}/steps", post(acts::add))
        .route("/plans/{plan}/abandon", post(acts::abandon))
        .route("/plans/{plan}/export.json", get(export::json))
        .route("/plans/{plan}/export.md", get(export::markdown))
        .route("/plans/{plan}/steps/{step}", get(step::show))
        .route("/plans/{plan}/steps/{step}/requeue", post(acts::requeue))
        .route("/plans/{plan}/steps/{step}/fail", post(acts::fail))
        .route("/plans/{plan}/steps/{step}/instruct", post(acts::instruct))
        .route("/plans/{plan}/steps/{step}/move", post(acts::move_to))
        .route("/reviews", get(reviews::show))
        .route("/reviews/{id}", get(reviews::show_one))
        .route("/reviews/{id}/decide", post(reviews::decide))
        .route("/sessions", get(sessions::show))
        .route("/sessions/{session}", get(sessions::show_one))
        .route(
            "/sessions/{session}/calls/{turn}/{position}/close",
            post(sessions::close),
        )
        .route("/search", get(search::show))
        .route("/artifacts/{id}", get(text::artifact))
        .route("/outputs/{id}", get(text::output))
        .route("/skills", get(skills::show))
        .route("/skills/{execution}", get(skills::show_one))
        .route("/settings", get(settings::show))
        .route("/settings/tokens", post(settings::create_token))
        .route("/settings/tokens/{token}/revoke", post(settings::revoke))
        .layer(from_fn(guarded))
}

/// What browsers are told about every page.
async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    guard(response.headers_mut());
    response
}

/// Says to a browser what a page may do: nothing that does not stand in it.
fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Not `no-referrer`: with that, browsers hide the `Origin` of a form from its own server.
        (REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let kept = headers.entry(CACHE_CONTROL);
    kept.or_insert(HeaderValue::from_static("no-store"));
}

/// Leads on to another page.
fn to(place: &str) -> Response {
    let place = HeaderValue::try_from(place).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
}

/// Why there is no page, as a page.
struct Failed(Problem);

impl<E: Into<Problem>> From<E> for Failed {
    fn from(why: E) -> Self {
        Self(why.into())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        problem::show(self.0)
    }
}

type Page = Result<Response, Failed>;

/// What was written behind a `?`, or into a form.
#[derive(Debug, Default, Clone)]
struct Fields(Vec<(String, String)>);

impl Fields {
    fn of(uri: &Uri) -> Self {
        let fields = Query::<Vec<(String, String)>>::try_from_uri(uri);
        fields.map_or_else(|_| Self::default(), |fields| Self(fields.0))
    }

    /// A field that says something.
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(field, _)| field == name);
        let text = found.map(|(_, text)| text.trim());
        text.filter(|text| !text.is_empty())
    }

    /// A field as its type; one that does not fit is as good as none.
    fn parsed<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }
}

/// Somebody who looks at a page.
struct Visit {
    site: Arc<Site>,
    caller: Caller,
    /// Whether they signed in with a cookie, and so can sign out.
    signed_in: bool,
    fields: Fields,
}

impl FromRequestParts<Arc<Site>> for Visit {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Self, Failed> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or(Error::Unauthorized("a token is needed"))?;
        caller.allow(Permission::Read).map_err(Error::from)?;
        Ok(Self {
            signed_in: site.gate.open.is_none() && session::cookie(&parts.headers).is_some(),
            site: Arc::clone(site),
            caller,
            fields: Fields::of(&parts.uri),
        })
    }
}

/// Somebody who sent a form that they were shown.
struct Posted {
    visit: Visit,
    fields: Fields,
}

impl FromRequest<Arc<Site>> for Posted {
    type Rejection = Failed;

    async fn from_request(request: Request, site: &Arc<Site>) -> Result<Self, Failed> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, site).await?;
        let fields = form(Request::from_parts(parts, body), site).await?;
        let mark = fields.get("mark").unwrap_or_default();
        if !site.gate.seal.is_marked(&visit.caller, mark) {
            return Err(unmarked().into());
        }
        Ok(Self { visit, fields })
    }
}

/// The fields of a form.
async fn form(request: Request, site: &Arc<Site>) -> Result<Fields, Failed> {
    let read = Form::<Vec<(String, String)>>::from_request(request, site).await;
    let fields = read.map_err(|why| {
        let status = why.status();
        let said = Problem::new(
            Code::InvalidInput,
            "the form cannot be read",
            "go back, and send it from its page",
        );
        said.status(status)
    })?;
    Ok(Fields(fields.0))
}

fn unmarked() -> Problem {
    Problem::new(
        Code::Forbidden,
        "the form is not from a page of this server, or from before it started",
        "go back, load the page anew, and send it again; nothing was done",
    )
}

/// Does something that is not left half done when the browser goes away.
async fn done<T: Send + 'static>(
    what: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Failed> {
    let task = tokio::spawn(async move {
        let _running = running::begin();
        what.await
    });
    let broke = |_| {
        Problem::new(
            Code::Unavailable,
            "it broke off: this is a bug of Onward",
            "look at what was done, then try again",
        )
    };
    Ok(task.await.map_err(broke)??)
}

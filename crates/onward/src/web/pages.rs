//! The dashboard: server-rendered pages, one file per page.
//!
//! All pages work without JavaScript. `onward.js` only makes them live: it listens to `/live`,
//! fetches the page again and replaces the marked parts. Text from agents and users is data:
//! templates escape it, and `format.rs` removes control characters. Every form carries a CSRF token
//! (`cookies.rs`), in addition to the origin check of the middleware. The engine checks
//! permissions; pages check them only to hide or disable buttons.

mod actions;
mod agent_name;
mod approval;
mod assets;
pub(super) mod cached;
mod decide;
mod evidence;
mod export;
mod fields;
mod form;
mod format;
mod inbox;
mod journal;
mod jump;
mod layout;
mod library;
mod login;
mod markdown_html;
mod new_plan;
mod notifications;
mod overview;
mod plan;
mod plans;
pub(super) mod problem;
mod provider;
mod review_form;
mod sessions;
pub(super) mod settings;
mod skills;
mod step;
mod tag;
mod text;
mod timeline;
mod unfinished;
mod who;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{self, FromRequest, FromRequestParts, MatchedPath, Query, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use onward_core::Code;
use onward_core::role::Permission;
use onward_engine::{Caller, Error};

use super::auth::Principal;
use super::auth_error::TOKEN_REQUIRED;
use super::browser::redirect;
use super::problem::Problem;
use super::sign_in::CALLBACK;
use super::waiting::Lease;
use super::{Site, cookies, events};
use crate::decision_link::PATH_PREFIX;
use crate::tools::in_flight;
use form::Form;

pub(crate) use plan::APP;

/// Content security policy: own resources only, nothing inline.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                   connect-src 'self'; form-action 'self'; base-uri 'none'; \
                   frame-ancestors 'none'";

/// All dashboard routes.
pub(super) fn router() -> Router<Arc<Site>> {
    Router::new()
        .route("/", get(overview::show))
        .route("/assets/{name}", get(assets::show))
        .route("/live", get(events::show))
        .route("/login", get(login::show).post(login::sign_in))
        .route("/login/provider", get(provider::start))
        .route(CALLBACK, get(provider::callback))
        .route("/logout", post(login::sign_out))
        .route("/notices", get(notifications::show))
        .route("/plans", get(plans::show))
        .route("/plans/sample", post(plans::sample))
        .route("/plans/new", get(new_plan::show).post(new_plan::submit))
        .route("/plans/{plan}", get(plan::show))
        .route("/plans/selected", post(actions::selected))
        .route("/plans/export", post(export::selected))
        .route("/plans/{plan}/release", post(actions::release))
        .route("/plans/{plan}/fail", post(actions::fail_stuck))
        .route("/plans/{plan}/resume", post(actions::resume))
        .route("/plans/{plan}/edit", post(actions::edit_plan))
        .route("/plans/{plan}/budget", post(actions::set_budget))
        .route("/plans/{plan}/steps", post(actions::add))
        .route("/plans/{plan}/abandon", post(actions::abandon))
        .route("/plans/{plan}/export.json", get(export::json))
        .route("/plans/{plan}/export.md", get(export::markdown))
        .route("/plans/{plan}/steps/{step}", get(step::show))
        .route("/plans/{plan}/steps/{step}/requeue", post(actions::requeue))
        .route("/plans/{plan}/steps/{step}/skip", post(actions::skip))
        .route(
            "/plans/{plan}/steps/{step}/continue",
            post(actions::proceed),
        )
        .route("/plans/{plan}/steps/{step}/fail", post(actions::fail))
        .route("/plans/{plan}/steps/{step}/redo", post(actions::redo))
        .route("/plans/{plan}/steps/{step}/fork", post(actions::fork))
        .route("/plans/{plan}/steps/{step}/instruct", post(actions::edit))
        .route("/plans/{plan}/steps/{step}/move", post(actions::move_to))
        .route("/decide/{token}", get(decide::show).post(decide::submit))
        .route("/inbox", get(inbox::show))
        .route("/journal", get(journal::show))
        .route("/jump", get(jump::show))
        .route("/reviews", get(|uri: Uri| moved("/inbox", uri)))
        .route("/reviews/{id}", get(inbox::show_review))
        .route("/reviews/{id}/decide", post(inbox::decide))
        .route("/sessions", get(sessions::show))
        .route("/sessions/{session}", get(sessions::show_one))
        .route(
            "/sessions/{session}/calls/{turn}/{position}/close",
            post(sessions::close),
        )
        .route("/library", get(library::show))
        .route("/library/skills", get(skills::show))
        .route("/library/skills/{execution}", get(skills::show_one))
        .route("/search", get(|uri: Uri| moved("/library", uri)))
        .route("/artifacts/{id}", get(text::artifact))
        .route("/outputs/{id}", get(text::output))
        .route("/skills", get(|uri: Uri| moved("/library/skills", uri)))
        .route("/skills/{execution}", get(skills::show_one))
        .route("/settings", get(settings::connect))
        .route("/settings/access", get(settings::access::show))
        .route("/settings/alerts", get(settings::alerts))
        .route("/settings/alerts/test", post(settings::test_alert))
        .route("/settings/limits", get(settings::limits))
        .route("/settings/about", get(settings::about))
        .route("/settings/reviews", post(settings::access::set_reviews))
        .route("/settings/tokens", post(settings::access::create_token))
        .route(
            "/settings/tokens/{token}/revoke",
            post(settings::access::revoke),
        )
        .layer(from_fn(with_security_headers))
}

/// Redirects an old address, with its query.
async fn moved(path: &str, uri: Uri) -> Response {
    match uri.query() {
        Some(query) => redirect(&format!("{path}?{query}")),
        None => redirect(path),
    }
}

async fn with_security_headers(request: Request, next: Next) -> Response {
    let has_token = request.uri().path().starts_with(PATH_PREFIX);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    add_security_headers(headers);
    if has_token {
        // Without the path, which is a credential.
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("strict-origin"));
    }
    response
}

fn add_security_headers(headers: &mut HeaderMap) {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, CSP),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Not `no-referrer`: browsers would send `Origin: null` with forms.
        (REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let cache_control = headers.entry(CACHE_CONTROL);
    cache_control.or_insert(HeaderValue::from_static("no-store"));
}

/// An error that is rendered as a page.
struct PageError(Problem);

impl<E: Into<Problem>> From<E> for PageError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        problem::show(self.0)
    }
}

type PageResult = Result<Response, PageError>;

/// Fields of a query string or a form.
#[derive(Debug, Default, Clone)]
struct Fields(Vec<(String, String)>);

impl Fields {
    fn from_query(uri: &Uri) -> Self {
        let fields = Query::<Vec<(String, String)>>::try_from_uri(uri);
        fields.map_or_else(|_| Self::default(), |fields| Self(fields.0))
    }

    /// A field that is not blank, trimmed.
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(field, _)| field == name);
        let text = found.map(|(_, text)| text.trim());
        text.filter(|text| !text.is_empty())
    }

    /// All values of a field.
    fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        let of_name = self.0.iter().filter(move |(field, _)| field == name);
        of_name.map(|(_, text)| text.as_str())
    }

    /// A parsed field. An invalid value counts as missing.
    fn parsed<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }
}

/// An authenticated request for a page.
struct Visit {
    site: Arc<Site>,
    caller: Caller,
    principal: Principal,
    lease: Lease,
    /// Whether the session comes from a cookie, so that signing out is possible.
    signed_in: bool,
    /// The session cookie.
    cookie: Option<String>,
    fields: Fields,
    /// Whether the address accepts forms only, so that the script cannot fetch the page again.
    is_form: bool,
}

impl FromRequestParts<Arc<Site>> for Visit {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Self, PageError> {
        let principal = parts.extensions.get::<Principal>().cloned();
        let principal = principal.ok_or(Error::Unauthorized(TOKEN_REQUIRED))?;
        let caller = principal.caller.clone();
        caller.allow(Permission::Read).map_err(Error::from)?;
        let is_secure = site.auth.origin_policy.is_secure();
        let cookie = cookies::session_cookie(&parts.headers, is_secure);
        Ok(Self {
            signed_in: site.auth.local_user.is_none() && cookie.is_some(),
            cookie: cookie.map(str::to_owned),
            site: Arc::clone(site),
            caller,
            principal,
            lease: parts.extensions.get().cloned().unwrap_or_default(),
            fields: Fields::from_query(&parts.uri),
            is_form: parts.method == Method::POST,
        })
    }
}

/// A submitted form with a valid CSRF token.
struct FormPost {
    visit: Visit,
    fields: Fields,
}

impl FromRequest<Arc<Site>> for FormPost {
    type Rejection = PageError;

    async fn from_request(request: Request, site: &Arc<Site>) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, site).await?;
        let path = parts.extensions.get::<MatchedPath>();
        let form = Form::find(path.map_or("", MatchedPath::as_str));
        // Before the body is read.
        visit.caller.allow(form.permission).map_err(Error::from)?;
        let bodies = &site.limits.bodies;
        let body = bodies.read_form(&visit.principal, &parts.headers, body, form.body);
        let body = body.await?;
        let fields = fields(parts, body.bytes).await?;
        let token = fields.get("csrf_token").unwrap_or_default();
        if !site.auth.cookie_signer.verify_csrf(&visit.caller, token) {
            return Err(invalid_csrf_token().into());
        }
        Ok(Self { visit, fields })
    }
}

/// The fields of a form.
async fn fields(parts: Parts, body: Bytes) -> Result<Fields, PageError> {
    let request = Request::from_parts(parts, Body::from(body));
    let fields = extract::Form::<Vec<(String, String)>>::from_request(request, &()).await;
    let fields = fields.map_err(|rejection| {
        Problem::new(
            Code::InvalidInput,
            "cannot read the form",
            "go back and submit the form again",
        )
        .status(rejection.status())
    })?;
    Ok(Fields(fields.0))
}

fn invalid_csrf_token() -> Problem {
    Problem::new(
        Code::Forbidden,
        "the form is not from this server, or the server has restarted since",
        "go back, reload the page and submit the form again; nothing was changed",
    )
}

/// Renders Markdown as a page and as one line; returns the size. For the fuzz targets.
#[cfg(test)]
pub(crate) fn render_markdown(text: &str) -> usize {
    let page = markdown_html::MarkdownHtml::render(text, usize::MAX);
    page.to_string().len() + markdown_html::plain_text(text).len()
}

/// Runs an operation in a task, so that it completes even if the browser disconnects.
async fn run_to_completion<T: Send + 'static>(
    operation: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, PageError> {
    let task = tokio::spawn(async move {
        let _running = in_flight::track();
        operation.await
    });
    let panicked = |_| {
        Problem::new(
            Code::Unavailable,
            "internal error: this is a bug in Onward",
            "check the current state before you retry; the change may have taken effect",
        )
    };
    Ok(task.await.map_err(panicked)??)
}

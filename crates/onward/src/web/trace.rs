//! What the log and the figures say about a request: its method, its route as it is written down
//! (never the ids in it), its status, and how long it took. Headers and bodies are not in it, and so
//! no secret is.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use metrics::{counter, histogram};
use tracing::Instrument;

/// Routes that nobody wrote down are counted as one.
const ELSEWHERE: &str = "elsewhere";

pub(super) async fn observe(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(|| ELSEWHERE.to_owned(), |route| route.as_str().to_owned());
    let method = method(request.method());
    let span = tracing::info_span!("request", method, route, status = tracing::field::Empty);
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    let took = began.elapsed();
    span.record("status", status);
    span.in_scope(|| {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        match status {
            500.. => tracing::warn!(status, ms, "answered"),
            _ => tracing::debug!(status, ms, "answered"),
        }
    });
    counter!(
        "onward_http_requests_total",
        "route" => route.clone(), "method" => method, "status" => status.to_string(),
    )
    .increment(1);
    histogram!("onward_http_request_seconds", "route" => route).record(took);
    response
}

/// A method as it is counted: one that somebody made up must not be a label of its own.
fn method(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        "PUT" => "PUT",
        _ => "other",
    }
}

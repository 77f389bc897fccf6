//! Logs and counts requests by method, route pattern, status and duration. Ids, headers and bodies
//! are not recorded.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use metrics::{counter, histogram};
use tracing::Instrument;

/// The `route` label of requests that match no route.
const UNMATCHED: &str = "unmatched";

pub(super) async fn observe(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(|| UNMATCHED.to_owned(), |route| route.as_str().to_owned());
    let method = method_label(request.method());
    let span = tracing::info_span!("request", method, route, status = tracing::field::Empty);
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    let took = started.elapsed();
    span.record("status", status);
    span.in_scope(|| {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        match status {
            500.. => tracing::warn!(status, ms, "request finished"),
            _ => tracing::debug!(status, ms, "request finished"),
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

/// The `method` label. Unknown methods share one value, which bounds the number of time series.
fn method_label(method: &Method) -> &'static str {
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

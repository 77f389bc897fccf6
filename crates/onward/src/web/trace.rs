//! Gives every request its id, and logs and counts requests by method, route pattern, status and
//! duration. Headers and bodies are not recorded.
//!
//! A request that fails because of the server or of the plan's state leaves a line with its tenant,
//! plan and step at the default log level. The lines of tool calls over MCP are in `tools.rs`,
//! because their HTTP status is 200.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use metrics::{counter, histogram};
use onward_core::{Code, PlanId, StepId};
use tracing::Instrument;

use crate::request_id::RequestId;
use crate::telemetry::REQUEST_LOG;

/// The `route` label of requests that match no route.
const UNMATCHED: &str = "unmatched";

/// The tenant of a request, once its caller is known.
pub(super) type RequestTenant = Arc<OnceLock<Arc<str>>>;

pub(super) async fn observe(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let (mut parts, body) = request.into_parts();
    let route = parts.extensions.get::<MatchedPath>();
    let route = route.map_or_else(|| UNMATCHED.to_owned(), |route| route.as_str().to_owned());
    let method = method_label(&parts.method);
    let sent = parts.headers.get(RequestId::HEADER);
    let id = RequestId::new(sent.and_then(|sent| sent.to_str().ok()));
    // An error, so that no log filter removes the id from the lines of the request.
    let span = tracing::error_span!(
        target: REQUEST_LOG, "request",
        request_id = %id, method, route, status = tracing::field::Empty,
    );
    let (plan, step) = subjects(&mut parts).await;
    let tenant = RequestTenant::default();
    parts.extensions.insert(id.clone());
    // For tasks that serve a part of the request.
    parts.extensions.insert(span.clone());
    parts.extensions.insert(Arc::clone(&tenant));
    let response = next.run(Request::from_parts(parts, body));
    let response = id.clone().scope(response).instrument(span.clone());
    let mut response = response.await;
    let status = response.status().as_u16();
    let took = started.elapsed();
    span.record("status", status);
    span.in_scope(|| {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let (plan, step) = (
            plan.map(tracing::field::display),
            step.map(tracing::field::display),
        );
        let tenant = tenant.get().map(|tenant| &**tenant);
        let code = response
            .extensions()
            .get::<Code>()
            .map(|code| code.as_str());
        match status {
            500.. => tracing::warn!(
                target: REQUEST_LOG, status, code, tenant, plan, step, ms, "request finished"
            ),
            409 => tracing::info!(
                target: REQUEST_LOG, status, code, tenant, plan, step, ms, "request finished"
            ),
            _ => tracing::debug!(status, ms, "request finished"),
        }
    });
    if let Ok(id) = HeaderValue::try_from(id.as_str()) {
        let name = HeaderName::from_static(RequestId::HEADER);
        response.headers_mut().insert(name, id);
    }
    counter!(
        "onward_http_requests_total",
        "route" => route.clone(), "method" => method, "status" => status.to_string(),
    )
    .increment(1);
    histogram!("onward_http_request_seconds", "route" => route).record(took);
    response
}

/// The plan and the step in the path.
async fn subjects(parts: &mut Parts) -> (Option<PlanId>, Option<StepId>) {
    let params = RawPathParams::from_request_parts(parts, &()).await.ok();
    let param = |names: [&str; 2]| {
        let mut params = params.iter().flatten();
        params.find_map(|(name, value)| names.contains(&name).then_some(value))
    };
    (
        param(["planId", "plan"]).and_then(|id| id.parse().ok()),
        param(["stepId", "step"]).and_then(|id| id.parse().ok()),
    )
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

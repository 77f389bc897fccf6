//! Request limits: rate per token and per tenant, body size, concurrent requests and streams. A
//! request over a limit is rejected immediately.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use metrics::gauge;
use onward_core::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Site;
use super::auth::{PUBLIC_PATHS, Principal};
use super::problem::Problem;
use crate::config;

/// Requests between two evictions of inactive rate-limit keys.
const EVICTION_INTERVAL: u64 = 4_096;

/// The configured limits and their current use.
pub(super) struct Limits {
    by_token: DefaultKeyedRateLimiter<u64>,
    by_tenant: DefaultKeyedRateLimiter<Arc<str>>,
    clock: DefaultClock,
    checked: AtomicU64,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// Maximum body size, in bytes.
    pub(super) body: usize,
    request_timeout: Duration,
}

impl Limits {
    pub(super) fn new(limits: &config::Limits) -> Self {
        let per_second = |number: u32| {
            let number = NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
            Quota::per_second(number)
        };
        let semaphore = |number: u32| {
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            Arc::new(Semaphore::new(number.min(Semaphore::MAX_PERMITS)))
        };
        Self {
            by_token: RateLimiter::keyed(per_second(limits.token_calls_per_second)),
            by_tenant: RateLimiter::keyed(per_second(limits.tenant_calls_per_second)),
            clock: DefaultClock::default(),
            checked: AtomicU64::new(0),
            requests: semaphore(limits.requests),
            streams: semaphore(limits.streams),
            body: usize::try_from(limits.body_bytes).unwrap_or(usize::MAX),
            request_timeout: Duration::from_secs(u64::from(limits.request_seconds)),
        }
    }

    /// Counts a request against the rate limits of its token and tenant.
    pub(super) fn check_rate(&self, principal: &Principal) -> Result<(), Problem> {
        let checked = self.checked.fetch_add(1, Ordering::Relaxed);
        if checked % EVICTION_INTERVAL == EVICTION_INTERVAL - 1 {
            self.by_token.retain_recent();
            self.by_tenant.retain_recent();
        }
        let now = self.clock.now();
        if let Err(early) = self.by_token.check_key(&principal.key) {
            return Err(rate_limited("this caller", early.wait_time_from(now)));
        }
        if let Err(early) = self.by_tenant.check_key(&principal.caller.tenant) {
            return Err(rate_limited("this tenant", early.wait_time_from(now)));
        }
        Ok(())
    }

    pub(super) fn acquire_stream(&self) -> Result<StreamPermit, Problem> {
        match Arc::clone(&self.streams).try_acquire_owned() {
            Ok(permit) => Ok(StreamPermit::new(permit)),
            Err(_) => Err(overloaded("too many open streams")),
        }
    }

    pub(super) fn too_large(&self) -> Problem {
        Problem::new(
            Code::LimitExceeded,
            format!("the request body exceeds {} bytes", self.body),
            "send smaller requests, or raise `limits.body_bytes`",
        )
        .status(StatusCode::PAYLOAD_TOO_LARGE)
    }
}

fn rate_limited(subject: &str, wait: Duration) -> Problem {
    // Rounded up: `Retry-After: 0` would mean immediately.
    let seconds = wait.as_secs() + 1;
    Problem::new(
        Code::RateLimited,
        format!("{subject} exceeds its rate limit"),
        format!("retry in {seconds} s; the request had no effect"),
    )
    .header(RETRY_AFTER, seconds.to_string())
}

fn overloaded(reason: &str) -> Problem {
    Problem::new(
        Code::RateLimited,
        reason,
        "retry in 1 s; the request had no effect",
    )
}

/// The permit of an open stream. Counts it in `onward_open_streams`.
pub(super) struct StreamPermit {
    _permit: OwnedSemaphorePermit,
}

impl StreamPermit {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        gauge!("onward_open_streams").increment(1);
        Self { _permit: permit }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        gauge!("onward_open_streams").decrement(1);
    }
}

/// Middleware: enforces body size, concurrency and the request timeout. A streamed response counts
/// as a stream after its headers are sent.
pub(super) async fn enforce(
    State(site): State<Arc<Site>>,
    request: Request,
    next: Next,
) -> Response {
    let limits = &site.limits;
    // Other methods have taken effect when the stream starts; their response is always sent.
    let may_reject_stream = request.method() == Method::GET;
    let content_length = request.headers().get(CONTENT_LENGTH);
    let content_length =
        content_length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if content_length
        .is_some_and(|length| usize::try_from(length).unwrap_or(usize::MAX) > limits.body)
    {
        return limits.too_large().into_response();
    }
    let permit = limits.requests.try_acquire();
    // Health checks must succeed on a busy server.
    if permit.is_err() && !PUBLIC_PATHS.contains(&request.uri().path()) {
        return overloaded("too many concurrent requests").into_response();
    }
    let response = tokio::time::timeout(limits.request_timeout, next.run(request)).await;
    drop(permit);
    let Ok(response) = response else {
        return Problem::new(
            Code::Unavailable,
            format!("no response within {} s", limits.request_timeout.as_secs()),
            "check the current state before you retry; the request may have taken effect",
        )
        .into_response();
    };
    let is_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if !is_stream {
        return response;
    }
    let permit = match limits.acquire_stream() {
        Ok(permit) => permit,
        Err(problem) if may_reject_stream => return problem.into_response(),
        Err(_) => return response,
    };
    response.map(|body| {
        axum::body::Body::from_stream(body.into_data_stream().map(move |chunk| {
            let _open = &permit;
            chunk
        }))
    })
}

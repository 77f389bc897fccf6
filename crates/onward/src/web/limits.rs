//! How much is too much: calls in a second by token and by tenant, bytes in a request, requests and
//! streams at once. Each refusal comes at once, and says what to do.

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
use super::gate::{Guest, OPEN};
use super::problem::Problem;
use crate::config;

/// After so many calls, those who have not called for a while are forgotten.
const FORGET: u64 = 4_096;

/// The limits, and how much of them is used.
pub(super) struct Limits {
    by_token: DefaultKeyedRateLimiter<u64>,
    by_tenant: DefaultKeyedRateLimiter<Arc<str>>,
    clock: DefaultClock,
    calls: AtomicU64,
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// How large a request may be.
    pub(super) body: usize,
    patience: Duration,
}

impl Limits {
    pub(super) fn of(limits: &config::Limits) -> Self {
        let a_second = |number: u32| {
            let number = NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
            Quota::per_second(number)
        };
        let places = |number: u32| {
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            Arc::new(Semaphore::new(number.min(Semaphore::MAX_PERMITS)))
        };
        Self {
            by_token: RateLimiter::keyed(a_second(limits.token_calls_per_second.value)),
            by_tenant: RateLimiter::keyed(a_second(limits.tenant_calls_per_second.value)),
            clock: DefaultClock::default(),
            calls: AtomicU64::new(0),
            requests: places(limits.requests.value),
            streams: places(limits.streams.value),
            body: usize::try_from(limits.body_bytes.value).unwrap_or(usize::MAX),
            patience: Duration::from_secs(u64::from(limits.request_seconds.value)),
        }
    }

    /// Counts a call, unless it is one too many.
    pub(super) fn call(&self, guest: &Guest) -> Result<(), Problem> {
        if self.calls.fetch_add(1, Ordering::Relaxed) % FORGET == FORGET - 1 {
            self.by_token.retain_recent();
            self.by_tenant.retain_recent();
        }
        let now = self.clock.now();
        if let Err(early) = self.by_token.check_key(&guest.key) {
            return Err(too_many("this token", early.wait_time_from(now)));
        }
        if let Err(early) = self.by_tenant.check_key(&guest.caller.tenant) {
            return Err(too_many("this tenant", early.wait_time_from(now)));
        }
        Ok(())
    }

    /// A place for one more stream.
    pub(super) fn stream(&self) -> Result<Stream, Problem> {
        match Arc::clone(&self.streams).try_acquire_owned() {
            Ok(place) => Ok(Stream::open(place)),
            Err(_) => Err(busy("too many streams are open")),
        }
    }

    /// The request is larger than any may be.
    pub(super) fn too_large(&self) -> Problem {
        Problem::new(
            Code::LimitExceeded,
            format!("the request has more than {} bytes", self.body),
            "send less at once, or raise `limits.body_bytes`",
        )
        .status(StatusCode::PAYLOAD_TOO_LARGE)
    }
}

fn too_many(who: &str, wait: Duration) -> Problem {
    // A part of a second is rounded up: zero would mean at once.
    let seconds = wait.as_secs() + 1;
    Problem::new(
        Code::RateLimited,
        format!("{who} calls more often than it may"),
        format!("wait {seconds} s, then call again; nothing was done"),
    )
    .header(RETRY_AFTER, seconds.to_string())
}

fn busy(what: &str) -> Problem {
    Problem::new(
        Code::Unavailable,
        what,
        "wait a second, then call again; nothing was done",
    )
    .header(RETRY_AFTER, "1")
}

/// A place that an open stream has, until it ends.
pub(super) struct Stream {
    _place: OwnedSemaphorePermit,
}

impl Stream {
    fn open(place: OwnedSemaphorePermit) -> Self {
        gauge!("onward_open_streams").increment(1);
        Self { _place: place }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        gauge!("onward_open_streams").decrement(1);
    }
}

/// Answers a request within the limits. What it streams afterwards is counted as a stream.
pub(super) async fn hold(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let limits = &site.limits;
    // What was asked for with a body has been done by then: its answer is not withheld.
    let may_refuse = request.method() == Method::GET;
    let announced = request.headers().get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| usize::try_from(length).unwrap_or(usize::MAX) > limits.body) {
        return limits.too_large().into_response();
    }
    let place = limits.requests.try_acquire();
    // A server that has much to do is not a dead one.
    if place.is_err() && !OPEN.contains(&request.uri().path()) {
        return busy("too many requests are being answered").into_response();
    }
    let answered = tokio::time::timeout(limits.patience, next.run(request)).await;
    drop(place);
    let Ok(response) = answered else {
        return Problem::new(
            Code::Unavailable,
            format!("no answer within {} s", limits.patience.as_secs()),
            "ask where the plan stands, then call again: what was asked may still be done",
        )
        .into_response();
    };
    let streams = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if !streams {
        return response;
    }
    let stream = match limits.stream() {
        Ok(stream) => stream,
        Err(problem) if may_refuse => return problem.into_response(),
        Err(_) => return response,
    };
    response.map(|body| {
        axum::body::Body::from_stream(body.into_data_stream().map(move |piece| {
            let _open = &stream;
            piece
        }))
    })
}

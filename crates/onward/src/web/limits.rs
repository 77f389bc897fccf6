//! Request limits: rates, concurrent requests and streams, and time. A request over one of these
//! limits is rejected immediately. Reads and exports wait in fair queues (`fair_queue.rs`).
//!
//! Requests without authentication have a separate pool, and limits per address. The others
//! have limits per token and per tenant (`shares.rs`). `body.rs` has the limits of request bodies,
//! `temporary.rs` those of temporary files.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use metrics::gauge;
use onward_core::Code;
use onward_engine::with_permit;
use tokio::time::{Instant, timeout_at};

use super::Site;
use super::address::{Address, AddressPool};
use super::auth::{PUBLIC_PATHS, Principal};
use super::body::{BodyBudget, SMALL};
use super::fair_queue::{FairQueue, Permit};
use super::held_body::hold;
use super::problem::Problem;
use super::shares::{Exhausted, Shares};
use super::waiting::Lease;
use crate::config;
use crate::tools::WaitPermit;

/// Requests between two evictions of inactive rate-limit keys.
const EVICTION_INTERVAL: u64 = 4_096;
/// Concurrent requests without authentication.
const ANONYMOUS_REQUESTS: usize = 64;
/// Requests without authentication per second, from one address.
const ANONYMOUS_PER_SECOND: u32 = 50;
/// Code exchanges with the identity provider per second, from one address.
const EXCHANGES_PER_SECOND: u32 = 10;

/// Plans that are exported at the same time.
const EXPORTS: Shares = Shares {
    caller: 1,
    tenant: 1,
    all: 2,
};
/// Pages and API reads at the same time. Others wait: more would not be faster, and need memory.
const READS: Shares = Shares {
    caller: 2,
    tenant: 3,
    all: 4,
};
/// Bytes of large responses that wait in memory for their readers.
const UNREAD: usize = 32 * 1024 * 1024;
/// Bytes of temporary files.
const TEMPORARY: usize = 2 * 1024 * 1024 * 1024;
/// The unit of both.
pub(super) const KIB: usize = 1024;

/// The configured limits and their current use.
pub(super) struct Limits {
    by_token: DefaultKeyedRateLimiter<u64>,
    by_tenant: DefaultKeyedRateLimiter<Arc<str>>,
    by_address: DefaultKeyedRateLimiter<Address>,
    exchanges: DefaultKeyedRateLimiter<Address>,
    clock: DefaultClock,
    checked: AtomicU64,
    requests: Arc<FairQueue>,
    streams: Arc<FairQueue>,
    anonymous: Arc<AddressPool>,
    /// Request bodies.
    pub(super) bodies: BodyBudget,
    /// Exports that are written, and plans that are loaded whole.
    exports: Arc<FairQueue>,
    /// Requests that read, each of which may load large texts.
    reads: Arc<FairQueue>,
    unread: Arc<FairQueue>,
    /// Temporary files, in KiB.
    pub(super) temporary: Arc<FairQueue>,
    request_timeout: Duration,
}

impl Limits {
    pub(super) fn new(limits: &config::Limits) -> Self {
        let per_second = |number: u32| {
            let number = NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
            Quota::per_second(number)
        };
        let pool = |units: u32| {
            let units = usize::try_from(units).unwrap_or(usize::MAX);
            FairQueue::new(Shares::new(units))
        };
        Self {
            by_token: RateLimiter::keyed(per_second(limits.token_calls_per_second)),
            by_tenant: RateLimiter::keyed(per_second(limits.tenant_calls_per_second)),
            by_address: RateLimiter::keyed(per_second(ANONYMOUS_PER_SECOND)),
            exchanges: RateLimiter::keyed(per_second(EXCHANGES_PER_SECOND)),
            clock: DefaultClock::default(),
            checked: AtomicU64::new(0),
            requests: pool(limits.requests),
            streams: pool(limits.streams),
            anonymous: AddressPool::new(ANONYMOUS_REQUESTS),
            bodies: BodyBudget::new(usize::try_from(limits.body_bytes).unwrap_or(usize::MAX)),
            exports: FairQueue::new(EXPORTS),
            reads: FairQueue::new(READS),
            unread: FairQueue::new(Shares::new(UNREAD / KIB)),
            temporary: FairQueue::new(Shares::new(TEMPORARY / KIB)),
            request_timeout: Duration::from_secs(u64::from(limits.request_seconds)),
        }
    }

    /// Counts a request against the rate limits of its token and tenant.
    pub(super) fn check_rate(&self, principal: &Principal) -> Result<(), Problem> {
        self.evict();
        let now = self.clock.now();
        if let Err(early) = self.by_token.check_key(&principal.key) {
            return Err(rate_limited("this caller", early.wait_time_from(now)));
        }
        if let Err(early) = self.by_tenant.check_key(&principal.caller.tenant) {
            return Err(rate_limited("this tenant", early.wait_time_from(now)));
        }
        Ok(())
    }

    /// Counts a request without authentication against the rate limit of its address.
    fn check_address(&self, address: Address) -> Result<(), Problem> {
        self.evict();
        match self.by_address.check_key(&address) {
            Ok(()) => Ok(()),
            Err(early) => Err(rate_limited(
                "this address",
                early.wait_time_from(self.clock.now()),
            )),
        }
    }

    /// Counts a code exchange, which sends a request to the identity provider.
    pub(super) fn check_exchange(&self, address: Address) -> Result<(), Problem> {
        match self.exchanges.check_key(&address) {
            Ok(()) => Ok(()),
            Err(early) => Err(rate_limited(
                "this address",
                early.wait_time_from(self.clock.now()),
            )),
        }
    }

    /// Drops inactive keys from time to time, which bounds their number.
    fn evict(&self) {
        let checked = self.checked.fetch_add(1, Ordering::Relaxed);
        if checked % EVICTION_INTERVAL == EVICTION_INTERVAL - 1 {
            self.by_token.retain_recent();
            self.by_tenant.retain_recent();
            self.by_address.retain_recent();
            self.exchanges.retain_recent();
        }
    }

    /// Waits for the turn of an export. Meanwhile the request holds no other permit.
    pub(super) async fn start_export(&self, principal: &Principal, lease: &Lease) {
        lease.end_work();
        lease.start_work(self.exports.acquire(principal, 1).await);
    }

    fn acquire_stream(&self, principal: &Principal) -> Result<StreamPermit, Problem> {
        match self.streams.try_acquire(principal, 1) {
            Ok(slot) => Ok(StreamPermit::new(slot)),
            Err(exhausted) => Err(too_many("open streams", exhausted)),
        }
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

pub(super) fn too_many(what: &str, exhausted: Exhausted) -> Problem {
    overloaded(&format!("too many {what} {}", exhausted.as_str()))
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
    _slot: Permit,
}

impl StreamPermit {
    fn new(slot: Permit) -> Self {
        gauge!("onward_open_streams").increment(1);
        Self { _slot: slot }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        gauge!("onward_open_streams").decrement(1);
    }
}

/// Middleware: enforces the request timeout. It covers authentication, too.
pub(super) async fn enforce_timeout(
    State(site): State<Arc<Site>>,
    mut request: Request,
    next: Next,
) -> Response {
    let timeout = site.limits.request_timeout;
    let started = Instant::now();
    let lease = Lease::default();
    request.extensions_mut().insert(lease.clone());
    let mut response = std::pin::pin!(next.run(request));
    let mut deadline = started + timeout;
    loop {
        if let Ok(response) = timeout_at(deadline, response.as_mut()).await {
            return response;
        }
        let extended = started + timeout + lease.extension();
        if extended <= deadline {
            return Problem::new(
                Code::Unavailable,
                format!("no response within {} s", timeout.as_secs()),
                "check the current state before you retry; the request may have taken effect",
            )
            .into_response();
        }
        deadline = extended;
    }
}

/// Middleware after authentication: enforces the shares of the caller, or the limits of the address.
pub(super) async fn admit(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    match request.extensions().get::<Principal>().cloned() {
        Some(principal) => run_as(&site.limits, &principal, request, next).await,
        None => run_anonymous(&site.limits, request, next).await,
    }
}

/// Runs a request without authentication, within the limits of its address.
async fn run_anonymous(limits: &Limits, request: Request, next: Next) -> Response {
    // Health checks must succeed on a busy server.
    if PUBLIC_PATHS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let address = Address::from_request(&request);
    if !request.uri().path().starts_with("/assets/")
        && let Err(problem) = limits.check_address(address)
    {
        return problem.into_response();
    }
    let Some(_slot) = limits.anonymous.acquire(address) else {
        return overloaded("too many concurrent requests without authentication").into_response();
    };
    next.run(request).await
}

/// A permit with which the request counts as a stream while it waits.
fn wait_permit(limits: &Limits, principal: &Principal, lease: &Lease) -> WaitPermit {
    let (streams, principal) = (Arc::clone(&limits.streams), principal.clone());
    let lease = lease.clone();
    WaitPermit::new(move |wait| {
        let slot = streams.try_acquire(&principal, 1);
        slot.is_ok_and(|slot| {
            lease.hold(StreamPermit::new(slot));
            lease.end_work();
            lease.extend(wait);
            true
        })
    })
}

/// Whether a `GET` of this path waits for its client.
fn is_stream_path(path: &str) -> bool {
    path == "/mcp"
}

/// Runs an authenticated request within the shares of its caller. A streamed response counts as a
/// stream after its headers are sent.
async fn run_as(
    limits: &Limits,
    principal: &Principal,
    mut request: Request,
    next: Next,
) -> Response {
    // Other methods have taken effect when the stream starts; their response is always sent.
    let may_reject_stream = request.method() == Method::GET;
    let slot = match limits.requests.try_acquire(principal, 1) {
        Ok(slot) => slot,
        Err(exhausted) => return too_many("concurrent requests", exhausted).into_response(),
    };
    let lease = request.extensions().get::<Lease>().cloned();
    let lease = lease.unwrap_or_default();
    lease.hold(slot);
    let permit = wait_permit(limits, principal, &lease);
    request.extensions_mut().insert(permit);
    let reads = request.method() == Method::GET && !is_stream_path(request.uri().path());
    if reads {
        lease.start_work(limits.reads.acquire(principal, 1).await);
    }
    // A read that runs on another thread keeps the permit until it ends.
    let response = with_permit(lease.keep(), next.run(request)).await;
    lease.end_work();
    let is_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if !is_stream {
        let unread = match unread_bytes(limits, principal, &response) {
            Ok(unread) => unread,
            Err(problem) if reads => return problem.into_response(),
            // It has taken effect.
            Err(_) => None,
        };
        return hold(response, (lease.take(), unread));
    }
    drop(lease.take());
    match limits.acquire_stream(principal) {
        Ok(permit) => hold(response, permit),
        Err(problem) if may_reject_stream => problem.into_response(),
        Err(_) => response,
    }
}

/// Counts the bytes of a large response, until they are sent.
fn unread_bytes(
    limits: &Limits,
    principal: &Principal,
    response: &Response,
) -> Result<Option<Permit>, Problem> {
    let bytes = response.body().size_hint().exact();
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let Some(bytes) = bytes.filter(|bytes| *bytes > SMALL) else {
        return Ok(None);
    };
    let permit = limits.unread.try_acquire(principal, bytes.div_ceil(KIB));
    let permit = permit.map_err(|exhausted| too_many("unread responses", exhausted))?;
    Ok(Some(permit))
}

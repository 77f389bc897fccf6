//! Request bodies in memory: a size limit per route, deadlines, and budgets with fair shares per
//! token and tenant.
//!
//! The bytes of a large body count when they arrive, not when they are announced. A body that
//! exceeds its share of the budget waits for one of two places, which have room for the largest body
//! each. No body waits while another one needs its part, so there is no deadlock.
//!
//! A parsed JSON value can be fifty times as large as its text. Its size is estimated before it is
//! parsed, and the request waits until the budget of values has room for it. Small requests need no
//! budget: their number is limited.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use futures_util::StreamExt as _;
use onward_core::Code;
use tokio::time::{Instant, timeout_at};

use super::auth::Principal;
use super::fair_queue::{FairQueue, Permit};
use super::problem::Problem;
use super::shares::Shares;
use crate::json_size::estimate;

/// The size limit of most routes.
pub(super) const SMALL: usize = 64 * 1024;
/// The size limit of routes with a text of [`MAX_CONTENT_BYTES`](onward_core::policy), escaped.
pub(super) const DOCUMENT: usize = 4 * 1024 * 1024;
/// The size limit of requests without authentication.
pub(super) const SIGN_IN: usize = 8 * 1024;

/// How long a body may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The same for requests without authentication.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a body may pause, also before its first byte.
const PAUSE: Duration = Duration::from_secs(5);
/// Bytes of all large bodies together that are within the shares of their callers.
const BODIES: usize = 8 * 1024 * 1024;
/// Places for bodies that exceed these shares. One tenant has at most one.
const PLACES: Shares = Shares {
    caller: 1,
    tenant: 1,
    all: 2,
};
/// Estimated bytes of all parsed bodies together.
const VALUES: usize = 32 * 1024 * 1024;
/// The unit of the budgets.
const UNIT: usize = 1024;

/// Memory for bodies and for the values parsed from them.
pub(super) struct BodyBudget {
    bodies: Arc<FairQueue>,
    places: Arc<FairQueue>,
    values: Arc<FairQueue>,
    /// Estimated bytes of one parsed body.
    max_value: usize,
    /// The configured size limit of all routes.
    max: usize,
}

/// A body, with its share of the budgets.
pub(super) struct BodyBytes {
    pub(super) bytes: Bytes,
    /// For the bytes.
    pub(super) arrived: Arrived,
    /// For the value parsed from them, which includes its texts.
    pub(super) value: Option<Permit>,
}

/// The share of the bytes that have arrived.
#[derive(Default)]
pub(super) struct Arrived {
    share: Option<Permit>,
    place: Option<Permit>,
}

impl BodyBudget {
    pub(super) fn new(max: usize) -> Self {
        // One tenant leaves a quarter to the others.
        let values = Shares::new(VALUES.max(max / 3 * 4) / UNIT);
        let values = Shares {
            caller: values.tenant,
            ..values
        };
        Self {
            bodies: FairQueue::new(Shares::new(BODIES / UNIT)),
            places: FairQueue::new(PLACES),
            max_value: values.tenant * UNIT,
            values: FairQueue::new(values),
            max,
        }
    }

    /// Reads a JSON body.
    pub(super) async fn read_json(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        body: Body,
        max: usize,
    ) -> Result<BodyBytes, Problem> {
        let mut body = self.read_form(principal, headers, body, max).await?;
        let estimate = estimate(&body.bytes);
        if estimate > self.max_value {
            return Err(Problem::new(
                Code::LimitExceeded,
                "the request body contains too many JSON values",
                "send smaller requests",
            )
            .status(StatusCode::PAYLOAD_TOO_LARGE));
        }
        // The texts of the value exist twice: while it is parsed, and while it is stored.
        let used = estimate + body.bytes.len();
        if used > SMALL {
            let permit = self.values.acquire(principal, used.div_ceil(UNIT));
            body.value = Some(permit.await);
        }
        Ok(body)
    }

    /// Reads a form.
    pub(super) async fn read_form(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        body: Body,
        max: usize,
    ) -> Result<BodyBytes, Problem> {
        self.read_within(Some(principal), headers, body, max, TIMEOUT)
            .await
    }

    /// Reads the form of a request without authentication.
    pub(super) async fn read_sign_in(
        &self,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<BodyBytes, Problem> {
        self.read_within(None, headers, body, SIGN_IN, SIGN_IN_TIMEOUT)
            .await
    }

    async fn read_within(
        &self,
        principal: Option<&Principal>,
        headers: &HeaderMap,
        body: Body,
        max: usize,
        timeout: Duration,
    ) -> Result<BodyBytes, Problem> {
        let max = max.min(self.max);
        let declared = declared_length(headers);
        if declared.is_some_and(|length| length > max) {
            return Err(too_large(max));
        }
        let mut deadline = Instant::now() + timeout;
        let mut arrived = Arrived::default();
        let mut bytes = Vec::new();
        let mut body = body.into_data_stream();
        loop {
            let pause = Instant::now() + PAUSE;
            let data = match timeout_at(deadline.min(pause), body.next()).await {
                Ok(Some(Ok(data))) => data,
                Ok(Some(Err(_))) => return Err(incomplete()),
                Ok(None) => break,
                Err(_) if deadline <= pause => return Err(too_slow("arrive within", timeout)),
                Err(_) => return Err(too_slow("continue within", PAUSE)),
            };
            let length = bytes.len() + data.len();
            if length > max {
                return Err(too_large(max));
            }
            if let Some(principal) = principal.filter(|_| length > SMALL) {
                let asked = Instant::now();
                arrived.count(self, principal, length).await;
                deadline += asked.elapsed();
            }
            if length > bytes.capacity() {
                // Memory that is not written to is not used, so the whole body gets one allocation.
                let doubled = (2 * length).min(max);
                let capacity = declared.filter(|_| length > SMALL).unwrap_or(doubled);
                bytes.reserve_exact(capacity.max(length) - bytes.len());
            }
            bytes.extend_from_slice(&data);
        }
        Ok(BodyBytes {
            bytes: bytes.into(),
            arrived,
            value: None,
        })
    }
}

impl Arrived {
    /// Counts bytes against the share of the caller. If it is used up, waits for a place.
    async fn count(&mut self, budget: &BodyBudget, principal: &Principal, bytes: usize) {
        if self.place.is_some() {
            return;
        }
        let units = bytes.div_ceil(UNIT);
        let counted = match &mut self.share {
            Some(share) => share.try_grow(units.saturating_sub(share.units())),
            None => budget
                .bodies
                .try_acquire(principal, units)
                .map(|share| self.share = Some(share)),
        };
        if counted.is_err() {
            self.place = Some(budget.places.acquire(principal, 1).await);
        }
    }
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    let length = headers.get(CONTENT_LENGTH)?.to_str().ok()?;
    // A number that does not fit is too large for every limit.
    let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| length.parse().unwrap_or(usize::MAX))
}

fn too_large(max: usize) -> Problem {
    Problem::new(
        Code::LimitExceeded,
        format!("the request body exceeds {max} bytes"),
        "send smaller requests; `limits.body_bytes` is the limit of the largest routes",
    )
    .status(StatusCode::PAYLOAD_TOO_LARGE)
}

/// The client has disconnected, or sent a body that is not valid HTTP.
fn incomplete() -> Problem {
    Problem::new(
        Code::InvalidInput,
        "the request body is incomplete",
        "send the whole body; the request had no effect",
    )
}

fn too_slow(what: &str, timeout: Duration) -> Problem {
    let seconds = timeout.as_secs();
    Problem::new(
        Code::LimitExceeded,
        format!("the request body did not {what} {seconds} s"),
        "send the whole body without pauses; the request had no effect",
    )
    .status(StatusCode::REQUEST_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lengths_that_do_not_fit() {
        let length = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_LENGTH, text.parse().unwrap());
            declared_length(&headers)
        };
        assert_eq!(length("12"), Some(12));
        assert_eq!(length("99999999999999999999999"), Some(usize::MAX));
        assert_eq!(length("-1"), None);
    }
}

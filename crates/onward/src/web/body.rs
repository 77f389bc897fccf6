//! Request bodies in memory: a size limit per route, a deadline, and a budget of the whole server.
//!
//! A parsed JSON value can be fifty times as large as its text. Its size is estimated before it is
//! parsed, and counts against the budget, too. A request that exceeds the free budget waits for it;
//! small requests need none.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use onward_core::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;

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
/// Bytes of all large bodies together.
const BODIES: usize = 16 * 1024 * 1024;
/// Estimated bytes of all parsed bodies together.
const VALUES: usize = 32 * 1024 * 1024;
/// Estimated bytes of one parsed body.
const MAX_VALUE: usize = VALUES;
/// The unit of the budgets.
const UNIT: usize = 1024;

/// Memory for bodies and for the values parsed from them.
pub(super) struct BodyBudget {
    bodies: Arc<Semaphore>,
    values: Arc<Semaphore>,
    /// The configured size limit of all routes.
    max: usize,
}

/// A body, with its share of the budget.
pub(super) struct BodyBytes {
    pub(super) bytes: Bytes,
    permits: [Option<OwnedSemaphorePermit>; 2],
}

impl BodyBudget {
    pub(super) fn new(max: usize) -> Self {
        let budget = |bytes: usize| Arc::new(Semaphore::new(bytes.max(max) / UNIT));
        Self {
            bodies: budget(BODIES),
            values: budget(VALUES),
            max,
        }
    }

    /// Reads a JSON body.
    pub(super) async fn read_json(
        &self,
        headers: &HeaderMap,
        body: Body,
        max: usize,
    ) -> Result<BodyBytes, Problem> {
        let mut body = self.read_within(headers, body, max, TIMEOUT).await?;
        let estimate = estimate(&body.bytes);
        if estimate > MAX_VALUE {
            return Err(Problem::new(
                Code::LimitExceeded,
                "the request body contains too many JSON values",
                "send smaller requests",
            )
            .status(StatusCode::PAYLOAD_TOO_LARGE));
        }
        let [_, values] = &mut body.permits;
        *values = acquire(&self.values, estimate).await;
        Ok(body)
    }

    /// Reads a form.
    pub(super) async fn read_form(
        &self,
        headers: &HeaderMap,
        body: Body,
        max: usize,
    ) -> Result<BodyBytes, Problem> {
        self.read_within(headers, body, max, TIMEOUT).await
    }

    /// Reads the form of a request without authentication.
    pub(super) async fn read_sign_in(
        &self,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<BodyBytes, Problem> {
        self.read_within(headers, body, SIGN_IN, SIGN_IN_TIMEOUT)
            .await
    }

    async fn read_within(
        &self,
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
        let permit = acquire(&self.bodies, declared.unwrap_or(max)).await;
        match tokio::time::timeout(timeout, to_bytes(body, max)).await {
            Ok(Ok(bytes)) => Ok(BodyBytes {
                bytes,
                permits: [permit, None],
            }),
            // Other errors close the connection, so this is the size limit.
            Ok(Err(_)) => Err(too_large(max)),
            Err(_) => Err(too_slow(timeout)),
        }
    }
}

/// Waits for a part of a budget. Small parts need none: their number is limited.
async fn acquire(budget: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    if bytes <= SMALL {
        return None;
    }
    let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
    // The semaphore is never closed.
    Arc::clone(budget).acquire_many_owned(units).await.ok()
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

fn too_slow(timeout: Duration) -> Problem {
    let seconds = timeout.as_secs();
    Problem::new(
        Code::LimitExceeded,
        format!("the request body did not arrive within {seconds} s"),
        "send the whole body without pauses; the request had no effect",
    )
    .status(StatusCode::REQUEST_TIMEOUT)
}

/// Estimates the size of a JSON text after parsing, from its structure: a map has room for eleven
/// fields, a list for four values.
fn estimate(json: &[u8]) -> usize {
    const MAP: usize = 704;
    const LIST: usize = 192;
    const ENTRY: usize = 64;
    let mut size = json.len();
    let (mut in_string, mut escaped) = (false, false);
    for byte in json {
        match (byte, in_string) {
            (_, true) if escaped => escaped = false,
            (b'\\', true) => escaped = true,
            (b'"', _) => in_string = !in_string,
            (b'{', false) => size += MAP,
            (b'[', false) => size += LIST,
            (b',', false) => size += ENTRY,
            _ => {}
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_structure_but_not_text() {
        assert_eq!(estimate(br#""[{,\"[{,""#), 10);
        assert_eq!(estimate(b"[1,2]"), 5 + 192 + 64);
        let many = format!("[{}]", "{\"a\":0},".repeat(1_000));
        assert!(estimate(many.as_bytes()) > 700_000);
    }

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

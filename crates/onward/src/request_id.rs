//! The id of an HTTP request: in the response header `x-request-id`, in the log lines of the request
//! and in error bodies.
//!
//! A client or reverse proxy can send its own id. The tasks that serve the request inherit it with
//! [`RequestId::scope`].

use std::fmt;
use std::sync::Arc;

/// Maximum length of an id from a client.
const MAX_LENGTH: usize = 128;

tokio::task_local! {
    static CURRENT: RequestId;
}

/// The id of an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(Arc<str>);

impl RequestId {
    /// The name of the header, in requests and responses.
    pub(crate) const HEADER: &str = "x-request-id";

    /// The id that the client sent, if it is valid; otherwise a new one.
    pub(crate) fn new(sent: Option<&str>) -> Self {
        let valid = sent.filter(|id| is_valid(id));
        Self(valid.map_or_else(random, Arc::from))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Serves a part of the request.
    pub(crate) async fn scope<T>(self, part: impl Future<Output = T>) -> T {
        CURRENT.scope(self, part).await
    }

    /// The id of the request that this task serves.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the id can be part of a log line, a header and a page without escapes.
fn is_valid(id: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+/=".contains(&byte);
    (1..=MAX_LENGTH).contains(&id.len()) && id.bytes().all(is_allowed)
}

fn random() -> Arc<str> {
    let mut bytes = [0; 16];
    // Ids need not be unpredictable; without random bytes of the system, requests share one.
    getrandom::fill(&mut bytes).unwrap_or_default();
    Arc::from(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_ids_that_need_no_escapes() {
        for valid in ["a", "4bf92f35-77b3:1/2+3=_.", &"x".repeat(MAX_LENGTH)] {
            assert_eq!(RequestId::new(Some(valid)).as_str(), valid);
        }
        let long = "x".repeat(MAX_LENGTH + 1);
        for invalid in ["", " ", "a b", "a,b", "a}", "a\"", "ä", &long] {
            let id = RequestId::new(Some(invalid));
            assert!(id.as_str().len() == 32 && is_valid(id.as_str()), "{id}");
        }
        assert_ne!(RequestId::new(None), RequestId::new(None));
    }

    #[tokio::test]
    async fn is_known_to_the_task_of_the_request_only() {
        let id = RequestId::new(Some("r-1"));
        let known = id.clone().scope(async { RequestId::current() }).await;
        assert_eq!(known, Some(id));
        assert_eq!(RequestId::current(), None);
    }
}

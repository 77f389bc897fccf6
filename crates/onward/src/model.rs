//! HTTP clients for models: embeddings (`model/embeddings.rs`) and completions
//! (`model/completion.rs`).
//!
//! Every attempt has a timeout, the number of attempts is limited, and `Retry-After` is capped. The
//! API key is sent to the server only; it is removed from errors and never logged.

pub(crate) mod completion;
pub(crate) mod embeddings;

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use serde_json::Value;

use crate::config::ApiKey;

/// The delay before the first retry. It doubles with each retry.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
/// The maximum delay, including for `Retry-After`.
const MAX_BACKOFF: Duration = Duration::from_secs(20);
/// The maximum response size in bytes.
const MAX_RESPONSE: usize = 64 * 1024 * 1024;
/// Characters of a server's error message that are reported.
const MAX_ERROR_MESSAGE: usize = 300;

/// Why a model request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelError {
    /// The server is unreachable or overloaded, or its response is invalid.
    Unavailable(String),
    /// The server rejected this request.
    Rejected(String),
}

/// The attempts of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryPolicy {
    pub(crate) attempts: u32,
    /// Per attempt.
    pub(crate) timeout: Duration,
    pub(crate) backoff: Duration,
}

impl RetryPolicy {
    pub(crate) fn new(attempts: u32, timeout: Duration) -> Self {
        Self {
            attempts,
            timeout,
            backoff: INITIAL_BACKOFF,
        }
    }
}

/// A client that posts JSON. Created on first use, because most processes never send a request.
#[derive(Default)]
pub(crate) struct JsonClient {
    client: OnceLock<Option<reqwest::Client>>,
}

/// A failed attempt.
struct FailedAttempt {
    message: String,
    retry: Retry,
    /// The server rejected the request itself.
    rejected: bool,
}

/// Whether another attempt may succeed.
enum Retry {
    Never,
    /// After the backoff, or after the server's `Retry-After`.
    After(Option<Duration>),
}

impl JsonClient {
    /// Posts a JSON body and parses the JSON response. Retries temporary failures.
    pub(crate) async fn post(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        key: Option<&ApiKey>,
        body: &Value,
        policy: RetryPolicy,
    ) -> Result<Value, ModelError> {
        let mut backoff = policy.backoff;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let failed = match self.attempt(url, headers, body, policy.timeout).await {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            match failed.retry {
                Retry::After(delay) if attempts < policy.attempts => {
                    let delay = delay.unwrap_or_else(|| jittered(backoff));
                    tokio::time::sleep(delay.min(MAX_BACKOFF)).await;
                    backoff *= 2;
                }
                Retry::After(_) | Retry::Never => {
                    let message = redact(failed.message, key);
                    return Err(if failed.rejected {
                        ModelError::Rejected(message)
                    } else {
                        ModelError::Unavailable(message)
                    });
                }
            }
        }
    }

    async fn attempt(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: &Value,
        timeout: Duration,
    ) -> Result<Value, FailedAttempt> {
        let failed = |message: String, retry: Retry| FailedAttempt {
            message,
            retry,
            rejected: false,
        };
        let lost = |why: reqwest::Error| failed(root_cause(&why), Retry::After(None));
        let client = self.client().ok_or_else(|| {
            let message = "cannot initialize TLS; check the system's trusted certificates";
            failed(message.to_owned(), Retry::Never)
        })?;
        let mut request = client
            .post(url)
            .timeout(timeout)
            .header("content-type", "application/json")
            .body(body.to_string());
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let mut response = request.send().await.map_err(lost)?;
        let status = response.status();
        let delay = retry_after(&response);
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if body.len() + chunk.len() > MAX_RESPONSE {
                let message = format!("the response has more than {MAX_RESPONSE} bytes");
                return Err(failed(message, Retry::Never));
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|why| {
                let message = format!("the response is not JSON: {why}");
                failed(message, Retry::After(None))
            });
        }
        let temporary = status.is_server_error()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT;
        let rejected = [
            StatusCode::BAD_REQUEST,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNPROCESSABLE_ENTITY,
        ];
        Err(FailedAttempt {
            message: format!("HTTP {status}: {}", error_message(&body)),
            retry: if temporary {
                Retry::After(delay)
            } else {
                Retry::Never
            },
            rejected: rejected.contains(&status),
        })
    }

    fn client(&self) -> Option<&reqwest::Client> {
        let client = self.client.get_or_init(|| {
            // Process-wide. Another part of the process may have installed it already.
            drop(rustls::crypto::ring::default_provider().install_default());
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .user_agent(concat!("onward/", env!("CARGO_PKG_VERSION")))
                .build()
                .ok()
        });
        client.as_ref()
    }
}

fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

/// The error message in a response, or the start of the body.
fn error_message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let parsed: Option<Value> = serde_json::from_str(&text).ok();
    let message = parsed.as_ref().and_then(|json| {
        let error = json.get("error")?;
        error.get("message").unwrap_or(error).as_str()
    });
    let message: Vec<&str> = message.unwrap_or(&text).split_whitespace().collect();
    message.join(" ").chars().take(MAX_ERROR_MESSAGE).collect()
}

/// The root cause of an error. It does not contain the URL, which may contain credentials.
fn root_cause(why: &reqwest::Error) -> String {
    if why.is_timeout() {
        return "request timed out".to_owned();
    }
    let mut root: &dyn std::error::Error = why;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

/// Removes the key from a text.
fn redact(text: String, key: Option<&ApiKey>) -> String {
    match key {
        Some(key) => text.replace(key.as_str(), "…"),
        None => text,
    }
}

/// Adds jitter, so that clients rejected together do not retry together.
fn jittered(backoff: Duration) -> Duration {
    let mut random = [0u8; 1];
    // Without randomness there is no jitter, which is not an error.
    let _ = getrandom::fill(&mut random);
    backoff.mul_f64(0.75 + f64::from(random[0]) / 512.0)
}

#[cfg(test)]
pub(crate) mod tests;

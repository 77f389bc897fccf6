//! Webhook delivery: one signed request per notification.
//!
//! The signature covers the timestamp and the body, which prevents replay. Redirects are not
//! followed, only the response status is read, and a request times out after [`TIMEOUT`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::CONTENT_TYPE;
use sha2::Sha256;

use super::message;
use crate::config::{self, MessageFormat};
use crate::wire::notification::Notification;

/// Timeout of a request.
pub(super) const TIMEOUT: Duration = Duration::from_secs(8);

/// Notification id; the same for every attempt.
const ID: &str = "onward-notice";
/// Attempt number, starting at 1.
const TRY: &str = "onward-try";
/// Time of the request, in seconds since 1970.
const TIMESTAMP: &str = "onward-timestamp";
/// `sha256=` and the signature in hex.
const SIGNATURE: &str = "onward-signature";

/// The receiver of notifications.
pub(super) struct Webhook {
    client: reqwest::Client,
    url: String,
    secret: String,
    format: MessageFormat,
}

impl Webhook {
    /// Returns `None` unless both a webhook and a secret are configured.
    pub(super) fn new(notify: &config::Notify) -> Result<Option<Self>, reqwest::Error> {
        let (Some(url), Some(secret)) = (&notify.webhook, &notify.secret) else {
            return Ok(None);
        };
        // Installed once per process; a second installation fails and is ignored.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("onward/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Some(Self {
            client,
            url: url.clone(),
            secret: secret.clone(),
            format: notify.format,
        }))
    }

    /// Sends a notification. The error states why it was not accepted.
    pub(super) async fn send(&self, notification: &Notification, tries: u32) -> Result<(), String> {
        let body = message::body(notification, self.format).map_err(|why| why.to_string())?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.map_or(0, |now| now.as_secs()).to_string();
        let signature = sign(&self.secret, &seconds, &body).ok_or("cannot sign the request")?;
        let request = self
            .client
            .post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ID, &notification.id)
            .header(TRY, tries)
            .header(TIMESTAMP, seconds)
            .header(SIGNATURE, format!("sha256={signature}"))
            .body(body);
        match request.send().await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(format!("the webhook returned {}", response.status())),
            // The address may be a secret, so errors do not contain it.
            Err(why) if why.is_timeout() => {
                let seconds = TIMEOUT.as_secs();
                Err(format!("the webhook timed out after {seconds} s"))
            }
            Err(why) => Err(format!("cannot reach the webhook: {}", reason(&why))),
        }
    }
}

/// The innermost source of the error, which does not contain the address.
fn reason(why: &reqwest::Error) -> String {
    let mut source = std::error::Error::source(why);
    let mut innermost = "the request failed".to_owned();
    while let Some(deeper) = source {
        innermost = deeper.to_string();
        source = deeper.source();
    }
    innermost
}

/// HMAC-SHA256 over timestamp, dot and body, in hex.
fn sign(secret: &str, seconds: &str, body: &str) -> Option<String> {
    use std::fmt::Write;
    // HMAC accepts keys of any length, so this does not fail.
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    for text in [seconds, ".", body] {
        mac.update(text.as_bytes());
    }
    let bytes = mac.finalize().into_bytes();
    let text = bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_the_same_signature_as_openssl() {
        // printf '1790000000.{}' | openssl dgst -sha256 -hmac key
        assert_eq!(sign("key", "1790000000", "{}").as_deref(), Some(EXPECTED));
        assert_ne!(sign("key", "1790000001", "{}").as_deref(), Some(EXPECTED));
        assert_ne!(sign("kez", "1790000000", "{}").as_deref(), Some(EXPECTED));
    }

    const EXPECTED: &str = "099d33989336226b12c85da813adf6100e1bbab1e91bede9a41ddeb7882d66b8";
}

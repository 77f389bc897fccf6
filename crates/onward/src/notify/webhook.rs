//! One webhook: a finding goes out as JSON, signed, and whether it was taken comes back.
//!
//! The signature is over the instant and the body, so that nobody can say the same again later. No
//! redirect is followed, nothing of the answer is read but its status, and nobody is waited for longer
//! than [`PATIENCE`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::CONTENT_TYPE;
use sha2::Sha256;

use crate::wire::notice::Notice;

/// How long the receiver may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(8);

/// Which finding it is: the same for every try.
const ID: &str = "onward-notice";
/// Which try it is, from 1.
const TRY: &str = "onward-try";
/// When it was sent, in seconds since 1970.
const TIMESTAMP: &str = "onward-timestamp";
/// `sha256=` and the signature in hex.
const SIGNATURE: &str = "onward-signature";

/// Where findings go.
pub(super) struct Webhook {
    client: reqwest::Client,
    url: String,
    secret: String,
}

impl Webhook {
    pub(super) fn new(url: &str, secret: &str) -> Result<Self, reqwest::Error> {
        // One for the whole process; that it is there already is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("onward/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self {
            client,
            url: url.to_owned(),
            secret: secret.to_owned(),
        })
    }

    /// Sends it, or says why it was not taken.
    pub(super) async fn send(&self, notice: &Notice, tries: u32) -> Result<(), String> {
        let body = serde_json::to_string(notice).map_err(|why| why.to_string())?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.map_or(0, |now| now.as_secs()).to_string();
        let signature = sign(&self.secret, &seconds, &body).ok_or("it cannot be signed")?;
        let asked = self
            .client
            .post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ID, &notice.id)
            .header(TRY, tries)
            .header(TIMESTAMP, seconds)
            .header(SIGNATURE, format!("sha256={signature}"))
            .body(body);
        match asked.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("the webhook answers {}", answer.status())),
            // Without the address, which may be a secret.
            Err(why) if why.is_timeout() => {
                let seconds = PATIENCE.as_secs();
                Err(format!("the webhook does not answer within {seconds} s"))
            }
            Err(why) => Err(format!("the webhook cannot be reached: {}", reason(&why))),
        }
    }
}

/// The innermost reason, which names what happened and no address.
fn reason(why: &reqwest::Error) -> String {
    let mut source = std::error::Error::source(why);
    let mut innermost = "the request could not be made".to_owned();
    while let Some(deeper) = source {
        innermost = deeper.to_string();
        source = deeper.source();
    }
    innermost
}

/// HMAC-SHA256 over the instant, a dot, and the body, in hex.
fn sign(secret: &str, seconds: &str, body: &str) -> Option<String> {
    use std::fmt::Write;
    // A key of any length will do; there is no way for this to fail.
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
    fn the_signature_is_the_one_that_everybody_else_computes() {
        // printf '1790000000.{}' | openssl dgst -sha256 -hmac key
        assert_eq!(sign("key", "1790000000", "{}").as_deref(), Some(EXPECTED));
        assert_ne!(sign("key", "1790000001", "{}").as_deref(), Some(EXPECTED));
        assert_ne!(sign("kez", "1790000000", "{}").as_deref(), Some(EXPECTED));
    }

    const EXPECTED: &str = "099d33989336226b12c85da813adf6100e1bbab1e91bede9a41ddeb7882d66b8";
}

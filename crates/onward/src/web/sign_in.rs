//! OpenID Connect sign-in: the authorization code flow with PKCE, `state` and `nonce`.
//!
//! The server keeps no state between redirect and callback. The random `state` is signed into a
//! cookie of the browser; the code verifier and the nonce are derived from it with the server's
//! key. A callback is accepted only with this cookie, and for ten minutes. The id token is
//! validated like every other token of the provider (`issuer.rs`), with our client as audience.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use onward_core::{Code, Timestamp};
use reqwest::Url;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::cookies::CookieSigner;
use super::keys::Discovery;
use super::problem::Problem;
use crate::config;

/// Redirect URI path.
pub(super) const CALLBACK: &str = "/login/callback";
/// Lifetime of a sign-in attempt.
pub(super) const ATTEMPT_LIFETIME: Duration = Duration::from_secs(600);
const MAX_RESPONSE_BYTES: usize = 256 * 1024;
/// Separates signatures of sign-in cookies from other signatures of the server's key.
const COOKIE_PURPOSE: &str = "sign-in";

/// Our OAuth client at the identity provider.
pub(super) struct Client {
    id: String,
    secret: Option<String>,
}

/// A sign-in attempt, from the redirect to the callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SignInAttempt {
    /// The random `state` parameter.
    pub(super) state: String,
    /// The page to return to.
    pub(super) back: String,
}

/// The provider's response to a code exchange.
#[derive(Deserialize)]
pub(super) struct TokenResponse {
    pub(super) id_token: String,
    /// The granted scopes, if they differ from the requested ones.
    pub(super) scope: Option<String>,
}

impl Client {
    /// The configured client, if there is one.
    pub(super) fn from_config(issuer: &config::Issuer) -> Option<Self> {
        Some(Self {
            id: issuer.client_id.clone()?,
            secret: issuer.client_secret.clone(),
        })
    }

    /// The client id, which is the audience of id tokens.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The URL of the provider's sign-in page.
    pub(super) fn authorization_url(
        &self,
        provider: &Discovery,
        scopes: &[String],
        base: &str,
        attempt: &SignInAttempt,
        signer: &CookieSigner,
    ) -> Result<String, Problem> {
        let endpoint = provider.endpoint(provider.authorization_endpoint.as_deref());
        let endpoint = endpoint.map_err(|reason| provider_unusable(&reason))?;
        let mut url = endpoint
            .parse::<Url>()
            .map_err(|error| provider_unusable(&error.to_string()))?;
        let mut scope = vec!["openid"];
        scope.extend(
            scopes
                .iter()
                .map(String::as_str)
                .filter(|scope| *scope != "openid"),
        );
        let challenge = Sha256::digest(code_verifier(signer, &attempt.state).as_bytes());
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.id)
            .append_pair("redirect_uri", &format!("{base}{CALLBACK}"))
            .append_pair("scope", &scope.join(" "))
            .append_pair("state", &attempt.state)
            .append_pair("nonce", &nonce(signer, &attempt.state))
            .append_pair("code_challenge", &BASE64_URL_SAFE_NO_PAD.encode(challenge))
            .append_pair("code_challenge_method", "S256");
        Ok(url.into())
    }

    /// Exchanges an authorization code for an id token.
    pub(super) async fn exchange_code(
        &self,
        provider: &Discovery,
        code: &str,
        base: &str,
        state: &str,
        signer: &CookieSigner,
    ) -> Result<TokenResponse, Problem> {
        let endpoint = provider.endpoint(provider.token_endpoint.as_deref());
        let endpoint = endpoint.map_err(|reason| provider_unusable(&reason))?;
        let redirect = format!("{base}{CALLBACK}");
        let verifier = code_verifier(signer, state);
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &redirect),
            ("client_id", &self.id),
            ("code_verifier", &verifier),
        ];
        let mut request = provider.client().post(endpoint);
        match &self.secret {
            Some(secret) if provider.takes_secret_in_body() => {
                fields.push(("client_secret", secret));
            }
            Some(secret) => {
                let (id, secret) = (urlencode(&self.id), urlencode(secret));
                request = request.basic_auth(id, Some(secret));
            }
            None => {}
        }
        let request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json")
            .body(encode_form(&fields));
        let response = request.send().await.map_err(|error| {
            tracing::warn!(%error, "code exchange with the identity provider failed");
            provider_unreachable()
        })?;
        let status = response.status();
        let body = read_body(response).await?;
        if !status.is_success() {
            // Logged for the operator. The user can only sign in again.
            let body = String::from_utf8_lossy(&body)
                .chars()
                .take(300)
                .collect::<String>();
            tracing::warn!(%status, body, "the identity provider rejected a code");
            return Err(sign_in_failed(
                "the identity provider rejected the authorization code",
            ));
        }
        serde_json::from_slice(&body).map_err(|error| {
            tracing::warn!(%error, "the identity provider returned no id token");
            provider_unusable("it returned no id token")
        })
    }
}

/// The PKCE code verifier, derived from `state` with the server's key.
fn code_verifier(signer: &CookieSigner, state: &str) -> String {
    signer.sign("code verifier", &[state])
}

/// The nonce that the id token of this attempt must have.
pub(super) fn nonce(signer: &CookieSigner, state: &str) -> String {
    signer.sign("nonce", &[state])
}

impl SignInAttempt {
    /// The signed cookie value.
    pub(super) fn write(&self, signer: &CookieSigner, now: Timestamp) -> String {
        let until = now.checked_add(ATTEMPT_LIFETIME).unwrap_or(now).as_millis();
        let back = BASE64_URL_SAFE_NO_PAD.encode(&self.back);
        let payload = format!("{}.{back}.{until}", self.state);
        let signature = signer.sign(COOKIE_PURPOSE, &[&payload]);
        format!("{payload}.{signature}")
    }

    /// Reads a cookie value, unless it is expired or not signed by this server.
    pub(super) fn read(signer: &CookieSigner, cookie: &str, now: Timestamp) -> Option<Self> {
        let (payload, signature) = cookie.rsplit_once('.')?;
        if !signer.is_signed(COOKIE_PURPOSE, &[payload], signature) {
            return None;
        }
        let (rest, until) = payload.rsplit_once('.')?;
        let (state, back) = rest.split_once('.')?;
        let until = Timestamp::from_millis(until.parse().ok()?);
        let back = BASE64_URL_SAFE_NO_PAD.decode(back).ok()?;
        (now < until).then_some(Self {
            state: state.to_owned(),
            back: String::from_utf8(back).ok()?,
        })
    }
}

/// Encodes fields as `application/x-www-form-urlencoded`.
fn encode_form(fields: &[(&str, &str)]) -> String {
    // A query string has the same encoding.
    let Ok(mut url) = "http://localhost/".parse::<Url>() else {
        return String::new();
    };
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

/// Encodes one value, as HTTP basic authentication of OAuth clients requires (RFC 6749, 2.3.1).
fn urlencode(text: &str) -> String {
    encode_form(&[("", text)])
        .trim_start_matches('=')
        .to_owned()
}

async fn read_body(mut response: reqwest::Response) -> Result<Vec<u8>, Problem> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| provider_unreachable())? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_RESPONSE_BYTES {
            return Err(provider_unusable("its response is too large"));
        }
    }
    Ok(body)
}

pub(super) fn provider_unreachable() -> Problem {
    Problem::new(
        Code::Unavailable,
        "the identity provider is unavailable",
        "retry in a few seconds, or sign in with an Onward token",
    )
}

fn provider_unusable(reason: &str) -> Problem {
    Problem::new(
        Code::Unavailable,
        format!("cannot sign in through the identity provider: {reason}"),
        "ask the operator of this server to check `[access.issuer]`",
    )
}

/// This attempt failed; a new one may succeed.
pub(super) fn sign_in_failed(reason: impl Into<String>) -> Problem {
    Problem::new(
        Code::Unauthorized,
        reason,
        "go to the sign-in page and try again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    #[test]
    fn an_attempt_expires_and_cannot_be_forged() {
        let signer = CookieSigner::new(&[7; 32]);
        let attempt = SignInAttempt {
            state: "abc".to_owned(),
            back: "/plans?q=a.b".to_owned(),
        };
        let cookie = attempt.write(&signer, NOW);
        assert_eq!(SignInAttempt::read(&signer, &cookie, NOW), Some(attempt));
        let late = NOW.checked_add(ATTEMPT_LIFETIME).unwrap();
        assert_eq!(SignInAttempt::read(&signer, &cookie, late), None);
        let other_signer = CookieSigner::new(&[8; 32]);
        assert_eq!(SignInAttempt::read(&other_signer, &cookie, NOW), None);
        for (at, _) in cookie.char_indices() {
            let mut other = cookie.clone().into_bytes();
            other[at] = if other[at] == b'1' { b'2' } else { b'1' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(SignInAttempt::read(&signer, &other, NOW), None, "{other}");
        }
    }

    #[test]
    fn verifiers_have_a_valid_length_and_differ_from_nonces() {
        let signer = CookieSigner::new(&[7; 32]);
        let verifier = code_verifier(&signer, "abc");
        assert!((43..=128).contains(&verifier.len()));
        assert_ne!(verifier, nonce(&signer, "abc"));
        assert_ne!(verifier, code_verifier(&signer, "abd"));
    }

    #[test]
    fn form_values_are_escaped() {
        assert_eq!(
            encode_form(&[("a", "b&c=d"), ("e", "é +")]),
            "a=b%26c%3Dd&e=%C3%A9+%2B"
        );
        assert_eq!(urlencode("a:b c"), "a%3Ab+c");
    }
}

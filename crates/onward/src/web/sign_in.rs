//! Signing people in through the identity provider: the authorization code flow of OpenID Connect, with
//! PKCE, a state that is bound to the browser, and a nonce.
//!
//! Nothing is kept here between the two halves: the state is chance, signed into a cookie of the browser
//! that began; the verifier and the nonce are made from it with the server's own key, so they are never
//! shown. What comes back counts only with that cookie, once, and for ten minutes. Who it is, is said by
//! an id token that is checked like any other token of the provider, and for our client.

use std::num::NonZeroU32;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use onward_core::{Code, Timestamp};
use reqwest::Url;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::keys::Discovery;
use super::pages::session::Seal;
use super::problem::Problem;
use crate::config;

/// Where the provider leads people back to.
pub(super) const CALLBACK: &str = "/login/callback";
/// How long somebody may take at the provider.
pub(super) const LASTS: Duration = Duration::from_secs(600);
/// So many codes are brought to the provider in a second; nobody signs in more often than that.
const OFTEN: NonZeroU32 = match NonZeroU32::new(10) {
    Some(often) => often,
    None => NonZeroU32::MIN,
};
/// No honest answer is larger.
const LARGEST: usize = 256 * 1024;

/// The client that the provider knows us as.
pub(super) struct Client {
    id: String,
    secret: Option<String>,
    codes: DefaultDirectRateLimiter,
}

/// Somebody who is on the way to the provider and back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Journey {
    /// Chance, by which the way back is known.
    pub(super) state: String,
    /// The page that they wanted.
    pub(super) back: String,
}

/// What the provider gives for a code.
#[derive(Deserialize)]
pub(super) struct Given {
    pub(super) id_token: String,
    /// What was granted, where that is not what was asked for.
    pub(super) scope: Option<String>,
}

impl Client {
    /// The client of the configuration, where it names one.
    pub(super) fn of(issuer: &config::Issuer) -> Option<Self> {
        Some(Self {
            id: issuer.client_id.value.clone()?,
            secret: issuer.client_secret.value.clone(),
            codes: RateLimiter::direct(Quota::per_second(OFTEN)),
        })
    }

    /// Whom an id token must be for.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Where somebody is sent to sign in.
    pub(super) fn way_there(
        &self,
        provider: &Discovery,
        scopes: &[String],
        base: &str,
        journey: &Journey,
        seal: &Seal,
    ) -> Result<String, Problem> {
        let endpoint = provider.endpoint(provider.authorization_endpoint.as_deref());
        let endpoint = endpoint.map_err(|why| unusable(&why))?;
        let mut url = endpoint
            .parse::<Url>()
            .map_err(|why| unusable(&why.to_string()))?;
        let mut scope = vec!["openid"];
        scope.extend(
            scopes
                .iter()
                .map(String::as_str)
                .filter(|one| *one != "openid"),
        );
        let challenge = Sha256::digest(verifier(seal, &journey.state).as_bytes());
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.id)
            .append_pair("redirect_uri", &format!("{base}{CALLBACK}"))
            .append_pair("scope", &scope.join(" "))
            .append_pair("state", &journey.state)
            .append_pair("nonce", &nonce(seal, &journey.state))
            .append_pair("code_challenge", &BASE64_URL_SAFE_NO_PAD.encode(challenge))
            .append_pair("code_challenge_method", "S256");
        Ok(url.into())
    }

    /// Brings a code to the provider.
    pub(super) async fn redeem(
        &self,
        provider: &Discovery,
        code: &str,
        base: &str,
        state: &str,
        seal: &Seal,
    ) -> Result<Given, Problem> {
        if self.codes.check().is_err() {
            return Err(Problem::new(
                Code::RateLimited,
                "too many people sign in at once",
                "try again in a few seconds",
            ));
        }
        let endpoint = provider.endpoint(provider.token_endpoint.as_deref());
        let endpoint = endpoint.map_err(|why| unusable(&why))?;
        let redirect = format!("{base}{CALLBACK}");
        let verifier = verifier(seal, state);
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &redirect),
            ("client_id", &self.id),
            ("code_verifier", &verifier),
        ];
        let mut asked = provider.client().post(endpoint);
        match &self.secret {
            Some(secret) if provider.takes_secret_in_body() => {
                fields.push(("client_secret", secret));
            }
            Some(secret) => asked = asked.basic_auth(coded(&self.id), Some(coded(secret))),
            None => {}
        }
        let asked = asked
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json")
            .body(form(&fields));
        let answer = asked.send().await.map_err(|why| {
            tracing::warn!(%why, "the identity provider takes no code");
            away()
        })?;
        let status = answer.status();
        let text = read(answer).await?;
        if !status.is_success() {
            // What it says is for whoever runs the server; a person can only begin again.
            let said = String::from_utf8_lossy(&text)
                .chars()
                .take(300)
                .collect::<String>();
            tracing::warn!(%status, said, "the identity provider refuses a code");
            return Err(again("the identity provider does not accept what it gave"));
        }
        serde_json::from_slice(&text).map_err(|why| {
            tracing::warn!(%why, "the identity provider gives no id token");
            unusable("it gives no id token")
        })
    }
}

/// The verifier of PKCE: only this server can know it.
fn verifier(seal: &Seal, state: &str) -> String {
    seal.sign("code verifier", &[state])
}

/// What an id token must say that was made for this journey.
pub(super) fn nonce(seal: &Seal, state: &str) -> String {
    seal.sign("nonce", &[state])
}

impl Journey {
    /// What the cookie of the browser that began says.
    pub(super) fn write(&self, seal: &Seal, now: Timestamp) -> String {
        let until = now.checked_add(LASTS).unwrap_or(now).as_millis();
        let back = BASE64_URL_SAFE_NO_PAD.encode(&self.back);
        let said = format!("{}.{back}.{until}", self.state);
        let signature = seal.sign("journey", &[&said]);
        format!("{said}.{signature}")
    }

    /// The journey that a cookie is about, unless it took too long or somebody made it up.
    pub(super) fn read(seal: &Seal, cookie: &str, now: Timestamp) -> Option<Self> {
        let (said, signature) = cookie.rsplit_once('.')?;
        if !seal.is_signed("journey", &[said], signature) {
            return None;
        }
        let (rest, until) = said.rsplit_once('.')?;
        let (state, back) = rest.split_once('.')?;
        let until = Timestamp::from_millis(until.parse().ok()?);
        let back = BASE64_URL_SAFE_NO_PAD.decode(back).ok()?;
        (now < until).then_some(Self {
            state: state.to_owned(),
            back: String::from_utf8(back).ok()?,
        })
    }
}

/// Fields as a form holds them.
fn form(fields: &[(&str, &str)]) -> String {
    // The rules are those of a query.
    let Ok(mut url) = "http://localhost/".parse::<Url>() else {
        return String::new();
    };
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

/// A text as `Authorization: Basic` of OAuth holds it.
fn coded(text: &str) -> String {
    form(&[("", text)]).trim_start_matches('=').to_owned()
}

async fn read(mut answer: reqwest::Response) -> Result<Vec<u8>, Problem> {
    let mut text = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|_| away())? {
        text.extend_from_slice(&piece);
        if text.len() > LARGEST {
            return Err(unusable("its answer is too long"));
        }
    }
    Ok(text)
}

pub(super) fn away() -> Problem {
    Problem::new(
        Code::Unavailable,
        "the identity provider does not answer",
        "try again in a few seconds; a token of Onward's own works meanwhile",
    )
}

/// What the provider says cannot be worked with.
fn unusable(why: &str) -> Problem {
    Problem::new(
        Code::Unavailable,
        format!("nobody can sign in through the identity provider: {why}"),
        "whoever runs the server should look at `[access.issuer]`",
    )
}

/// Something is wrong with this journey; the next one may go well.
pub(super) fn again(why: impl Into<String>) -> Problem {
    Problem::new(
        Code::Unauthorized,
        why,
        "go to the page where one signs in, and begin again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    #[test]
    fn a_journey_is_of_one_browser_and_ends() {
        let seal = Seal::new(&[7; 32]);
        let journey = Journey {
            state: "abc".to_owned(),
            back: "/plans?q=a.b".to_owned(),
        };
        let cookie = journey.write(&seal, NOW);
        assert_eq!(Journey::read(&seal, &cookie, NOW), Some(journey));
        let late = NOW.checked_add(LASTS).unwrap();
        assert_eq!(Journey::read(&seal, &cookie, late), None);
        assert_eq!(Journey::read(&Seal::new(&[8; 32]), &cookie, NOW), None);
        for (at, _) in cookie.char_indices() {
            let mut other = cookie.clone().into_bytes();
            other[at] = if other[at] == b'1' { b'2' } else { b'1' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(Journey::read(&seal, &other, NOW), None, "{other}");
        }
    }

    #[test]
    fn a_verifier_is_long_enough_and_no_nonce() {
        let seal = Seal::new(&[7; 32]);
        let made = verifier(&seal, "abc");
        assert!((43..=128).contains(&made.len()));
        assert_ne!(made, nonce(&seal, "abc"));
        assert_ne!(made, verifier(&seal, "abd"));
    }

    #[test]
    fn what_is_put_into_a_form_stays_in_its_field() {
        assert_eq!(
            form(&[("a", "b&c=d"), ("e", "é +")]),
            "a=b%26c%3Dd&e=%C3%A9+%2B"
        );
        assert_eq!(coded("a:b c"), "a%3Ab+c");
    }
}

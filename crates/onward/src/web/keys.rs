//! The keys of an identity provider: fetched, kept, and fetched again when a token names one that is
//! not among them, though not more often than a burst and then once in a while. So a flood of made-up
//! names costs the provider nothing, and a rotation is noticed at the first token that uses it.
//!
//! Keys that were fetched long ago are fetched again: what the provider took back must not open
//! anything for ever. While it does not answer, those that are known go on being good for a day.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use tokio::sync::{Mutex, RwLock};

/// How long the provider may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Fetched again after this long.
const FRESH: Duration = Duration::from_secs(15 * 60);
/// No longer believed after this long.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);
/// So many fetches at once, and then one in this long.
const BURST: NonZeroU32 = match NonZeroU32::new(5) {
    Some(burst) => burst,
    None => NonZeroU32::MIN,
};
const AGAIN: Duration = Duration::from_secs(10);
/// No honest set of keys is larger.
const LARGEST: usize = 1024 * 1024;
/// The characters of the shortest modulus that is accepted: 2,048 bits.
const MODULUS: usize = 342;

/// Why there is no key.
#[derive(Debug)]
pub(super) enum Missing {
    /// The provider has none of this name.
    Unknown,
    /// The provider does not answer.
    Away,
}

/// The keys of a provider.
pub(super) struct Keys {
    client: reqwest::Client,
    issuer: String,
    jwks_url: Option<String>,
    held: RwLock<Held>,
    fetching: Mutex<()>,
    fetches: DefaultDirectRateLimiter,
    said: Mutex<Option<(Instant, Arc<Discovery>)>>,
}

#[derive(Default)]
struct Held {
    keys: Vec<Jwk>,
    fetched_at: Option<Instant>,
}

/// What the provider says about itself.
#[derive(Deserialize)]
pub(super) struct Discovery {
    issuer: String,
    jwks_uri: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// How it is asked.
    #[serde(skip)]
    client: reqwest::Client,
}

impl Discovery {
    /// An address of it, where nobody else can listen.
    pub(super) fn endpoint<'a>(&self, named: Option<&'a str>) -> Result<&'a str, String> {
        let named = named.ok_or_else(|| "it names no such address".to_owned())?;
        let on_this_machine = self.issuer.starts_with("http://");
        match named.starts_with("https://") || on_this_machine {
            true => Ok(named),
            false => Err("it would be spoken to over an open line".to_owned()),
        }
    }

    /// Whether a secret goes into the body, and not into the head as it should.
    pub(super) fn takes_secret_in_body(&self) -> bool {
        let named = |word: &str| {
            let methods = self.token_endpoint_auth_methods_supported.as_ref();
            methods.is_some_and(|methods| methods.iter().any(|method| method == word))
        };
        named("client_secret_post") && !named("client_secret_basic")
    }

    pub(super) fn client(&self) -> &reqwest::Client {
        &self.client
    }
}

impl Keys {
    pub(super) fn of(issuer: &str, jwks_url: Option<&str>) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("onward/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let quota = Quota::with_period(AGAIN).unwrap_or(Quota::per_minute(NonZeroU32::MIN));
        Ok(Self {
            client,
            issuer: issuer.to_owned(),
            jwks_url: jwks_url.map(str::to_owned),
            held: RwLock::default(),
            fetching: Mutex::new(()),
            fetches: RateLimiter::direct(quota.allow_burst(BURST)),
            said: Mutex::default(),
        })
    }

    /// The key of this name, for this kind of signature.
    pub(super) async fn find(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, Missing> {
        let (found, age) = self.known(kid, algorithm).await;
        if let (Some(key), Some(age)) = (&found, age)
            && age < FRESH
        {
            return Ok(key.clone());
        }
        let _one_at_a_time = self.fetching.lock().await;
        // Somebody else may have fetched them while this one waited.
        let (found, age) = self.known(kid, algorithm).await;
        let fresh = age.is_some_and(|age| age < FRESH);
        match found {
            Some(key) if fresh => return Ok(key),
            Some(_) | None => {}
        }
        let mut away = age.is_none();
        if self.fetches.check().is_ok() {
            match self.fetch().await {
                Ok(keys) => {
                    *self.held.write().await = Held {
                        keys,
                        fetched_at: Some(Instant::now()),
                    };
                    away = false;
                }
                Err(why) => {
                    tracing::warn!(%why, "the identity provider's keys cannot be fetched");
                    away = true;
                }
            }
        }
        match self.known(kid, algorithm).await {
            (Some(key), Some(age)) if age < OLD => Ok(key),
            _ if away => Err(Missing::Away),
            _ => Err(Missing::Unknown),
        }
    }

    /// The key, where it is known, and how old what is known is.
    async fn known(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> (Option<DecodingKey>, Option<Duration>) {
        let held = self.held.read().await;
        let age = held.fetched_at.map(|at| at.elapsed());
        let fits = |key: &&Jwk| {
            let named = kid.is_none_or(|kid| key.common.key_id.as_deref() == Some(kid));
            named && is_for(key, algorithm)
        };
        let mut fitting = held.keys.iter().filter(fits);
        // A token that names no key is accepted where there is only one that it can mean.
        let key = match (fitting.next(), fitting.next()) {
            (Some(key), None) => DecodingKey::from_jwk(key).ok(),
            _ => None,
        };
        (key, age)
    }

    async fn fetch(&self) -> Result<Vec<Jwk>, String> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => {
                let said = self.discovered().await?;
                said.endpoint(Some(&said.jwks_uri))?.to_owned()
            }
        };
        let keys: serde_json::Value = self.read(&url).await?;
        // One key of a kind that is not known here must not make the others useless.
        let keys = keys.get("keys").and_then(|keys| keys.as_array());
        let keys = keys.ok_or_else(|| format!("`{url}` holds no `keys`"))?;
        let read = |key: &serde_json::Value| serde_json::from_value(key.clone()).ok();
        let keys = JwkSet {
            keys: keys.iter().filter_map(read).collect(),
        };
        Ok(keys.keys)
    }

    /// What the provider says about itself, kept for as long as its keys are.
    pub(super) async fn discovery(&self) -> Result<Arc<Discovery>, String> {
        let mut said = self.said.lock().await;
        if let Some((at, known)) = &*said
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(known));
        }
        let fresh = Arc::new(self.discovered().await?);
        *said = Some((Instant::now(), Arc::clone(&fresh)));
        Ok(fresh)
    }

    async fn discovered(&self) -> Result<Discovery, String> {
        let issuer = self.issuer.trim_end_matches('/');
        let url = format!("{issuer}/.well-known/openid-configuration");
        let mut said: Discovery = match self.read(&url).await {
            Ok(said) => said,
            Err(first) => {
                let (scheme, rest) = issuer.split_once("://").unwrap_or(("https", issuer));
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                let slash = if path.is_empty() { "" } else { "/" };
                let url = format!(
                    "{scheme}://{host}/.well-known/oauth-authorization-server{slash}{path}"
                );
                self.read(&url)
                    .await
                    .map_err(|second| format!("{first}; {second}"))?
            }
        };
        if said.issuer.trim_end_matches('/') != issuer {
            return Err(format!("`{url}` speaks for another issuer"));
        }
        said.client = self.client.clone();
        Ok(said)
    }

    async fn read<T: serde::de::DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        let asked = self.client.get(url).send().await;
        let answer = asked.and_then(reqwest::Response::error_for_status);
        let mut answer = answer.map_err(|why| why.to_string())?;
        let mut text = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|why| why.to_string())? {
            text.extend_from_slice(&piece);
            if text.len() > LARGEST {
                return Err(format!("`{url}` answers with more than {LARGEST} bytes"));
            }
        }
        serde_json::from_slice(&text).map_err(|why| format!("`{url}`: {why}"))
    }
}

/// Whether a key may check this kind of signature.
fn is_for(key: &Jwk, algorithm: Algorithm) -> bool {
    let signs = match &key.common.public_key_use {
        None | Some(PublicKeyUse::Signature) => true,
        Some(_) => false,
    };
    let named = key.common.key_algorithm;
    let named = named.is_none_or(|named| named.to_string() == format!("{algorithm:?}"));
    let kind = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(rsa), Algorithm::RS256) => rsa.n.len() >= MODULUS,
        (AlgorithmParameters::EllipticCurve(curve), Algorithm::ES256) => {
            curve.curve == jsonwebtoken::jwk::EllipticCurve::P256
        }
        (AlgorithmParameters::OctetKeyPair(curve), Algorithm::EdDSA) => {
            curve.curve == jsonwebtoken::jwk::EllipticCurve::Ed25519
        }
        _ => false,
    };
    signs && named && kind
}

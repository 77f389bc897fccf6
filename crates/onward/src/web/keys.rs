//! Signing keys of an identity provider.
//!
//! Keys are cached, refreshed when they are stale, and fetched again when a token names an unknown
//! key, which detects a key rotation. A rate limiter bounds the fetches, so tokens with made-up key
//! ids do not reach the provider. Stale keys expire after a day if the provider stays unreachable.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use tokio::sync::{Mutex, RwLock};

const TIMEOUT: Duration = Duration::from_secs(5);
/// Age after which keys are fetched again.
const REFRESH_AFTER: Duration = Duration::from_secs(15 * 60);
/// Age after which keys are no longer accepted.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Fetches in a burst; afterwards one per `FETCH_INTERVAL`.
const FETCH_BURST: NonZeroU32 = match NonZeroU32::new(5) {
    Some(burst) => burst,
    None => NonZeroU32::MIN,
};
const FETCH_INTERVAL: Duration = Duration::from_secs(10);
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// Base64 characters of the shortest accepted RSA modulus: 2,048 bits.
const MIN_MODULUS_CHARS: usize = 342;

/// Why no key is available.
#[derive(Debug)]
pub(super) enum KeyError {
    NotFound,
    ProviderUnreachable,
}

/// Key cache of one provider.
pub(super) struct Keys {
    client: reqwest::Client,
    issuer: String,
    jwks_url: Option<String>,
    cached: RwLock<CachedKeys>,
    fetching: Mutex<()>,
    fetches: DefaultDirectRateLimiter,
    discovery: Mutex<Option<(Instant, Arc<Discovery>)>>,
}

#[derive(Default)]
struct CachedKeys {
    keys: Vec<Jwk>,
    fetched_at: Option<Instant>,
}

/// The provider's discovery document.
#[derive(Deserialize)]
pub(super) struct Discovery {
    issuer: String,
    jwks_uri: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The HTTP client for requests to the provider.
    #[serde(skip)]
    client: reqwest::Client,
}

impl Discovery {
    /// Checks that an endpoint is present and uses HTTPS. A provider with an `http` issuer URL,
    /// which the configuration allows on loopback only, may use plain HTTP.
    pub(super) fn endpoint<'a>(&self, url: Option<&'a str>) -> Result<&'a str, String> {
        let url = url.ok_or_else(|| "a required endpoint is missing".to_owned())?;
        let is_http_issuer = self.issuer.starts_with("http://");
        if url.starts_with("https://") || is_http_issuer {
            Ok(url)
        } else {
            Err(format!("the endpoint `{url}` does not use HTTPS"))
        }
    }

    /// Whether the client secret must be sent in the body instead of the `Authorization` header.
    pub(super) fn takes_secret_in_body(&self) -> bool {
        let supports = |name: &str| {
            let methods = self.token_endpoint_auth_methods_supported.as_ref();
            methods.is_some_and(|methods| methods.iter().any(|method| method == name))
        };
        supports("client_secret_post") && !supports("client_secret_basic")
    }

    pub(super) fn client(&self) -> &reqwest::Client {
        &self.client
    }
}

impl Keys {
    pub(super) fn new(issuer: &str, jwks_url: Option<&str>) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("onward/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let quota =
            Quota::with_period(FETCH_INTERVAL).unwrap_or(Quota::per_minute(NonZeroU32::MIN));
        Ok(Self {
            client,
            issuer: issuer.to_owned(),
            jwks_url: jwks_url.map(str::to_owned),
            cached: RwLock::default(),
            fetching: Mutex::new(()),
            fetches: RateLimiter::direct(quota.allow_burst(FETCH_BURST)),
            discovery: Mutex::default(),
        })
    }

    /// The key with this id, for this algorithm.
    pub(super) async fn find(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, KeyError> {
        let (found, age) = self.cached_key(kid, algorithm).await;
        if let (Some(key), Some(age)) = (&found, age)
            && age < REFRESH_AFTER
        {
            return Ok(key.clone());
        }
        let _fetching = self.fetching.lock().await;
        // Another task may have fetched the keys in the meantime.
        let (found, age) = self.cached_key(kid, algorithm).await;
        let fresh = age.is_some_and(|age| age < REFRESH_AFTER);
        match found {
            Some(key) if fresh => return Ok(key),
            Some(_) | None => {}
        }
        let mut unreachable = age.is_none();
        if self.fetches.check().is_ok() {
            match self.fetch().await {
                Ok(keys) => {
                    *self.cached.write().await = CachedKeys {
                        keys,
                        fetched_at: Some(Instant::now()),
                    };
                    unreachable = false;
                }
                Err(error) => {
                    tracing::warn!(error, "cannot fetch the identity provider's keys");
                    unreachable = true;
                }
            }
        }
        match self.cached_key(kid, algorithm).await {
            (Some(key), Some(age)) if age < MAX_AGE => Ok(key),
            _ if unreachable => Err(KeyError::ProviderUnreachable),
            _ => Err(KeyError::NotFound),
        }
    }

    /// A cached key, and the age of the cache.
    async fn cached_key(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> (Option<DecodingKey>, Option<Duration>) {
        let cached = self.cached.read().await;
        let age = cached.fetched_at.map(|at| at.elapsed());
        let matches = |key: &&Jwk| {
            let has_id = kid.is_none_or(|kid| key.common.key_id.as_deref() == Some(kid));
            has_id && supports(key, algorithm)
        };
        let mut matching = cached.keys.iter().filter(matches);
        // A token without a key id is accepted if exactly one key supports its algorithm.
        let key = match (matching.next(), matching.next()) {
            (Some(key), None) => DecodingKey::from_jwk(key).ok(),
            _ => None,
        };
        (key, age)
    }

    async fn fetch(&self) -> Result<Vec<Jwk>, String> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => {
                let discovery = self.fetch_discovery().await?;
                discovery.endpoint(Some(&discovery.jwks_uri))?.to_owned()
            }
        };
        let keys: serde_json::Value = self.get_json(&url).await?;
        // Skip keys of unknown types.
        let keys = keys.get("keys").and_then(|keys| keys.as_array());
        let keys = keys.ok_or_else(|| format!("`{url}` has no `keys`"))?;
        let parse = |key: &serde_json::Value| serde_json::from_value(key.clone()).ok();
        let keys = JwkSet {
            keys: keys.iter().filter_map(parse).collect(),
        };
        Ok(keys.keys)
    }

    /// The discovery document, cached as long as the keys.
    pub(super) async fn discovery(&self) -> Result<Arc<Discovery>, String> {
        let mut cached = self.discovery.lock().await;
        if let Some((at, discovery)) = &*cached
            && at.elapsed() < REFRESH_AFTER
        {
            return Ok(Arc::clone(discovery));
        }
        let fresh = Arc::new(self.fetch_discovery().await?);
        *cached = Some((Instant::now(), Arc::clone(&fresh)));
        Ok(fresh)
    }

    async fn fetch_discovery(&self) -> Result<Discovery, String> {
        let issuer = self.issuer.trim_end_matches('/');
        let url = format!("{issuer}/.well-known/openid-configuration");
        let mut discovery: Discovery = match self.get_json(&url).await {
            Ok(discovery) => discovery,
            Err(first) => {
                let (scheme, rest) = issuer.split_once("://").unwrap_or(("https", issuer));
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                let slash = if path.is_empty() { "" } else { "/" };
                let url = format!(
                    "{scheme}://{host}/.well-known/oauth-authorization-server{slash}{path}"
                );
                self.get_json(&url)
                    .await
                    .map_err(|second| format!("{first}; {second}"))?
            }
        };
        if discovery.issuer.trim_end_matches('/') != issuer {
            return Err(format!("`{url}` is the document of another issuer"));
        }
        discovery.client = self.client.clone();
        Ok(discovery)
    }

    async fn get_json<T: serde::de::DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        let response = self.client.get(url).send().await;
        let response = response.and_then(reqwest::Response::error_for_status);
        let mut response = response.map_err(|error| error.to_string())?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_RESPONSE_BYTES {
                return Err(format!(
                    "`{url}` returned more than {MAX_RESPONSE_BYTES} bytes"
                ));
            }
        }
        serde_json::from_slice(&body).map_err(|error| format!("`{url}`: {error}"))
    }
}

/// Whether a key can verify signatures of this algorithm.
fn supports(key: &Jwk, algorithm: Algorithm) -> bool {
    let signs = match &key.common.public_key_use {
        None | Some(PublicKeyUse::Signature) => true,
        Some(_) => false,
    };
    let named = key.common.key_algorithm;
    let named = named.is_none_or(|named| named.to_string() == format!("{algorithm:?}"));
    let kind = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(rsa), Algorithm::RS256) => rsa.n.len() >= MIN_MODULUS_CHARS,
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

//! A local identity provider with generated keys. It signs any claims, including invalid ones.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use onward_testbed::mock_server::{MockServer, Reply};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rsa::pkcs1::EncodeRsaPrivateKey;
use serde_json::{Value, json};

/// Shared between the tests, because generating an RSA key is slow.
static RSA: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let key = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).expect("key generated");
    key.to_pkcs1_der().expect("key encoded").as_bytes().to_vec()
});

/// The PKCS #8 header of an Ed25519 key; the seed follows.
const ED25519_HEADER: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// A signing key.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) kid: String,
    pub(crate) algorithm: Algorithm,
    secret: EncodingKey,
}

impl Key {
    pub(crate) fn new(kid: &str, algorithm: Algorithm) -> Self {
        let random = SystemRandom::new();
        let secret = if algorithm == Algorithm::ES256 {
            let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
            EncodingKey::from_ec_der(pkcs8.expect("key generated").as_ref())
        } else if algorithm == Algorithm::EdDSA {
            // PKCS #8 version 1: `jsonwebtoken` cannot read version 2, which `ring` writes.
            let seed: [u8; 32] = ring::rand::generate(&random)
                .expect("random bytes")
                .expose();
            EncodingKey::from_ed_der(&[ED25519_HEADER, &seed].concat())
        } else {
            assert_eq!(algorithm, Algorithm::RS256, "unsupported algorithm");
            EncodingKey::from_rsa_der(&RSA)
        };
        Self {
            kid: kid.to_owned(),
            algorithm,
            secret,
        }
    }

    /// The public key as a JWK.
    pub(crate) fn public(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.secret, self.algorithm).expect("valid key");
        jwk.common.key_id = Some(self.kid.clone());
        serde_json::to_value(jwk).expect("valid JSON")
    }

    /// Signs a token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_with(Header::new(self.algorithm), claims)
    }

    /// Signs a token with a custom header.
    pub(crate) fn sign_with(&self, mut header: Header, claims: &Value) -> String {
        header.kid = Some(self.kid.clone());
        encode(&header, claims, &self.secret).expect("token signed")
    }
}

/// A running identity provider.
pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) audience: String,
    keys: Arc<Mutex<Vec<Value>>>,
    server: MockServer,
}

impl Issuer {
    /// Starts a provider that publishes these keys.
    pub(crate) fn start(published: &[&Key]) -> Self {
        let keys = Arc::new(Mutex::<Vec<Value>>::default());
        let current = Arc::clone(&keys);
        let server = MockServer::with_handler(move |request| {
            let url = format!("http://{}", request.header("host"));
            Reply::json(&match request.path.as_str() {
                "/keys" => json!({ "keys": *current.lock().unwrap() }),
                _ => json!({ "issuer": url, "jwks_uri": format!("{url}/keys") }),
            })
        });
        let issuer = Self {
            url: server.url.clone(),
            audience: "https://onward.example.org/mcp".to_owned(),
            keys,
            server,
        };
        issuer.publish(published);
        issuer
    }

    /// Replaces the published keys.
    pub(crate) fn publish(&self, keys: &[&Key]) {
        *self.keys.lock().unwrap() = keys.iter().map(|key| key.public()).collect();
    }

    /// Publishes an additional key.
    pub(crate) fn publish_also(&self, key: Value) {
        self.keys.lock().unwrap().push(key);
    }

    /// The number of key requests so far.
    pub(crate) fn fetch_count(&self) -> usize {
        let requests = self.server.requests();
        requests.iter().filter(|to| to.path == "/keys").count()
    }

    /// The claims of a valid token.
    pub(crate) fn claims(&self) -> Value {
        json!({
            "iss": self.url,
            "aud": self.audience,
            "sub": "ann",
            "exp": now() + 600,
            "iat": now(),
            "scope": "openid onward",
        })
    }

    /// The configuration of a server that accepts tokens of this provider.
    pub(crate) fn config(&self) -> String {
        format!(
            "[access.issuer]\nurl = \"{}\"\naudience = \"{}\"\nscopes = [\"onward\"]",
            self.url, self.audience
        )
    }
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("clock is past 1970").as_secs()
}

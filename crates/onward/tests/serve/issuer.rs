//! An identity provider on this machine: it makes its keys, publishes them, and signs what it is asked
//! to, also what it should not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rsa::pkcs1::EncodeRsaPrivateKey;
use serde_json::{Value, json};

/// Making one takes a while, so the tests share it.
static RSA: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let key = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).expect("a key");
    key.to_pkcs1_der().expect("a key").as_bytes().to_vec()
});

/// What stands before the seed of an Ed25519 key in its document.
const ED25519: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// A key with its name.
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
            let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
            EncodingKey::from_ec_der(made.expect("a key").as_ref())
        } else if algorithm == Algorithm::EdDSA {
            // The first form of such a document: the second, which `ring` writes, is not read.
            let seed: [u8; 32] = ring::rand::generate(&random).expect("chance").expose();
            EncodingKey::from_ed_der(&[ED25519, &seed].concat())
        } else {
            assert_eq!(algorithm, Algorithm::RS256, "there is a key for it");
            EncodingKey::from_rsa_der(&RSA)
        };
        Self {
            kid: kid.to_owned(),
            algorithm,
            secret,
        }
    }

    /// What the provider publishes of it.
    pub(crate) fn public(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.secret, self.algorithm).expect("a key");
        jwk.common.key_id = Some(self.kid.clone());
        serde_json::to_value(jwk).expect("JSON")
    }

    /// A token that says this.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_with(Header::new(self.algorithm), claims)
    }

    /// The same, under another header.
    pub(crate) fn sign_with(&self, mut header: Header, claims: &Value) -> String {
        header.kid = Some(self.kid.clone());
        encode(&header, claims, &self.secret).expect("it is signed")
    }
}

/// The provider, while it runs.
pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) audience: String,
    state: Arc<Published>,
}

#[derive(Default)]
struct Published {
    url: Mutex<String>,
    keys: Mutex<Vec<Value>>,
    fetched: AtomicUsize,
}

async fn keys(State(state): State<Arc<Published>>) -> Json<Value> {
    state.fetched.fetch_add(1, Ordering::SeqCst);
    Json(json!({ "keys": *state.keys.lock().unwrap() }))
}

async fn discovery(State(state): State<Arc<Published>>) -> Json<Value> {
    let url = state.url.lock().unwrap().clone();
    Json(json!({ "issuer": url, "jwks_uri": format!("{url}/keys") }))
}

impl Issuer {
    /// Starts one that publishes these keys.
    pub(crate) async fn start(published: &[&Key]) -> Self {
        let state = Arc::new(Published::default());
        let routes = Router::new()
            .route("/keys", get(keys))
            .route("/.well-known/openid-configuration", get(discovery))
            .with_state(Arc::clone(&state));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        state.url.lock().unwrap().clone_from(&url);
        let issuer = Self {
            url,
            audience: "https://onward.example.org/mcp".to_owned(),
            state,
        };
        issuer.publish(published);
        issuer
    }

    /// These are its keys from now on.
    pub(crate) fn publish(&self, keys: &[&Key]) {
        *self.state.keys.lock().unwrap() = keys.iter().map(|key| key.public()).collect();
    }

    /// Publishes something that is no key of ours.
    pub(crate) fn publish_also(&self, key: Value) {
        self.state.keys.lock().unwrap().push(key);
    }

    /// How often its keys were fetched.
    pub(crate) fn fetched(&self) -> usize {
        self.state.fetched.load(Ordering::SeqCst)
    }

    /// What a good token says.
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

    /// The lines that make a server believe it.
    pub(crate) fn lines(&self) -> String {
        format!(
            "[access.issuer]\nurl = \"{}\"\naudience = \"{}\"\nscopes = [\"onward\"]",
            self.url, self.audience
        )
    }
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

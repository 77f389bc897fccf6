//! Tokens of an identity provider: signatures, claims, scopes, tenants, key rotation and outages.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::basics::plan;
use crate::issuer::{Issuer, Key, now};
use crate::program;

const PING: &str = "/api/v1/ping";

/// Replaces one claim, or removes it.
fn with_claim(mut claims: Value, name: &str, value: Option<Value>) -> Value {
    let object = claims.as_object_mut().expect("value is an object");
    match value {
        Some(value) => object.insert(name.to_owned(), value),
        None => object.remove(name),
    };
    claims
}

#[tokio::test]
async fn accepts_es256_eddsa_and_rs256() {
    let keys = [Algorithm::ES256, Algorithm::EdDSA, Algorithm::RS256]
        .map(|algorithm| Key::new(&format!("{algorithm:?}"), algorithm));
    let issuer = Issuer::start(&keys.iter().collect::<Vec<_>>());
    // A key of an unknown type must not invalidate the other keys.
    issuer.publish_also(json!({ "kty": "unknown", "kid": "x" }));
    let server = program("jwt").with_config(&issuer.config()).serve();
    for key in &keys {
        let token = key.sign(&issuer.claims());
        let pong = server.get_as(&token, PING).await.expect_success();
        assert_eq!(pong["user"], "user:ann");
        assert_eq!(pong["tenant"], "local");
        server
            .post_as(&token, "/api/v1/plans", plan())
            .await
            .expect_success();
    }
    assert_eq!(issuer.fetch_count(), 1, "keys are cached");
    // With a provider, requests need authentication, and Onward's own tokens still work.
    let response = server.get(PING).await;
    response.expect_problem(401, "unauthorized");
    assert!(
        !response.header("www-authenticate").contains("error="),
        "{}",
        response.header("www-authenticate")
    );
    let own = server.program().token("local", "own", "agent");
    assert_eq!(
        server.get_as(&own, PING).await.expect_success()["user"],
        "token:own"
    );
    let metadata = server
        .get("/.well-known/oauth-protected-resource/mcp")
        .await
        .expect_success();
    assert_eq!(metadata["authorization_servers"], json!([issuer.url]));
    assert_eq!(metadata["scopes_supported"], json!(["onward"]));
    assert_eq!(metadata["resource"], format!("{}/mcp", server.url));
}

#[tokio::test]
async fn rejects_tokens_with_invalid_claims() {
    let key = Key::new("a", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]);
    let server = program("jwt-claims").with_config(&issuer.config()).serve();
    let valid = || issuer.claims();
    server
        .get_as(&key.sign(&valid()), PING)
        .await
        .expect_success();
    let cases = [
        ("aud", Some(json!("https://elsewhere.example"))),
        ("aud", Some(json!(["https://elsewhere.example"]))),
        ("aud", None),
        ("iss", Some(json!("https://other.example"))),
        ("iss", Some(json!(format!("{}/", issuer.url)))),
        ("iss", None),
        ("iss", Some(json!([issuer.url]))),
        ("exp", Some(json!(now() - 3600))),
        ("exp", Some(json!("tomorrow"))),
        ("exp", None),
        ("nbf", Some(json!(now() + 3600))),
        ("sub", None),
        ("sub", Some(json!(""))),
        ("sub", Some(json!("a\0b"))),
        ("sub", Some(json!("a\nb"))),
        ("role", Some(json!("emperor"))),
        ("role", Some(json!(7))),
        ("role", Some(json!(["everyone"]))),
        ("role", Some(json!(["viewer", "owner"]))),
        ("role", Some(json!(["viewer owner"]))),
    ];
    for (name, value) in cases {
        let token = key.sign(&with_claim(valid(), name, value.clone()));
        let response = server.get_as(&token, PING).await;
        response.expect_problem(401, "unauthorized");
        assert!(
            response
                .header("www-authenticate")
                .contains("error=\"invalid_token\""),
            "{name} {value:?}"
        );
    }
    let both = with_claim(valid(), "aud", Some(json!(["x", issuer.audience])));
    server.get_as(&key.sign(&both), PING).await.expect_success();
}

#[tokio::test]
async fn rejects_tokens_not_signed_by_a_published_key() {
    let key = Key::new("a", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]);
    let server = program("jwt-forged").with_config(&issuer.config()).serve();
    let valid = key.sign(&issuer.claims());
    server.get_as(&valid, PING).await.expect_success();
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = part(&issuer.claims());
    let signature = valid
        .rsplit('.')
        .next()
        .expect("token has a signature")
        .to_owned();
    let mut forged = Vec::new();
    // Unsigned tokens, in every spelling of `none`.
    for none in ["none", "None", "NONE", "nOnE"] {
        let header = part(&json!({ "alg": none, "kid": "a" }));
        forged.push(format!("{header}.{claims}."));
        forged.push(format!("{header}.{claims}.{signature}"));
    }
    // The public key as an HMAC secret.
    let public = key.public().to_string();
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("a".to_owned());
    let secret = EncodingKey::from_secret(public.as_bytes());
    forged.push(encode(&header, &issuer.claims(), &secret).expect("token signed"));
    // Another key with the same id; a valid signature for other claims; a key inside the token.
    forged.push(Key::new("a", Algorithm::ES256).sign(&issuer.claims()));
    let owner = part(&with_claim(issuer.claims(), "role", Some(json!("owner"))));
    let head = valid.split('.').next().expect("token has a header");
    forged.push(format!("{head}.{owner}.{signature}"));
    let attacker = Key::new("attacker", Algorithm::ES256);
    let header = part(&json!({ "alg": "ES256", "kid": "a", "jwk": attacker.public() }));
    let signed = attacker.sign(&issuer.claims());
    let (_, rest) = signed.split_once('.').expect("token has three parts");
    forged.push(format!("{header}.{rest}"));
    // An unsupported critical header, and strings that are not tokens.
    let mut header = Header::new(Algorithm::ES256);
    header.crit = Some(vec!["exp".to_owned()]);
    forged.push(key.sign_with(header, &issuer.claims()));
    forged.extend(["a.b.c", "..", "a", "eyJ"].map(str::to_owned));
    forged.push(format!("{}.{claims}.{signature}", "A".repeat(20_000)));
    for token in forged {
        let response = server.get_as(&token, PING).await;
        assert_eq!(response.status.as_u16(), 401, "{token}: {response:?}");
        response.expect_problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn fetches_rotated_keys_and_limits_fetches_for_unknown_keys() {
    let (old, new) = (
        Key::new("old", Algorithm::EdDSA),
        Key::new("new", Algorithm::EdDSA),
    );
    let issuer = Issuer::start(&[&old]);
    let server = program("jwt-rotated").with_config(&issuer.config()).serve();
    server
        .get_as(&old.sign(&issuer.claims()), PING)
        .await
        .expect_success();
    issuer.publish(&[&new]);
    server
        .get_as(&new.sign(&issuer.claims()), PING)
        .await
        .expect_success();
    assert_eq!(issuer.fetch_count(), 2);
    let response = server.get_as(&old.sign(&issuer.claims()), PING).await;
    response.expect_problem(401, "unauthorized");
    for number in 0..60 {
        let unknown = Key::new(&format!("unknown-{number}"), Algorithm::EdDSA);
        let response = server.get_as(&unknown.sign(&issuer.claims()), PING).await;
        response.expect_problem(401, "unauthorized");
    }
    // The limit is a burst of five, then one fetch per ten seconds.
    assert!(issuer.fetch_count() < 20, "{}", issuer.fetch_count());
    server
        .get_as(&new.sign(&issuer.claims()), PING)
        .await
        .expect_success();
}

#[tokio::test]
async fn reports_a_missing_scope() {
    let key = Key::new("a", Algorithm::EdDSA);
    let issuer = Issuer::start(&[&key]);
    let server = program("jwt-scope").with_config(&issuer.config()).serve();
    for lacking in [None, Some(json!("openid")), Some(json!("onward2 on ward"))] {
        let token = key.sign(&with_claim(issuer.claims(), "scope", lacking));
        let response = server.get_as(&token, PING).await;
        let problem = response.expect_problem(403, "forbidden");
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|text| text.contains("`onward`"))
        );
        let challenge = &response.header("www-authenticate");
        assert!(
            challenge.contains("error=\"insufficient_scope\", scope=\"onward\""),
            "{challenge}"
        );
    }
    let listed = with_claim(issuer.claims(), "scope", None);
    let listed = with_claim(listed, "scp", Some(json!(["openid", "onward"])));
    server
        .get_as(&key.sign(&listed), PING)
        .await
        .expect_success();
}

#[tokio::test]
async fn claims_define_the_role_and_the_tenant() {
    let key = Key::new("a", Algorithm::EdDSA);
    let issuer = Issuer::start(&[&key]);
    let config = format!(
        "{}\ntenant_claim = \"org\"\ndefault_role = \"viewer\"",
        issuer.config()
    );
    let setup = program("jwt-tenant").with_config(&config);
    setup.run_ok(&["tenant", "create", "acme"]);
    let server = setup.serve();
    let sign = |org: Option<&str>, role: Option<Value>| {
        let claims = with_claim(issuer.claims(), "org", org.map(Value::from));
        key.sign(&with_claim(claims, "role", role))
    };
    let viewer = sign(Some("acme"), None);
    assert_eq!(
        server.get_as(&viewer, PING).await.expect_success()["tenant"],
        "acme"
    );
    server
        .post_as(&viewer, "/api/v1/plans", plan())
        .await
        .expect_problem(403, "forbidden");
    let agent = sign(Some("acme"), Some(json!(["everyone", "agent"])));
    let created = server
        .post_as(&agent, "/api/v1/plans", plan())
        .await
        .expect_success();
    let other = sign(Some("local"), Some(json!("owner")));
    let at = format!(
        "/api/v1/plans/{}",
        created["planId"].as_str().expect("id is a string")
    );
    server
        .get_as(&other, &at)
        .await
        .expect_problem(404, "plan_not_found");
    for org in [None, Some("unknown"), Some("ACME"), Some("' or 1=1 --")] {
        server
            .get_as(&sign(org, None), PING)
            .await
            .expect_problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn own_tokens_work_while_the_provider_is_unreachable() {
    let key = Key::new("a", Algorithm::EdDSA);
    let issuer = Issuer::start(&[&key]);
    let config = issuer.config();
    let unreachable = format!("{config}\njwks_url = \"http://127.0.0.1:9/keys\"");
    let setup = program("jwt-outage").with_config(&unreachable);
    let own = setup.token("local", "own", "agent");
    let server = setup.serve();
    let response = server.get_as(&key.sign(&issuer.claims()), PING).await;
    response.expect_problem(503, "unavailable");
    server.get_as(&own, PING).await.expect_success();
}

//! Tokens of an identity provider: which are believed, as whom, and which are not.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::basics::plan;
use crate::house::House;
use crate::issuer::{Issuer, Key, now};

const PING: &str = "/api/v1/ping";

/// The claims with one of them changed, or taken out.
fn but(mut claims: Value, name: &str, value: Option<Value>) -> Value {
    let claims_of = claims.as_object_mut().expect("an object");
    match value {
        Some(value) => claims_of.insert(name.to_owned(), value),
        None => claims_of.remove(name),
    };
    claims
}

#[tokio::test]
async fn every_kind_of_signature_that_is_accepted_comes_in() {
    let keys = [Algorithm::ES256, Algorithm::EdDSA, Algorithm::RS256]
        .map(|algorithm| Key::new(&format!("{algorithm:?}"), algorithm));
    let issuer = Issuer::start(&keys.iter().collect::<Vec<_>>()).await;
    // A key of a kind that nobody here knows must not make the others useless.
    issuer.publish_also(json!({ "kty": "unheard-of", "kid": "x" }));
    let server = House::new("jwt").configured(&issuer.lines()).serve();
    for key in &keys {
        let token = key.sign(&issuer.claims());
        let pong = server.get_as(&token, PING).await.done();
        assert_eq!(pong["user"], "user:ann");
        assert_eq!(pong["tenant"], "local");
        server.post_as(&token, "/api/v1/plans", plan()).await.done();
    }
    assert_eq!(issuer.fetched(), 1, "keys are kept");
    // With a provider, nobody comes in without saying who they are, and our own tokens go on.
    let answer = server.get(PING).await;
    answer.refused(401, "unauthorized");
    assert!(!answer.challenge.contains("error="), "{}", answer.challenge);
    let own = server.house.token("local", "own", "agent");
    assert_eq!(server.get_as(&own, PING).await.done()["user"], "token:own");
    let described = server
        .get("/.well-known/oauth-protected-resource/mcp")
        .await
        .done();
    assert_eq!(described["authorization_servers"], json!([issuer.url]));
    assert_eq!(described["scopes_supported"], json!(["onward"]));
    assert_eq!(described["resource"], format!("{}/mcp", server.url));
}

#[tokio::test]
async fn what_is_not_for_us_or_not_now_is_refused() {
    let key = Key::new("a", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let server = House::new("jwt-claims").configured(&issuer.lines()).serve();
    let good = || issuer.claims();
    server.get_as(&key.sign(&good()), PING).await.done();
    let cases = [
        ("aud", Some(json!("https://elsewhere.example"))),
        ("aud", Some(json!(["https://elsewhere.example"]))),
        ("aud", None),
        ("iss", Some(json!("https://other.example"))),
        ("iss", Some(json!(format!("{}/", issuer.url)))),
        ("iss", None),
        ("exp", Some(json!(now() - 3600))),
        ("exp", Some(json!("tomorrow"))),
        ("exp", None),
        ("nbf", Some(json!(now() + 3600))),
        ("sub", None),
        ("sub", Some(json!(""))),
        ("role", Some(json!("emperor"))),
        ("role", Some(json!(7))),
    ];
    for (name, value) in cases {
        let token = key.sign(&but(good(), name, value.clone()));
        let answer = server.get_as(&token, PING).await;
        answer.refused(401, "unauthorized");
        assert!(
            answer.challenge.contains("error=\"invalid_token\""),
            "{name} {value:?}"
        );
    }
    let both = but(good(), "aud", Some(json!(["x", issuer.audience])));
    server.get_as(&key.sign(&both), PING).await.done();
}

#[tokio::test]
async fn what_is_not_signed_by_a_published_key_is_refused() {
    let key = Key::new("a", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let server = House::new("jwt-forged").configured(&issuer.lines()).serve();
    let good = key.sign(&issuer.claims());
    server.get_as(&good, PING).await.done();
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = part(&issuer.claims());
    let signature = good.rsplit('.').next().expect("a signature").to_owned();
    let mut forged = Vec::new();
    // No signature at all, in every spelling.
    for none in ["none", "None", "NONE", "nOnE"] {
        let header = part(&json!({ "alg": none, "kid": "a" }));
        forged.push(format!("{header}.{claims}."));
        forged.push(format!("{header}.{claims}.{signature}"));
    }
    // The public key, which everybody has, as a shared secret.
    let public = key.public().to_string();
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("a".to_owned());
    let secret = EncodingKey::from_secret(public.as_bytes());
    forged.push(encode(&header, &issuer.claims(), &secret).expect("it is signed"));
    // Another key under the same name; the good signature under other claims; a key of its own.
    forged.push(Key::new("a", Algorithm::ES256).sign(&issuer.claims()));
    let owner = part(&but(issuer.claims(), "role", Some(json!("owner"))));
    let head = good.split('.').next().expect("a header");
    forged.push(format!("{head}.{owner}.{signature}"));
    let mine = Key::new("mine", Algorithm::ES256);
    let header = part(&json!({ "alg": "ES256", "kid": "a", "jwk": mine.public() }));
    let signed = mine.sign(&issuer.claims());
    let (_, rest) = signed.split_once('.').expect("parts");
    forged.push(format!("{header}.{rest}"));
    // What is critical is for somebody who understands it; and what is no token at all.
    let mut header = Header::new(Algorithm::ES256);
    header.crit = Some(vec!["exp".to_owned()]);
    forged.push(key.sign_with(header, &issuer.claims()));
    forged.extend(["a.b.c", "..", "a", "eyJ"].map(str::to_owned));
    forged.push(format!("{}.{claims}.{signature}", "A".repeat(20_000)));
    for token in forged {
        let answer = server.get_as(&token, PING).await;
        assert_eq!(answer.status.as_u16(), 401, "{token}: {answer:?}");
        answer.refused(401, "unauthorized");
    }
}

#[tokio::test]
async fn rotated_keys_are_noticed_and_made_up_ones_cost_the_provider_nothing() {
    let (old, new) = (
        Key::new("old", Algorithm::EdDSA),
        Key::new("new", Algorithm::EdDSA),
    );
    let issuer = Issuer::start(&[&old]).await;
    let server = House::new("jwt-rotated")
        .configured(&issuer.lines())
        .serve();
    server
        .get_as(&old.sign(&issuer.claims()), PING)
        .await
        .done();
    issuer.publish(&[&new]);
    server
        .get_as(&new.sign(&issuer.claims()), PING)
        .await
        .done();
    assert_eq!(issuer.fetched(), 2);
    let answer = server.get_as(&old.sign(&issuer.claims()), PING).await;
    answer.refused(401, "unauthorized");
    for number in 0..60 {
        let made_up = Key::new(&format!("made-up-{number}"), Algorithm::EdDSA);
        let answer = server.get_as(&made_up.sign(&issuer.claims()), PING).await;
        answer.refused(401, "unauthorized");
    }
    // A burst of five, and one in ten seconds after that, however slow the machine.
    assert!(issuer.fetched() < 20, "{}", issuer.fetched());
    server
        .get_as(&new.sign(&issuer.claims()), PING)
        .await
        .done();
}

#[tokio::test]
async fn a_missing_scope_is_named() {
    let key = Key::new("a", Algorithm::EdDSA);
    let issuer = Issuer::start(&[&key]).await;
    let server = House::new("jwt-scope").configured(&issuer.lines()).serve();
    for lacking in [None, Some(json!("openid")), Some(json!("onward2 on ward"))] {
        let token = key.sign(&but(issuer.claims(), "scope", lacking));
        let answer = server.get_as(&token, PING).await;
        let problem = answer.refused(403, "forbidden");
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|text| text.contains("`onward`"))
        );
        let challenge = &answer.challenge;
        assert!(
            challenge.contains("error=\"insufficient_scope\", scope=\"onward\""),
            "{challenge}"
        );
    }
    let listed = but(issuer.claims(), "scope", None);
    let listed = but(listed, "scp", Some(json!(["openid", "onward"])));
    server.get_as(&key.sign(&listed), PING).await.done();
}

#[tokio::test]
async fn claims_say_the_role_and_the_tenant() {
    let key = Key::new("a", Algorithm::EdDSA);
    let issuer = Issuer::start(&[&key]).await;
    let lines = format!(
        "{}\ntenant_claim = \"org\"\ndefault_role = \"viewer\"",
        issuer.lines()
    );
    let house = House::new("jwt-claimed").configured(&lines);
    house.prints(&["tenant", "create", "acme"]);
    let server = house.serve();
    let as_of = |org: Option<&str>, role: Option<Value>| {
        let claims = but(issuer.claims(), "org", org.map(Value::from));
        key.sign(&but(claims, "role", role))
    };
    let viewer = as_of(Some("acme"), None);
    assert_eq!(server.get_as(&viewer, PING).await.done()["tenant"], "acme");
    server
        .post_as(&viewer, "/api/v1/plans", plan())
        .await
        .refused(403, "forbidden");
    let agent = as_of(Some("acme"), Some(json!(["everyone", "agent"])));
    let made = server.post_as(&agent, "/api/v1/plans", plan()).await.done();
    let other = as_of(Some("local"), Some(json!("owner")));
    let at = format!("/api/v1/plans/{}", made["planId"].as_str().expect("an id"));
    server
        .get_as(&other, &at)
        .await
        .refused(404, "plan_not_found");
    for org in [None, Some("nowhere"), Some("ACME"), Some("' or 1=1 --")] {
        server
            .get_as(&as_of(org, None), PING)
            .await
            .refused(401, "unauthorized");
    }
}

#[tokio::test]
async fn a_provider_that_is_away_is_said_to_be_and_own_tokens_go_on() {
    let key = Key::new("a", Algorithm::EdDSA);
    let issuer = Issuer::start(&[&key]).await;
    let lines = issuer.lines();
    let away = format!("{lines}\njwks_url = \"http://127.0.0.1:9/keys\"");
    let house = House::new("jwt-away").configured(&away);
    let own = house.token("local", "own", "agent");
    let server = house.serve();
    let answer = server.get_as(&key.sign(&issuer.claims()), PING).await;
    answer.refused(503, "unavailable");
    server.get_as(&own, PING).await.done();
}

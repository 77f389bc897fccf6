//! Who comes in: nobody without saying who they are, but on loopback; and nobody does more than their
//! role.

use reqwest::Method;
use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::basics::plan;
use crate::house::{House, Server, send};
use crate::routes::{ROLES, may, samples};

const CLOSED: &str = "[access]\nrequire_tokens = true";

#[tokio::test]
async fn another_address_needs_tokens_or_a_provider() {
    let house = House::new("unguarded");
    let output = house.run(&["serve", "--bind", "0.0.0.0:0"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(
        told.contains("error: `0.0.0.0:0` can be reached from other machines"),
        "{told}"
    );
    assert!(
        told.contains("hint: make a token first (`onward token create"),
        "{told}"
    );

    let token = house.token("local", "ci", "agent");
    let mut server = house.serve_with(&["serve", "--bind", "0.0.0.0:0"]);
    server.url = server.url.replace("0.0.0.0", "127.0.0.1");
    server
        .get("/api/v1/ping")
        .await
        .refused(401, "unauthorized");
    assert_eq!(
        server.get_as(&token, "/api/v1/ping").await.done()["user"],
        "token:ci"
    );

    let revoked = House::new("unguarded-revoked");
    let _ = revoked.token("local", "ci", "agent");
    revoked.prints(&["token", "revoke", "ci"]);
    let output = revoked.run(&["serve", "--bind", "0.0.0.0:0"]);
    assert_eq!(
        output.status.code(),
        Some(4),
        "a token that opens nothing is none"
    );

    for lines in [
        CLOSED,
        "[access.issuer]\nurl = \"https://id.example.org\"\naudience = \"onward\"",
    ] {
        let house = House::new("guarded").configured(lines);
        let mut server = house.serve_with(&["serve", "--bind", "0.0.0.0:0"]);
        server.url = server.url.replace("0.0.0.0", "127.0.0.1");
        server
            .get("/api/v1/ping")
            .await
            .refused(401, "unauthorized");
    }
}

/// A plan, a step of it, and the id of a token.
async fn made(server: &Server, token: &str) -> (String, String, String) {
    let made = server.post_as(token, "/api/v1/plans", plan()).await.done();
    let body = json!({ "name": "spare", "role": "viewer" });
    let spare = server.post_as(token, "/api/v1/tokens", body).await.done();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (
        text(&made["planId"]),
        text(&made["firstStep"]["stepId"]),
        text(&spare["tokenId"]),
    )
}

#[tokio::test]
async fn without_a_good_token_every_route_is_closed() {
    let house = House::new("closed").configured(CLOSED);
    let owner = house.token("local", "owner", "owner");
    let revoked = house.token("local", "gone", "owner");
    house.prints(&["token", "revoke", "gone"]);
    let expired = house.expired_token().await;
    let server = house.serve();
    let (plan, step, token) = made(&server, &owner).await;
    let samples = samples(&server, Some(&owner), (&plan, &step, &token)).await;
    let mut routes: Vec<(Method, String)> = samples
        .into_iter()
        .map(|sample| (sample.method, sample.path))
        .collect();
    for path in [
        "/metrics",
        "/mcp",
        "/api/v1/events",
        "/",
        "/plans",
        "/api/v1/nothing",
    ] {
        routes.push((Method::GET, path.to_owned()));
    }
    for path in ["/mcp", "/healthz", "/.well-known/oauth-protected-resource"] {
        routes.push((Method::POST, path.to_owned()));
    }
    let wrong = format!("onw_{}", "0".repeat(40));
    let none: Option<String> = None;
    let headers = [
        none,
        Some(format!("Bearer {wrong}")),
        Some(format!("Bearer {revoked}")),
        Some(format!("Bearer {expired}")),
        Some(format!("Bearer {}", &owner[..owner.len() - 1])),
        Some(format!("Basic {owner}")),
        Some(owner.clone()),
        Some("Bearer ".to_owned()),
        Some("Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.".to_owned()),
    ];
    for (method, path) in &routes {
        for header in &headers {
            let mut request = server.ask(method.clone(), path);
            if let Some(header) = header {
                request = request.header(AUTHORIZATION, header);
            }
            let answer = send(request).await;
            answer.refused(401, "unauthorized");
            let metadata = match path.as_str() {
                "/mcp" => "/.well-known/oauth-protected-resource/mcp",
                _ => "/.well-known/oauth-protected-resource",
            };
            let expected = format!("resource_metadata=\"{}{metadata}\"", server.url);
            assert!(answer.challenge.starts_with("Bearer "), "{answer:?}");
            assert!(answer.challenge.ends_with(&expected), "{answer:?}");
            assert_eq!(answer.challenge.contains("invalid_token"), header.is_some());
        }
    }
    // Nothing of it was done, and what is open is open.
    let audit = format!("/api/v1/plans/{plan}/audit");
    let audit = server.get_as(&owner, &audit).await.done();
    assert_eq!(audit["events"].as_array().map(Vec::len), Some(1));
    for path in [
        "/healthz",
        "/readyz",
        "/.well-known/oauth-protected-resource",
    ] {
        assert!(server.get(path).await.status.is_success());
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_also_where_none_is_needed() {
    let server = House::new("mistaken").serve();
    assert_eq!(server.get("/api/v1/ping").await.done()["user"], "user:ann");
    let wrong = format!("onw_{}", "0".repeat(40));
    let answer = server.get_as(&wrong, "/api/v1/ping").await;
    answer.refused(401, "unauthorized");
    let token = server.house.token("local", "mine", "viewer");
    assert_eq!(
        server.get_as(&token, "/api/v1/ping").await.done()["user"],
        "token:mine"
    );
    server
        .post_as(&token, "/api/v1/plans", plan())
        .await
        .refused(403, "forbidden");
    // Taken back, it opens nothing from then on.
    server.house.prints(&["token", "revoke", "mine"]);
    server
        .get_as(&token, "/api/v1/ping")
        .await
        .refused(401, "unauthorized");
}

#[tokio::test]
async fn every_role_does_what_it_may_and_nothing_else() {
    let house = House::new("roles").configured(CLOSED);
    let tokens: Vec<(&str, String)> = ROLES
        .iter()
        .map(|role| (*role, house.token("acme", role, role)))
        .collect();
    let owner = tokens[0].1.clone();
    let server = house.serve();
    let (plan, step, token) = made(&server, &owner).await;
    let samples = samples(&server, Some(&owner), (&plan, &step, &token)).await;
    let mut forbidden = 0;
    for (role, token) in tokens.iter().rev() {
        for sample in &samples {
            let answer = sample.send(&server, Some(token)).await;
            if may(role, sample.least) {
                assert_ne!(answer.status.as_u16(), 401, "{role} {sample:?}: {answer:?}");
                assert_ne!(answer.status.as_u16(), 403, "{role} {sample:?}: {answer:?}");
            } else {
                let problem = answer.refused(403, "forbidden");
                assert!(
                    problem["detail"]
                        .as_str()
                        .is_some_and(|text| text.contains(role))
                );
                forbidden += 1;
            }
        }
    }
    assert!(forbidden >= 25, "{forbidden}");
}

//! Authentication and roles: only loopback works without a token, and every role can do no more
//! than it is allowed to.

use std::sync::Arc;
use std::time::Duration;

use onward_core::{Role, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::environment::Environment;
use onward_engine::machine::SystemEnvironment;
use onward_engine::{Address, Engine};
use onward_testbed::mcp_client::Era;
use onward_testbed::sdk_client::SdkClient;
use onward_testbed::{Program, send};
use reqwest::Method;
use reqwest::header::AUTHORIZATION;
use serde_json::Value;

use crate::basics::plan;
use crate::page_routes::{self, Route, Visitor};
use crate::program;
use crate::routes::{ROLES, is_allowed, samples};
use crate::world::Ids;

const TOKENS_REQUIRED: &str = "[access]\nrequire_tokens = true";

#[tokio::test]
async fn listening_beyond_loopback_requires_authentication() {
    let setup = program("no-auth");
    let output = setup.run(&["--json", "serve", "--bind", "0.0.0.0:0"]);
    let stderr = output.stderr;
    assert_eq!(output.code, Some(4), "{stderr}");
    let error: Value = serde_json::from_str(&stderr).expect("valid JSON");
    assert_eq!(error["error"]["code"], "not_configured", "{stderr}");

    let token = setup.token("local", "ci", "agent");
    let mut server = setup.start(&["serve", "--bind", "0.0.0.0:0"]);
    server.url = server.url.replace("0.0.0.0", "127.0.0.1");
    server
        .get("/api/v1/ping")
        .await
        .expect_problem(401, "unauthorized");
    assert_eq!(
        server.get_as(&token, "/api/v1/ping").await.expect_success()["user"],
        "token:ci"
    );

    let revoked = program("no-auth-revoked");
    let _ = revoked.token("local", "ci", "agent");
    revoked.run_ok(&["token", "revoke", "ci"]);
    let output = revoked.run(&["serve", "--bind", "0.0.0.0:0"]);
    assert_eq!(output.code, Some(4), "a revoked token does not count");

    for config in [
        TOKENS_REQUIRED,
        "[access.issuer]\nurl = \"https://id.example.org\"\naudience = \"onward\"",
    ] {
        let setup = program("auth").with_config(config);
        let mut server = setup.start(&["serve", "--bind", "0.0.0.0:0"]);
        server.url = server.url.replace("0.0.0.0", "127.0.0.1");
        server
            .get("/api/v1/ping")
            .await
            .expect_problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn rejects_invalid_tokens_on_every_route() {
    let setup = program("closed").with_config(TOKENS_REQUIRED);
    let owner = setup.token("local", "owner", "owner");
    let revoked = setup.token("local", "revoked", "owner");
    setup.run_ok(&["token", "revoke", "revoked"]);
    let expired = expired_token(&setup).await;
    let server = setup.serve();
    let ids = Ids::create(&server, Some(&owner), "tides", 1).await;
    let audit = format!("/api/v1/plans/{}/audit", ids.plan);
    let before = server.get_as(&owner, &audit).await.expect_success();
    let samples = samples(&server, Some(&owner), &ids).await;
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
    let invalid = format!("onw_{}", "0".repeat(40));
    let none: Option<String> = None;
    let headers = [
        none,
        Some(format!("Bearer {invalid}")),
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
            let mut request = server.request(method.clone(), path);
            if let Some(header) = header {
                request = request.header(AUTHORIZATION, header);
            }
            let response = send(request).await;
            response.expect_problem(401, "unauthorized");
            let metadata = match path.as_str() {
                "/mcp" => "/.well-known/oauth-protected-resource/mcp",
                _ => "/.well-known/oauth-protected-resource",
            };
            let expected = format!("resource_metadata=\"{}{metadata}\"", server.url);
            assert!(
                response.header("www-authenticate").starts_with("Bearer "),
                "{response:?}"
            );
            assert!(
                response.header("www-authenticate").ends_with(&expected),
                "{response:?}"
            );
            assert_eq!(
                response
                    .header("www-authenticate")
                    .contains("invalid_token"),
                header.is_some()
            );
        }
    }
    // The rejected requests changed nothing, and the public routes need no token.
    let after = server.get_as(&owner, &audit).await.expect_success();
    assert_eq!(after, before);
    for path in [
        "/healthz",
        "/readyz",
        "/.well-known/oauth-protected-resource",
    ] {
        assert!(server.get(path).await.status.is_success());
    }
}

#[tokio::test]
async fn rejects_an_invalid_token_even_if_none_is_required() {
    let server = program("invalid-token").serve();
    assert_eq!(
        server.get("/api/v1/ping").await.expect_success()["user"],
        "user:ann"
    );
    let invalid = format!("onw_{}", "0".repeat(40));
    let response = server.get_as(&invalid, "/api/v1/ping").await;
    response.expect_problem(401, "unauthorized");
    let token = server.program().token("local", "mine", "viewer");
    assert_eq!(
        server.get_as(&token, "/api/v1/ping").await.expect_success()["user"],
        "token:mine"
    );
    server
        .post_as(&token, "/api/v1/plans", plan())
        .await
        .expect_problem(403, "forbidden");
    // A revoked token is rejected immediately.
    server.program().run_ok(&["token", "revoke", "mine"]);
    server
        .get_as(&token, "/api/v1/ping")
        .await
        .expect_problem(401, "unauthorized");
}

#[tokio::test]
async fn the_hint_depends_on_the_authorization_header() {
    let setup = program("hint").with_config(TOKENS_REQUIRED);
    let server = setup.serve();
    let no_token = server.get("/api/v1/ping").await;
    let no_token = no_token.expect_problem(401, "unauthorized");
    for (header, has_token) in [
        ("Basic dXNlcjpwYXNz", false),
        ("Bearer ", false),
        ("Bearer onw_0000", true),
    ] {
        let request = server.request(Method::GET, "/api/v1/ping");
        let response = send(request.header(AUTHORIZATION, header)).await;
        let problem = response.expect_problem(401, "unauthorized");
        assert_eq!(problem["hint"] != no_token["hint"], has_token, "{header}");
    }
}

#[tokio::test]
async fn every_role_is_limited_to_its_permissions() {
    let setup = program("roles").with_config(TOKENS_REQUIRED);
    let tokens: Vec<(&str, String)> = ROLES
        .iter()
        .map(|role| (*role, setup.token("acme", role, role)))
        .collect();
    let owner = tokens[0].1.clone();
    let server = setup.serve();
    let ids = Ids::create(&server, Some(&owner), "tides", 1).await;
    let samples = samples(&server, Some(&owner), &ids).await;
    let mut forbidden = 0;
    for (role, token) in tokens.iter().rev() {
        for sample in &samples {
            let response = sample.send(&server, Some(token)).await;
            if is_allowed(role, sample.min_role) {
                assert_ne!(
                    response.status.as_u16(),
                    401,
                    "{role} {sample:?}: {response:?}"
                );
                assert_ne!(
                    response.status.as_u16(),
                    403,
                    "{role} {sample:?}: {response:?}"
                );
            } else {
                let problem = response.expect_problem(403, "forbidden");
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
    let requests = samples.len() * tokens.len();
    println!("{requests} requests to the API, {forbidden} of them forbidden");
}

#[tokio::test]
async fn every_role_is_limited_to_its_permissions_on_tools() {
    let setup = program("tool-roles").with_config(TOKENS_REQUIRED);
    let tokens = ROLES.map(|role| (role, setup.token("acme", role, role)));
    let owner = tokens[0].1.clone();
    let server = setup.serve();
    let ids = Ids::create(&server, Some(&owner), "tides", 1).await;
    let samples = samples(&server, Some(&owner), &ids).await;
    let mut counts = [0, 0];
    for (role, token) in tokens.iter().rev() {
        let agent = SdkClient::connect(&server, Era::Handshake, Some(token)).await;
        let tools = agent.tool_names().await;
        for sample in samples
            .iter()
            .filter(|sample| tools.contains(&sample.operation))
        {
            let arguments = sample.arguments.clone();
            let response = agent.response(&sample.operation, arguments).await;
            let is_forbidden = response["error"]["code"] == "forbidden";
            let allowed = is_allowed(role, sample.min_role);
            assert_eq!(is_forbidden, !allowed, "{role} {sample:?}: {response}");
            counts[usize::from(allowed)] += 1;
        }
    }
    println!("{counts:?} calls of tools were forbidden and allowed");
    assert!(counts[0] >= 12 && counts[1] >= 60, "{counts:?}");
}

#[tokio::test]
async fn every_role_is_limited_to_its_permissions_on_pages() {
    let setup = program("page-roles").with_config(TOKENS_REQUIRED);
    let tokens = ROLES.map(|role| (role, setup.token("acme", role, role)));
    let server = setup.serve();
    let (_, owner) = &tokens[0];
    let mut visitors = Vec::new();
    for (role, token) in &tokens {
        visitors.push((*role, Visitor::sign_in(&server, token).await));
    }
    let mut counts = [0, 0];
    for (number, (method, path, route)) in page_routes::ROUTES.iter().enumerate() {
        let Route::Page(min_role, fields) = route else {
            continue;
        };
        let mut ids = Ids::create(&server, Some(owner), "tides", number).await;
        for (role, visitor) in visitors.iter().rev() {
            let path = page_routes::fill(path, |_| ids.clone());
            let response = visitor.visit(method, &path, fields).await;
            let status = response.status.as_u16();
            let allowed = is_allowed(role, min_role);
            assert_eq!(status == 403, !allowed, "{role} {path}: {response:?}");
            assert_ne!(status, 401, "{role} {path}: {response:?}");
            counts[usize::from(allowed)] += 1;
            if allowed && *method == "POST" {
                let number = 100 + counts[1];
                ids = Ids::create(&server, Some(owner), "tides", number).await;
            }
        }
    }
    println!("{counts:?} requests to pages were forbidden and allowed");
    assert!(counts[0] >= 25 && counts[1] >= 100, "{counts:?}");
}

/// Creates a token that has expired.
async fn expired_token(program: &Program) -> String {
    struct Yesterday;
    impl Environment for Yesterday {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(SystemEnvironment.now().as_millis() - 24 * 60 * 60 * 1000)
        }
        fn fill_random(&self, bytes: &mut [u8]) {
            SystemEnvironment.fill_random(bytes);
        }
    }
    let address = Address::parse(&program.database).expect("address is valid");
    let settings = Settings {
        environment: Arc::new(Yesterday),
        ..Settings::default()
    };
    let engine = Engine::open(&address, settings)
        .await
        .expect("database opened");
    let owner = engine
        .operator("local", "test")
        .await
        .expect("tenant exists");
    let until = engine.now().checked_add(Duration::from_secs(60));
    let created = engine.create_token(&owner, "old", Role::Owner, until).await;
    let (secret, _) = created.expect("token created");
    engine.close().await;
    secret
}

//! `Host` and `Origin` checks: DNS rebinding, cross-origin requests and CORS.

use onward_testbed::{Response, Server, send};
use reqwest::Method;

use crate::program;

async fn get_with(server: &Server, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = server.request(Method::GET, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request).await
}

#[tokio::test]
async fn rejects_unknown_hosts_on_every_route() {
    let server = program("rebinding").serve();
    for path in [
        "/",
        "/healthz",
        "/metrics",
        "/mcp",
        "/api/v1/plans",
        "/api/v1/events",
    ] {
        for host in [
            "evil.example",
            "evil.example:7171",
            "127.0.0.1.evil.example",
        ] {
            get_with(&server, path, &[("host", host)])
                .await
                .expect_problem(403, "forbidden");
        }
    }
    for host in ["localhost:1", "127.0.0.1", "[::1]:7171"] {
        assert!(
            get_with(&server, "/api/v1/plans", &[("host", host)])
                .await
                .status
                .is_success()
        );
    }
}

#[tokio::test]
async fn rejects_other_origins_and_allows_configured_ones() {
    let server = program("origin")
        .with_config("[serve]\nallowed_origins = [\"https://app.example.org\"]")
        .serve();
    for origin in ["https://evil.example", "null", "http://localhost:1"] {
        for path in ["/api/v1/plans", "/mcp", "/healthz", "/api/v1/events"] {
            get_with(&server, path, &[("origin", origin)])
                .await
                .expect_problem(403, "forbidden");
        }
    }
    let own = server.url.clone();
    for origin in [own.as_str(), "https://app.example.org"] {
        assert!(
            get_with(&server, "/api/v1/plans", &[("origin", origin)])
                .await
                .status
                .is_success()
        );
    }
    let image = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "no-cors"),
    ];
    get_with(&server, "/api/v1/plans", &image)
        .await
        .expect_problem(403, "forbidden");
}

#[tokio::test]
async fn allows_the_host_of_the_public_url() {
    let setup =
        program("public").with_config("[serve]\npublic_url = \"https://onward.example.org\"");
    let token = format!("Bearer {}", setup.token("local", "ann", "member"));
    let server = setup.serve();
    let host = [("host", "onward.example.org")];
    get_with(&server, "/api/v1/plans", &host)
        .await
        .expect_problem(401, "unauthorized");
    get_with(
        &server,
        "/api/v1/plans",
        &[host[0], ("authorization", &token)],
    )
    .await
    .expect_success();
    get_with(&server, "/api/v1/plans", &[("host", "evil.example")])
        .await
        .expect_problem(403, "forbidden");
    let metadata = get_with(&server, "/.well-known/oauth-protected-resource/mcp", &host).await;
    assert_eq!(
        metadata.expect_success()["resource"],
        "https://onward.example.org/mcp"
    );
}

#[tokio::test]
async fn a_public_url_requires_authentication_or_open() {
    let setup = || {
        program("public-open").with_config("[serve]\npublic_url = \"https://onward.example.org\"")
    };
    let refused = setup().run(&["--json", "serve", "--bind", "127.0.0.1:0"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let error: serde_json::Value = serde_json::from_str(&refused.stderr).expect("valid JSON");
    assert_eq!(error["error"]["code"], "not_configured", "{error}");
    let server = setup().start(&["serve", "--bind", "127.0.0.1:0", "--open"]);
    let host = [("host", "onward.example.org")];
    get_with(&server, "/api/v1/plans", &host)
        .await
        .expect_success();
}

#[tokio::test]
async fn rejects_cross_site_requests_that_change_state_without_origin() {
    let server = program("no-origin").serve();
    for mode in ["navigate", "no-cors", "cors"] {
        for method in [Method::POST, Method::DELETE] {
            let request = server
                .request(method, "/api/v1/plans")
                .header("sec-fetch-site", "cross-site")
                .header("sec-fetch-mode", mode);
            send(request).await.expect_problem(403, "forbidden");
        }
    }
}

#[tokio::test]
async fn sends_cors_headers_to_allowed_origins_only() {
    let server = program("pages")
        .with_config("[serve]\nallowed_origins = [\"https://app.example.org\"]")
        .with_config("[access]\nrequire_tokens = true")
        .serve();
    let from = async |method: Method, origin: &str| {
        let request = server
            .request(method, "/api/v1/plans")
            .header("origin", origin);
        request.send().await.expect("response received")
    };
    let preflight = from(Method::OPTIONS, "https://app.example.org").await;
    assert_eq!(preflight.status().as_u16(), 204);
    let headers = preflight.headers();
    assert_eq!(
        headers["access-control-allow-origin"],
        "https://app.example.org"
    );
    let allowed = headers["access-control-allow-headers"]
        .to_str()
        .expect("value is a string");
    assert!(allowed.contains("authorization") && allowed.contains("mcp-session-id"));
    // An allowed origin does not authenticate the request.
    let unauthenticated = from(Method::GET, "https://app.example.org").await;
    assert_eq!(unauthenticated.status().as_u16(), 401);
    assert_eq!(
        unauthenticated.headers()["access-control-allow-origin"],
        "https://app.example.org"
    );
    for method in [Method::OPTIONS, Method::GET] {
        let rejected = from(method, "https://evil.example").await;
        assert_eq!(rejected.status().as_u16(), 403);
        assert!(
            !rejected
                .headers()
                .contains_key("access-control-allow-origin")
        );
    }
}

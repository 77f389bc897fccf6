//! `Host` and `Origin`: a web page does not get through.

use reqwest::Method;

use crate::house::{House, Server, send};

async fn with(server: &Server, path: &str, headers: &[(&str, &str)]) -> crate::house::Answer {
    let mut request = server.ask(Method::GET, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request).await
}

#[tokio::test]
async fn a_foreign_name_that_leads_here_is_refused_on_every_route() {
    let server = House::new("rebinding").serve();
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
            with(&server, path, &[("host", host)])
                .await
                .refused(403, "forbidden");
        }
    }
    for host in ["localhost:1", "127.0.0.1", "[::1]:7171"] {
        assert!(
            with(&server, "/api/v1/plans", &[("host", host)])
                .await
                .status
                .is_success()
        );
    }
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused_and_its_own_is_not() {
    let server = House::new("origin")
        .configured("[serve]\nallowed_origins = [\"https://app.example.org\"]")
        .serve();
    for origin in ["https://evil.example", "null", "http://localhost:1"] {
        for path in ["/api/v1/plans", "/mcp", "/healthz", "/api/v1/events"] {
            with(&server, path, &[("origin", origin)])
                .await
                .refused(403, "forbidden");
        }
    }
    let own = server.url.clone();
    for origin in [own.as_str(), "https://app.example.org"] {
        assert!(
            with(&server, "/api/v1/plans", &[("origin", origin)])
                .await
                .status
                .is_success()
        );
    }
    let image = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "no-cors"),
    ];
    with(&server, "/api/v1/plans", &image)
        .await
        .refused(403, "forbidden");
}

#[tokio::test]
async fn behind_a_proxy_the_public_name_is_ours() {
    let server = House::new("public")
        .configured("[serve]\npublic_url = \"https://onward.example.org\"")
        .serve();
    let host = [("host", "onward.example.org")];
    assert!(
        with(&server, "/api/v1/plans", &host)
            .await
            .status
            .is_success()
    );
    with(&server, "/api/v1/plans", &[("host", "evil.example")])
        .await
        .refused(403, "forbidden");
    let described = with(&server, "/.well-known/oauth-protected-resource/mcp", &host).await;
    assert_eq!(
        described.done()["resource"],
        "https://onward.example.org/mcp"
    );
}

#[tokio::test]
async fn a_page_that_may_come_is_told_so_and_no_other_is() {
    let server = House::new("pages")
        .configured("[serve]\nallowed_origins = [\"https://app.example.org\"]")
        .configured("[access]\nrequire_tokens = true")
        .serve();
    let from = async |method: Method, origin: &str| {
        let request = server.ask(method, "/api/v1/plans").header("origin", origin);
        request.send().await.expect("it answers")
    };
    let asked = from(Method::OPTIONS, "https://app.example.org").await;
    assert_eq!(asked.status().as_u16(), 204);
    let headers = asked.headers();
    assert_eq!(
        headers["access-control-allow-origin"],
        "https://app.example.org"
    );
    let allowed = headers["access-control-allow-headers"]
        .to_str()
        .expect("a text");
    assert!(allowed.contains("authorization") && allowed.contains("mcp-session-id"));
    // That it may ask does not say who it is.
    let refused = from(Method::GET, "https://app.example.org").await;
    assert_eq!(refused.status().as_u16(), 401);
    assert_eq!(
        refused.headers()["access-control-allow-origin"],
        "https://app.example.org"
    );
    for method in [Method::OPTIONS, Method::GET] {
        let foreign = from(method, "https://evil.example").await;
        assert_eq!(foreign.status().as_u16(), 403);
        assert!(
            !foreign
                .headers()
                .contains_key("access-control-allow-origin")
        );
    }
}

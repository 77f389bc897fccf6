//! Access control: sign-in and sign-out, revoked tokens, roles, CSRF, and tenant isolation.

use onward_testbed::{Program, Server};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::browser::{Browser, plan, text};
use crate::program;

fn token_server(test: &str) -> Program {
    program(test).with_config("[access]\nrequire_tokens = true")
}

async fn create_plan(server: &Server, token: &str, name: &str) -> String {
    let created = server
        .post_as(token, "/api/v1/plans", plan(name, &["a"]))
        .await;
    text(&created.expect_success(), "planId")
}

#[tokio::test]
async fn loopback_needs_no_sign_in() {
    let server = program("pages-open").serve();
    let browser = Browser::new(&server);
    assert_eq!(browser.get("/plans").await.status, StatusCode::OK);
    assert_eq!(browser.get("/login").await.location, "/plans");
    browser.get("/plans").await.assert_lacks("Sign out");
}

#[tokio::test]
async fn signs_in_and_out_with_a_token() {
    let setup = token_server("pages-login");
    let token = setup.token("local", "ann", "member");
    let server = setup.serve();
    let browser = Browser::new(&server);
    let redirect = browser.get("/plans?q=a").await;
    assert_eq!(redirect.location, "/login?back=/plans%3Fq%3Da");
    let login = browser.get(&redirect.location).await;
    assert_eq!(login.status, StatusCode::OK);
    let csrf_token = login.csrf_token();
    let invalid = [("token", "onw_0"), ("csrf_token", csrf_token.as_str())];
    let rejected = browser.post("/login", &invalid).await;
    assert_eq!(rejected.status, StatusCode::UNAUTHORIZED);
    rejected.assert_contains("id=\"error\"");
    let valid = [
        ("token", token.as_str()),
        ("csrf_token", csrf_token.as_str()),
        ("back", "/plans?q=a"),
    ];
    let signed_in = browser.post("/login", &valid).await;
    assert_eq!(signed_in.location, "/plans?q=a");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(signed_in.cookie.contains(part), "{}", signed_in.cookie);
    }
    assert!(
        !signed_in.cookie.contains("Secure"),
        "the server does not use HTTPS"
    );
    assert!(
        !signed_in.cookie.contains(&token[4..]),
        "the cookie contains no secret"
    );
    let response = browser.get("/plans").await;
    response.assert_contains("<bdi>ann</bdi>");
    let signed_out = browser
        .post("/logout", &[("csrf_token", &response.csrf_token())])
        .await;
    assert_eq!(signed_out.location, "/login");
    assert_eq!(browser.get("/plans").await.location, "/login?back=/plans");
}

/// A copied cookie is rejected after its user signed out, also by another server with the same
/// secret. Other sessions of the token continue.
async fn signing_out_ends_the_session_on_the_server(test: &str, database: Option<String>) {
    let start = |name: &str, database: &str| {
        token_server(name)
            .with_config("[serve]\nsecret = \"0123456789abcdef0123456789abcdef\"")
            .with_database(database.to_owned())
    };
    let setup = token_server(test);
    let database = database.unwrap_or_else(|| setup.database.clone());
    let token = start(test, &database).token("local", "ann", "member");
    let server = start(&format!("{test}-one"), &database).serve();
    let other = start(&format!("{test}-two"), &database).serve();
    let browser = Browser::signed_in(&server, &token).await;
    let second = Browser::signed_in(&server, &token).await;
    let stolen = browser.copy();
    let elsewhere = browser.copy_to(&other);
    for copy in [&stolen, &elsewhere] {
        assert_eq!(copy.get("/plans").await.status, StatusCode::OK);
    }
    browser.submit("/plans", "/logout", &[]).await;
    for copy in [&stolen, &elsewhere] {
        assert_eq!(copy.get("/plans").await.location, "/login?back=/plans");
    }
    assert_eq!(second.get("/plans").await.status, StatusCode::OK);
}

#[tokio::test]
async fn signing_out_ends_the_session_on_all_servers() {
    signing_out_ends_the_session_on_the_server("pages-sign-out", None).await;
}

#[tokio::test]
async fn signing_out_ends_the_session_on_all_servers_on_postgres() {
    let database = onward_testbed::Cluster::shared().database();
    signing_out_ends_the_session_on_the_server("pages-sign-out-pg", Some(database)).await;
}

#[tokio::test]
async fn the_cookie_is_secure_behind_https() {
    let setup = token_server("pages-https")
        .with_config("[serve]\npublic_url = \"https://onward.example.org\"");
    let token = setup.token("local", "ann", "member");
    let server = setup.serve();
    let browser = Browser::new(&server);
    let csrf_token = browser.get("/login").await.csrf_token();
    let fields = [
        ("token", token.as_str()),
        ("csrf_token", csrf_token.as_str()),
    ];
    let signed_in = browser.post("/login", &fields).await;
    let cookie = signed_in.cookie;
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    // Browsers accept this name only with `Secure`, `Path=/` and without a domain.
    assert!(cookie.starts_with("__Host-onward_session="), "{cookie}");
    assert!(
        cookie.contains("; Path=/;") && !cookie.contains("Domain"),
        "{cookie}"
    );
    assert_eq!(browser.get("/plans").await.status, StatusCode::OK);
    let signed_out = browser.submit("/plans", "/logout", &[]).await;
    let cookie = signed_out.cookie;
    assert!(cookie.starts_with("__Host-onward_session=;"), "{cookie}");
    assert!(cookie.ends_with("Max-Age=0; Secure"), "{cookie}");
}

#[tokio::test]
async fn revoking_a_token_ends_its_session() {
    let setup = token_server("pages-revoked");
    let owner = setup.token("local", "boss", "owner");
    let token = setup.token("local", "ann", "member");
    let server = setup.serve();
    let browser = Browser::signed_in(&server, &token).await;
    assert_eq!(browser.get("/plans").await.status, StatusCode::OK);
    let boss = Browser::signed_in(&server, &owner).await;
    let settings = boss.get("/settings/access").await;
    let id = settings.html.split("<bdi>ann</bdi>").nth(1).unwrap();
    let id = id.split("/settings/tokens/").nth(1).unwrap();
    let id = id.split('/').next().unwrap();
    let to = format!("/settings/tokens/{id}/revoke");
    let redirect = boss.submit("/settings/access", &to, &[]).await;
    assert_eq!(redirect.location, "/settings/access?done=revoked");
    let ended = browser.get("/plans").await;
    assert_eq!(ended.location, "/login?back=/plans");
    assert!(ended.cookie.contains("Max-Age=0"), "{}", ended.cookie);
}

#[tokio::test]
async fn a_session_cookie_is_accepted_on_pages_only() {
    let setup = token_server("pages-cookie");
    let token = setup.token("local", "ann", "owner");
    let server = setup.serve();
    let browser = Browser::new(&server);
    let csrf_token = browser.get("/login").await.csrf_token();
    let fields = [
        ("token", token.as_str()),
        ("csrf_token", csrf_token.as_str()),
    ];
    let cookie = browser.post("/login", &fields).await.cookie;
    let cookie = cookie.split(';').next().unwrap().to_owned();
    for path in ["/api/v1/plans", "/api/v1/events", "/metrics", "/mcp"] {
        let request = server.request(Method::GET, path).header("cookie", &cookie);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
    let live = server.request(Method::GET, "/live");
    assert_eq!(
        live.send().await.unwrap().status(),
        StatusCode::UNAUTHORIZED
    );
    let live = server
        .request(Method::GET, "/live")
        .header("cookie", &cookie);
    assert_eq!(live.send().await.unwrap().status(), StatusCode::OK);
    let forged = cookie.replace(".", ".0");
    let forged = server
        .request(Method::GET, "/live")
        .header("cookie", forged);
    let response = forged.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn rejects_forms_without_a_valid_csrf_token() {
    let setup = token_server("pages-csrf");
    let ann = setup.token("local", "ann", "owner");
    let bob = setup.token("local", "bob", "owner");
    let server = setup.serve();
    let id = create_plan(&server, &ann, "Boats").await;
    let browser = Browser::signed_in(&server, &ann).await;
    let other = Browser::signed_in(&server, &bob).await;
    let foreign = other.get("/plans").await.csrf_token();
    let login = Browser::new(&server).get("/login").await.csrf_token();
    for csrf_token in ["", "0", foreign.as_str(), login.as_str()] {
        for path in [
            format!("/plans/{id}/abandon"),
            format!("/plans/{id}/resume"),
            "/plans/sample".to_owned(),
            "/settings/tokens".to_owned(),
            "/settings/reviews".to_owned(),
            "/logout".to_owned(),
        ] {
            let fields = [("csrf_token", csrf_token), ("name", "x"), ("role", "owner")];
            let response = browser.post(&path, &fields).await;
            assert_eq!(
                response.status,
                StatusCode::FORBIDDEN,
                "{path}: {response:?}"
            );
        }
    }
    let status = server.get_as(&ann, &format!("/api/v1/plans/{id}")).await;
    assert_eq!(status.expect_success()["status"], "planning");
    // A valid token from a foreign origin is rejected by the middleware.
    let csrf_token = browser.get("/plans").await.csrf_token();
    let evil = server
        .request(Method::POST, &format!("/plans/{id}/abandon"))
        .header("origin", "https://evil.example")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("csrf_token={csrf_token}"));
    let response = evil.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn roles_without_permission_see_no_buttons_and_are_rejected() {
    let setup = token_server("pages-roles");
    let owner = setup.token("local", "boss", "owner");
    let tokens: Vec<(&str, String)> = ["admin", "member", "agent", "viewer"]
        .into_iter()
        .map(|role| (role, setup.token("local", role, role)))
        .collect();
    let server = setup.serve();
    let id = create_plan(&server, &owner, "Boats").await;
    let next = format!("/api/v1/plans/{id}/next");
    let step = text(
        &server
            .post_as(&owner, &next, json!({}))
            .await
            .expect_success(),
        "stepId",
    );
    let path = format!("/api/v1/steps/{step}/review");
    server
        .post_as(&owner, &path, json!({ "summary": "?" }))
        .await
        .expect_success();
    for (role, token) in &tokens {
        let browser = Browser::signed_in(&server, token).await;
        let page = browser.get(&format!("/plans/{id}?tab=about")).await;
        let may_abandon = ["admin", "member"].contains(role);
        assert_eq!(page.html.contains("<details id=\"cancel\">"), may_abandon);
        assert_eq!(page.html.contains("id=\"read-only\""), !may_abandon);
        let reviews = browser.get("/inbox").await;
        // In the local tenant, agents may submit the decision of their user.
        let may_decide = *role != "viewer";
        let offered = reviews.html.contains("value=\"approve\"");
        assert_eq!(offered, may_decide, "{role}");
        let settings = browser.get("/settings/access").await;
        let may_manage = *role == "admin";
        assert_eq!(
            settings.html.contains("action=\"/settings/tokens\""),
            may_manage,
            "{role}"
        );
        // Only an owner changes the tenant.
        settings.assert_lacks("action=\"/settings/reviews\"");
        let fields = [("csrf_token", &*settings.csrf_token()), ("agents", "wait")];
        let denied = browser.post("/settings/reviews", &fields).await;
        assert_eq!(denied.status, StatusCode::FORBIDDEN, "{role}");
        let csrf_token = page.csrf_token();
        let tried = browser
            .post(
                &format!("/plans/{id}/resume"),
                &[("csrf_token", &csrf_token)],
            )
            .await;
        let expected = if may_abandon { 409 } else { 403 };
        assert_eq!(tried.status.as_u16(), expected, "{role}: {tried:?}");
    }
}

#[tokio::test]
async fn viewers_read_everything_and_are_offered_nothing() {
    let setup = token_server("pages-viewer");
    let owner = setup.token("local", "boss", "owner");
    let viewer = setup.token("local", "eve", "viewer");
    let server = setup.serve();
    let browser = Browser::signed_in(&server, &viewer).await;
    // No plans yet: the page offers no sample plan.
    browser.get("/").await.assert_lacks("/plans/sample");
    let mut stuck = plan("Stuck", &["a"]);
    stuck["stallThresholdMs"] = json!(1);
    stuck["onStall"] = json!("ignore");
    let stuck = server.post_as(&owner, "/api/v1/plans", stuck).await;
    let stuck = text(&stuck.expect_success(), "planId");
    let asks = create_plan(&server, &owner, "Asks").await;
    let mut steps = Vec::new();
    for id in [&stuck, &asks] {
        let next = format!("/api/v1/plans/{id}/next");
        let next = server.post_as(&owner, &next, json!({})).await;
        steps.push(text(&next.expect_success(), "stepId"));
    }
    let review = format!("/api/v1/steps/{}/review", steps[1]);
    let question = json!({ "summary": "?", "questions": ["Red?"] });
    let review = server.post_as(&owner, &review, question).await;
    let review = text(&review.expect_success(), "reviewId");
    let call = json!({ "tool": "Bash", "status": "running" });
    let call = server.post_as(&owner, "/api/v1/sessions/s/calls", call);
    call.await.expect_success();
    for path in [
        "/".to_owned(),
        "/plans".to_owned(),
        "/plans/new".to_owned(),
        format!("/plans/{stuck}"),
        format!("/plans/{stuck}?tab=about"),
        format!("/plans/{asks}"),
        format!("/plans/{stuck}/steps/{}", steps[0]),
        format!("/plans/{asks}/steps/{}", steps[1]),
        "/inbox".to_owned(),
        format!("/inbox?plan={stuck}"),
        format!("/reviews/{review}"),
        "/sessions".to_owned(),
        "/sessions/s".to_owned(),
        "/library".to_owned(),
        "/settings".to_owned(),
        "/settings/access".to_owned(),
        "/settings/alerts".to_owned(),
        "/settings/limits".to_owned(),
    ] {
        let page = browser.get(&path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        let sentences = page.html.matches("id=\"read-only\"").count();
        assert_eq!(sentences, 1, "{path}");
        for control in ["<textarea", "disabled", "<kbd>a</kbd>", "<kbd>e</kbd>"] {
            assert!(!page.html.contains(control), "{path}: {control}");
        }
        // A viewer can sign out and export the selected plans.
        let forms = page.html.split("<form method=\"post\" action=\"").skip(1);
        let allowed = ["/logout", "/plans/export"];
        for form in forms {
            let action = form.split('"').next().unwrap();
            assert!(allowed.contains(&action), "{path}: {action}");
        }
    }
    let inbox = browser.get(&format!("/reviews/{review}")).await;
    inbox.assert_contains("Red?");
    // A member is offered all of it.
    let boss = Browser::signed_in(&server, &owner).await;
    let inbox = boss.get(&format!("/reviews/{review}")).await;
    inbox.assert_lacks("id=\"read-only\"");
    inbox.assert_contains("<kbd>a</kbd>");
    let overview = boss.get("/").await;
    overview.assert_contains(&format!("action=\"/plans/{stuck}/release\""));
}

#[tokio::test]
async fn an_owner_reserves_review_decisions_for_users() {
    let setup = token_server("pages-agents-decide");
    let owner = setup.token("local", "boss", "owner");
    let agent = setup.token("local", "robot", "agent");
    let server = setup.serve();
    let browser = Browser::signed_in(&server, &owner).await;
    let id = create_plan(&server, &owner, "Boats").await;
    let next = format!("/api/v1/plans/{id}/next");
    let next = server.post_as(&agent, &next, json!({})).await;
    let step = text(&next.expect_success(), "stepId");
    let review = format!("/api/v1/steps/{step}/review");
    let review = server.post_as(&agent, &review, json!({ "summary": "?" }));
    review.await.expect_success();
    for (agents, status) in [("wait", 403), ("decide", 200)] {
        let fields = [("agents", agents)];
        let set = browser.submit("/settings/access", "/settings/reviews", &fields);
        assert_eq!(set.await.location, "/settings/access?done=reviews");
        let decision = format!("/api/v1/steps/{step}/decision");
        let decision = server.post_as(&agent, &decision, json!({ "decision": "approve" }));
        assert_eq!(decision.await.status.as_u16(), status, "{agents}");
    }
}

#[tokio::test]
async fn a_new_token_is_displayed_once() {
    let setup = token_server("pages-token");
    let owner = setup.token("local", "boss", "owner");
    let server = setup.serve();
    let browser = Browser::signed_in(&server, &owner).await;
    let fields = [("name", "ci"), ("role", "agent"), ("days", "30")];
    let response = browser
        .submit("/settings/access", "/settings/tokens", &fields)
        .await;
    let secret = response.html.split("class=\"secret\">").nth(1).unwrap();
    let secret = secret.split('<').next().unwrap().to_owned();
    assert!(secret.starts_with("onw_") && secret.len() == 44, "{secret}");
    server
        .get_as(&secret, "/api/v1/plans")
        .await
        .expect_success();
    let later = browser.get("/settings/access").await;
    later.assert_contains("<bdi>ci</bdi>");
    later.assert_lacks(&secret);
    let invalid = [("name", "ci"), ("role", "king")];
    let rejected = browser
        .submit("/settings/access", "/settings/tokens", &invalid)
        .await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
}

/// An error page without the id of its request.
fn without_request_id(html: &str) -> String {
    let Some((before, after)) = html.split_once("Request <code>") else {
        return html.to_owned();
    };
    let (_, rest) = after.split_once("</code>").expect("the id has an end");
    format!("{before}{rest}")
}

#[tokio::test]
async fn items_of_other_tenants_are_not_found() {
    let setup = token_server("pages-tenants");
    let ours = setup.token("local", "ann", "owner");
    let theirs = setup.token("acme", "eve", "owner");
    let server = setup.serve();
    let id = create_plan(&server, &ours, "Boats").await;
    let next = format!("/api/v1/plans/{id}/next");
    let step = text(
        &server
            .post_as(&ours, &next, json!({}))
            .await
            .expect_success(),
        "stepId",
    );
    let path = format!("/api/v1/steps/{step}/review");
    let review = server
        .post_as(&ours, &path, json!({ "summary": "?" }))
        .await;
    let review = text(&review.expect_success(), "reviewId");
    let eve = Browser::signed_in(&server, &theirs).await;
    let never = "00000000-0000-4000-8000-000000000000";
    for (path, other) in [
        (format!("/plans/{id}"), format!("/plans/{never}")),
        (
            format!("/plans/{id}?tab=audit"),
            format!("/plans/{never}?tab=audit"),
        ),
        (
            format!("/plans/{id}/export.json"),
            format!("/plans/{never}/export.json"),
        ),
        (
            format!("/plans/{id}/steps/{step}"),
            format!("/plans/{never}/steps/{step}"),
        ),
        (format!("/reviews/{review}"), format!("/reviews/{never}")),
    ] {
        let (response, unknown) = (eve.get(&path).await, eve.get(&other).await);
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
        let shown = without_request_id(&response.html).replace(&id, never);
        assert_eq!(shown, without_request_id(&unknown.html), "{path}");
    }
    let csrf_token = eve.get("/settings/access").await.csrf_token();
    for path in [
        format!("/plans/{id}/abandon"),
        format!("/plans/{id}/steps/{step}/requeue"),
        format!("/reviews/{step}/decide"),
    ] {
        let fields = [("csrf_token", csrf_token.as_str()), ("decision", "approve")];
        let response = eve.post(&path, &fields).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
    }
    eve.get("/plans").await.assert_lacks("Boats");
    eve.get("/inbox").await.assert_contains("id=\"no-reviews\"");
}

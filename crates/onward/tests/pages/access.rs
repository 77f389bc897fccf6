//! Who comes in, and what they may: sign-in, sign-out, tokens that end, roles, other tenants, and
//! forms that nobody was shown.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::browser::{Browser, plan, text};
use crate::house::{House, Server};

fn closed(test: &str) -> House {
    House::new(test).configured("[access]\nrequire_tokens = true")
}

async fn made(server: &Server, token: &str, name: &str) -> String {
    let made = server
        .post_as(token, "/api/v1/plans", plan(name, &["a"]))
        .await;
    text(&made.done(), "planId")
}

#[tokio::test]
async fn nobody_signs_in_on_their_own_machine() {
    let server = House::new("pages-open").serve();
    let browser = Browser::at(&server);
    assert_eq!(browser.get("/plans").await.status, StatusCode::OK);
    assert_eq!(browser.get("/login").await.to, "/plans");
    browser.get("/plans").await.hides("Sign out");
}

#[tokio::test]
async fn somebody_signs_in_and_out() {
    let house = closed("pages-login");
    let token = house.token("local", "ann", "member");
    let server = house.serve();
    let browser = Browser::at(&server);
    let led = browser.get("/plans?q=a").await;
    assert_eq!(led.to, "/login?back=/plans%3Fq%3Da");
    let login = browser.get(&led.to).await;
    assert_eq!(login.status, StatusCode::OK);
    let mark = login.mark();
    let wrong = [("token", "onw_0"), ("mark", mark.as_str())];
    let refused = browser.post("/login", &wrong).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    refused.shows("unknown, expired or revoked");
    let right = [
        ("token", token.as_str()),
        ("mark", mark.as_str()),
        ("back", "/plans?q=a"),
    ];
    let entered = browser.post("/login", &right).await;
    assert_eq!(entered.to, "/plans?q=a");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(entered.cookie.contains(part), "{}", entered.cookie);
    }
    assert!(!entered.cookie.contains("Secure"), "it is not behind https");
    assert!(!entered.cookie.contains(&token[4..]), "no secret is in it");
    let seen = browser.get("/plans").await;
    seen.shows("token:ann");
    let left = browser.post("/logout", &[("mark", &seen.mark())]).await;
    assert_eq!(left.to, "/login");
    assert_eq!(browser.get("/plans").await.to, "/login?back=/plans");
}

#[tokio::test]
async fn behind_https_the_cookie_is_for_https_alone() {
    let house =
        closed("pages-https").configured("[serve]\npublic_url = \"https://onward.example.org\"");
    let token = house.token("local", "ann", "member");
    let server = house.serve();
    let browser = Browser::at(&server);
    let mark = browser.get("/login").await.mark();
    let fields = [("token", token.as_str()), ("mark", mark.as_str())];
    let entered = browser.post("/login", &fields).await;
    assert!(entered.cookie.ends_with("; Secure"), "{}", entered.cookie);
}

#[tokio::test]
async fn a_revoked_token_ends_its_session_at_once() {
    let house = closed("pages-revoked");
    let owner = house.token("local", "boss", "owner");
    let token = house.token("local", "ann", "member");
    let server = house.serve();
    let browser = Browser::signed_in(&server, &token).await;
    assert_eq!(browser.get("/plans").await.status, StatusCode::OK);
    let boss = Browser::signed_in(&server, &owner).await;
    let settings = boss.get("/settings").await;
    let id = settings.html.split("<bdi>ann</bdi>").nth(1).unwrap();
    let id = id.split("/settings/tokens/").nth(1).unwrap();
    let id = id.split('/').next().unwrap();
    let to = format!("/settings/tokens/{id}/revoke");
    let led = boss.fill("/settings", &to, &[]).await;
    assert_eq!(led.to, "/settings?done=revoked");
    let ended = browser.get("/plans").await;
    assert_eq!(ended.to, "/login?back=/plans");
    assert!(ended.cookie.contains("Max-Age=0"), "{}", ended.cookie);
}

#[tokio::test]
async fn a_cookie_opens_pages_and_nothing_else() {
    let house = closed("pages-cookie");
    let token = house.token("local", "ann", "owner");
    let server = house.serve();
    let browser = Browser::at(&server);
    let mark = browser.get("/login").await.mark();
    let fields = [("token", token.as_str()), ("mark", mark.as_str())];
    let cookie = browser.post("/login", &fields).await.cookie;
    let cookie = cookie.split(';').next().unwrap().to_owned();
    for path in ["/api/v1/plans", "/api/v1/events", "/metrics", "/mcp"] {
        let asked = server.ask(Method::GET, path).header("cookie", &cookie);
        let answer = asked.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
    let live = server.ask(Method::GET, "/live");
    assert_eq!(
        live.send().await.unwrap().status(),
        StatusCode::UNAUTHORIZED
    );
    let live = server.ask(Method::GET, "/live").header("cookie", &cookie);
    assert_eq!(live.send().await.unwrap().status(), StatusCode::OK);
    let forged = cookie.replace(".", ".0");
    let forged = server.ask(Method::GET, "/live").header("cookie", forged);
    let answer = forged.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_form_that_nobody_was_shown_does_nothing() {
    let house = closed("pages-csrf");
    let ann = house.token("local", "ann", "owner");
    let bob = house.token("local", "bob", "owner");
    let server = house.serve();
    let id = made(&server, &ann, "Boats").await;
    let browser = Browser::signed_in(&server, &ann).await;
    let other = Browser::signed_in(&server, &bob).await;
    let foreign = other.get("/plans").await.mark();
    let login = Browser::at(&server).get("/login").await.mark();
    for mark in ["", "0", foreign.as_str(), login.as_str()] {
        for path in [
            format!("/plans/{id}/abandon"),
            format!("/plans/{id}/resume"),
            "/plans/sample".to_owned(),
            "/settings/tokens".to_owned(),
            "/logout".to_owned(),
        ] {
            let fields = [("mark", mark), ("name", "x"), ("role", "owner")];
            let seen = browser.post(&path, &fields).await;
            assert_eq!(seen.status, StatusCode::FORBIDDEN, "{path}: {seen:?}");
        }
    }
    let status = server.get_as(&ann, &format!("/api/v1/plans/{id}")).await;
    assert_eq!(status.done()["status"], "planning");
    // The right mark from a page elsewhere is refused by the gate.
    let mark = browser.get("/plans").await.mark();
    let evil = server
        .ask(Method::POST, &format!("/plans/{id}/abandon"))
        .header("origin", "https://evil.example")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("mark={mark}"));
    let answer = evil.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn who_may_not_sees_why_and_is_refused() {
    let house = closed("pages-roles");
    let owner = house.token("local", "boss", "owner");
    let tokens: Vec<(&str, String)> = ["admin", "member", "agent", "viewer"]
        .into_iter()
        .map(|role| (role, house.token("local", role, role)))
        .collect();
    let server = house.serve();
    let id = made(&server, &owner, "Boats").await;
    let next = format!("/api/v1/plans/{id}/next");
    let step = text(
        &server.post_as(&owner, &next, json!({})).await.done(),
        "stepId",
    );
    let asked = format!("/api/v1/steps/{step}/review");
    server
        .post_as(&owner, &asked, json!({ "summary": "?" }))
        .await
        .done();
    for (role, token) in &tokens {
        let browser = Browser::signed_in(&server, token).await;
        let page = browser.get(&format!("/plans/{id}")).await;
        let may_abandon = ["admin", "member"].contains(role);
        assert_eq!(page.html.contains("<details id=\"abandon\">"), may_abandon);
        if !may_abandon {
            page.shows(&format!("the role {role} may not"));
        }
        let reviews = browser.get("/reviews").await;
        // The tenant of one machine lets agents pass on what their person said.
        let may_decide = *role != "viewer";
        let offered = reviews.html.contains("value=\"approve\">Approve");
        assert_eq!(offered, may_decide, "{role}");
        let settings = browser.get("/settings").await;
        let may_manage = *role == "admin";
        assert_eq!(
            settings.html.contains("Create a token"),
            may_manage,
            "{role}"
        );
        let mark = page.mark();
        let tried = browser
            .post(&format!("/plans/{id}/resume"), &[("mark", &mark)])
            .await;
        let expected = if may_abandon { 409 } else { 403 };
        assert_eq!(tried.status.as_u16(), expected, "{role}: {tried:?}");
    }
}

#[tokio::test]
async fn a_token_is_shown_once() {
    let house = closed("pages-token");
    let owner = house.token("local", "boss", "owner");
    let server = house.serve();
    let browser = Browser::signed_in(&server, &owner).await;
    let fields = [("name", "ci"), ("role", "agent"), ("days", "30")];
    let seen = browser.fill("/settings", "/settings/tokens", &fields).await;
    let secret = seen.html.split("class=\"secret\">").nth(1).unwrap();
    let secret = secret.split('<').next().unwrap().to_owned();
    assert!(secret.starts_with("onw_") && secret.len() == 44, "{secret}");
    server.get_as(&secret, "/api/v1/plans").await.done();
    let later = browser.get("/settings").await;
    later.shows("<bdi>ci</bdi>");
    later.hides(&secret);
    let wrong = [("name", "ci"), ("role", "king")];
    let refused = browser.fill("/settings", "/settings/tokens", &wrong).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn what_is_of_another_tenant_is_not_found() {
    let house = closed("pages-tenants");
    let ours = house.token("local", "ann", "owner");
    let theirs = house.token("acme", "eve", "owner");
    let server = house.serve();
    let id = made(&server, &ours, "Boats").await;
    let next = format!("/api/v1/plans/{id}/next");
    let step = text(
        &server.post_as(&ours, &next, json!({})).await.done(),
        "stepId",
    );
    let asked = format!("/api/v1/steps/{step}/review");
    let review = server
        .post_as(&ours, &asked, json!({ "summary": "?" }))
        .await;
    let review = text(&review.done(), "reviewId");
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
        let (seen, unknown) = (eve.get(&path).await, eve.get(&other).await);
        assert_eq!(seen.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(seen.html.replace(&id, never), unknown.html, "{path}");
    }
    let mark = eve.get("/settings").await.mark();
    for path in [
        format!("/plans/{id}/abandon"),
        format!("/plans/{id}/steps/{step}/requeue"),
        format!("/reviews/{step}/decide"),
    ] {
        let fields = [("mark", mark.as_str()), ("decision", "approve")];
        let seen = eve.post(&path, &fields).await;
        assert_eq!(seen.status, StatusCode::NOT_FOUND, "{path}");
    }
    eve.get("/plans").await.hides("Boats");
    eve.get("/reviews").await.shows("Nothing waits for you");
}

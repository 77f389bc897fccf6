//! What each page shows; and that no text from elsewhere becomes part of a page.

use reqwest::StatusCode;
use serde_json::json;

use crate::browser::{Browser, plan, text};
use crate::house::House;

#[tokio::test]
async fn an_empty_installation_shows_how_to_begin() {
    let server = House::new("pages-empty").serve();
    let browser = Browser::at(&server);
    assert_eq!(browser.get("/").await.to, "/plans");
    let seen = browser.get("/plans").await;
    assert_eq!(seen.status, StatusCode::OK);
    seen.shows("claude mcp add --transport http onward http://127.0.0.1:");
    let led = browser.fill("/plans", "/plans/sample", &[]).await;
    assert_eq!(led.status, StatusCode::SEE_OTHER);
    browser.get(&led.to).await.shows("heat pump");
    browser.get("/plans").await.hides("Connect an agent");
}

#[tokio::test]
async fn every_page_is_guarded_and_holds_nothing_inline() {
    let server = House::new("pages-guarded").serve();
    let made = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .done();
    let id = text(&made, "planId");
    let step = text(&made["firstStep"], "stepId");
    let browser = Browser::at(&server);
    let mut pages = vec![
        "/plans".to_owned(),
        "/reviews".to_owned(),
        "/settings".to_owned(),
        "/search".to_owned(),
        "/search?q=boats".to_owned(),
        "/skills".to_owned(),
        format!("/plans/{id}/steps/{step}"),
        format!("/plans/{id}?arrange=1"),
        "/nowhere".to_owned(),
    ];
    for tab in [
        "steps",
        "branches",
        "reviews",
        "artifacts",
        "extractions",
        "outputs",
        "audit",
        "calls",
    ] {
        pages.push(format!("/plans/{id}?tab={tab}"));
    }
    for page in pages {
        let seen = browser.get(&page).await;
        let expected = if page == "/nowhere" { 404 } else { 200 };
        assert_eq!(seen.status.as_u16(), expected, "{page}: {seen:?}");
        seen.shows("<main id=\"main\"");
        for inline in ["<style", " style=", " onclick=", "javascript:"] {
            seen.hides(inline);
        }
        assert_eq!(seen.html.matches("<script").count(), 1, "{page}");
        let policy = seen.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(seen.headers["x-content-type-options"], "nosniff");
        assert_eq!(seen.headers["referrer-policy"], "same-origin");
        assert_eq!(seen.headers["cache-control"], "no-store");
    }
}

#[tokio::test]
async fn assets_are_asked_for_once() {
    let server = House::new("pages-assets").serve();
    for name in ["onward.css", "onward.js", "onward.svg"] {
        let path = format!("/assets/{name}");
        let seen = Browser::at(&server).get(&path).await;
        assert_eq!(seen.status, StatusCode::OK);
        let mark = seen.headers["etag"].to_str().unwrap();
        let again = server.ask(reqwest::Method::GET, &path);
        let again = again.header("if-none-match", mark).send().await.unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{name}");
    }
    let missing = Browser::at(&server).get("/assets/../Cargo.toml").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn hostile_text_is_shown_and_does_nothing() {
    let server = House::new("pages-hostile").serve();
    let evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{202e}</textarea>";
    let made = json!({
        "name": evil,
        "researchQuestion": evil,
        "planDesignRationale": evil,
        "steps": [{ "stepType": "custom", "title": evil, "instructions": evil }],
    });
    let made = server.post("/api/v1/plans", made).await.done();
    let id = text(&made, "planId");
    let at = format!("/api/v1/plans/{id}/next");
    let step = server.post(&at, json!({ "sessionId": evil })).await.done();
    let step = text(&step, "stepId");
    let asked = json!({ "summary": evil, "questions": [evil] });
    let at = format!("/api/v1/steps/{step}/review");
    server.post(&at, asked).await.done();
    let skill = json!({
        "skillName": evil,
        "status": "started",
        "sessionId": evil,
        "planId": id,
        "metadata": { evil: evil },
    });
    let skill = server.post("/api/v1/skills", skill).await.done();
    let skill = text(&skill, "executionId");
    let failed = json!({ "skillName": evil, "status": "failed", "executionId": skill, "errorMessage": evil });
    server.post("/api/v1/skills", failed).await.done();
    let browser = Browser::at(&server);
    let mut pages = vec![
        "/plans".to_owned(),
        format!("/plans?q={}", "%22%3E%3Cscript%3E"),
        "/reviews".to_owned(),
        "/skills".to_owned(),
        format!("/skills?skill={}", "%22%3E%3Cscript%3E"),
        format!("/skills/{skill}"),
        format!("/plans/{id}/steps/{step}"),
        format!("/plans/{id}?arrange=1"),
        format!("/plans/{}", "%3Cscript%3E"),
    ];
    for tab in [
        "steps",
        "branches",
        "reviews",
        "artifacts",
        "audit",
        "calls",
    ] {
        pages.push(format!("/plans/{id}?tab={tab}"));
    }
    for page in pages {
        let seen = browser.get(&page).await;
        assert_eq!(seen.html.matches("<script").count(), 1, "{page}: {seen:?}");
        seen.hides("<img src=x");
        let turned = seen.html.replace("autocomplete", "");
        // What is changed to the letter stands in one field, where it turns nothing but itself.
        let draft = turned.split("<textarea").next().unwrap();
        assert!(!draft.contains('\u{202e}'), "{page}");
    }
}

#[tokio::test]
async fn plans_are_filtered_searched_and_paged() {
    let server = House::new("pages-list").serve();
    for number in 0..25 {
        let name = format!("Boat {number}");
        server
            .post("/api/v1/plans", plan(&name, &["a"]))
            .await
            .done();
    }
    let gone = server
        .post("/api/v1/plans", plan("Gone", &["a"]))
        .await
        .done();
    let abandon = format!("/api/v1/plans/{}/abandon", text(&gone, "planId"));
    server.post(&abandon, json!({})).await.done();
    let browser = Browser::at(&server);
    let first = browser.get("/plans").await;
    assert_eq!(first.html.matches("class=\"when\"").count(), 20);
    let next = first.html.split("<a href=\"/plans?behind=").nth(1).unwrap();
    let next = next.split('"').next().unwrap().replace("&#38;", "&");
    let second = browser.get(&format!("/plans?behind={next}")).await;
    assert_eq!(second.html.matches("class=\"when\"").count(), 6);
    second.shows("Boat 0");
    let failed = browser.get("/plans?status=failed").await;
    assert_eq!(failed.html.matches("class=\"when\"").count(), 1);
    failed.shows("Gone");
    let found = browser.get("/plans?q=BOAT+24").await;
    assert_eq!(found.html.matches("class=\"when\"").count(), 1);
    browser.get("/plans?q=zeppelin").await.shows("No plan fits");
    first.shows("<span class=\"number\">25</span> Active");
}

#[tokio::test]
async fn a_plan_of_ten_thousand_steps_is_shown_in_windows() {
    let server = House::new("pages-long").serve();
    let steps: Vec<String> = (1..=10_000)
        .map(|number| format!("Page {number}"))
        .collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let made = server
        .post("/api/v1/plans", plan("Long", &steps))
        .await
        .done();
    let id = text(&made, "planId");
    let browser = Browser::at(&server);
    let seen = browser.get(&format!("/plans/{id}?behind=9960")).await;
    seen.shows("Page 10000");
    seen.hides("Page 9960<");
    assert!(seen.html.len() < 100_000, "{}", seen.html.len());
}

#[tokio::test]
async fn a_plan_is_taken_away_as_a_file() {
    let server = House::new("pages-export").serve();
    let made = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .done();
    let id = text(&made, "planId");
    let browser = Browser::at(&server);
    let json = browser.get(&format!("/plans/{id}/export.json")).await;
    json.shows("onward.plan");
    let markdown = browser.get(&format!("/plans/{id}/export.md")).await;
    markdown.shows("# Boats");
    for file in [json, markdown] {
        let kept = file.headers["content-disposition"].to_str().unwrap();
        assert!(kept.starts_with("attachment"), "{kept}");
    }
}

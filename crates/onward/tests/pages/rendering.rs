//! Page content, security headers, and escaping of hostile text.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::json;

use crate::browser::{Browser, plan, text};
use crate::program;

#[tokio::test]
async fn an_empty_database_shows_setup_instructions() {
    let server = program("pages-empty").serve();
    let browser = Browser::new(&server);
    browser.get("/").await.assert_contains("id=\"first-run\"");
    let response = browser.get("/plans").await;
    assert_eq!(response.status, StatusCode::OK);
    response.assert_contains("claude mcp add --transport http onward http://127.0.0.1:");
    let redirect = browser.submit("/plans", "/plans/sample", &[]).await;
    assert_eq!(redirect.status, StatusCode::SEE_OTHER);
    browser
        .get(&redirect.location)
        .await
        .assert_contains("heat pump");
    browser.get("/plans").await.assert_lacks("id=\"first-run\"");
}

#[tokio::test]
async fn counts_a_plan_that_is_done_with_failures_under_its_own_word() {
    let server = program("pages-outcomes").serve();
    let created = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await;
    let id = text(&created.expect_success(), "planId");
    let next = format!("/api/v1/plans/{id}/next");
    let next = server.post(&next, json!({})).await;
    let step = text(&next.expect_success(), "stepId");
    let fail = json!({ "action": "fail_step", "stepId": step, "reason": "no yard" });
    let modify = format!("/api/v1/plans/{id}/modify");
    server.post(&modify, fail).await.expect_success();
    let browser = Browser::new(&server);
    let overview = browser.get("/").await;
    let tile = overview.html.split("href=\"/plans?state=done\"").nth(1);
    let tile = tile.unwrap().split("</li>").next().unwrap();
    for part in ["class=\"number\">0<", "1 done with failures", "0 failed"] {
        assert!(tile.contains(part), "{part}: {tile}");
    }
    let about = browser.get(&format!("/plans/{id}?tab=about")).await;
    about.assert_lacks("<dd>mark</dd>");
}

#[tokio::test]
async fn about_shows_the_last_sweep() {
    let server = program("pages-sweep").serve();
    let browser = Browser::new(&server);
    let started = Instant::now();
    loop {
        let about = browser.get("/settings/about").await;
        let sweep = about.html.split("id=\"sweep\">").nth(1).unwrap();
        if sweep.split("</dd>").next().unwrap().contains("<time ") {
            break;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{}",
            about.html
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn pages_have_security_headers_and_no_inline_code() {
    let server = program("pages-guarded").serve();
    let created = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .expect_success();
    let id = text(&created, "planId");
    let step = text(&created["firstStep"], "stepId");
    let browser = Browser::new(&server);
    let mut pages = vec![
        "/plans".to_owned(),
        "/inbox".to_owned(),
        "/jump?q=boats".to_owned(),
        "/sessions".to_owned(),
        "/settings".to_owned(),
        "/settings/access".to_owned(),
        "/settings/alerts".to_owned(),
        "/settings/limits".to_owned(),
        "/settings/about".to_owned(),
        "/library".to_owned(),
        "/library?q=boats".to_owned(),
        "/library/skills".to_owned(),
        format!("/plans/{id}/steps/{step}"),
        format!("/plans/{id}?reorder=1"),
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
        let response = browser.get(&page).await;
        let expected = if page == "/nowhere" { 404 } else { 200 };
        assert_eq!(response.status.as_u16(), expected, "{page}: {response:?}");
        response.assert_contains("<main id=\"main\"");
        for inline in ["<style", " style=", " onclick=", "javascript:"] {
            response.assert_lacks(inline);
        }
        assert_eq!(response.html.matches("<script").count(), 1, "{page}");
        let policy = response.headers["content-security-policy"]
            .to_str()
            .unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(response.headers["x-content-type-options"], "nosniff");
        assert_eq!(response.headers["referrer-policy"], "same-origin");
        assert_eq!(response.headers["cache-control"], "no-store");
    }
}

#[tokio::test]
async fn assets_are_cached_by_etag() {
    let server = program("pages-assets").serve();
    for name in ["onward.css", "onward.js", "onward.svg"] {
        let path = format!("/assets/{name}");
        let response = Browser::new(&server).get(&path).await;
        assert_eq!(response.status, StatusCode::OK);
        let etag = response.headers["etag"].to_str().unwrap();
        let again = server.request(reqwest::Method::GET, &path);
        let again = again.header("if-none-match", etag).send().await.unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{name}");
    }
    let missing = Browser::new(&server).get("/assets/../Cargo.toml").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn hostile_text_is_escaped() {
    let server = program("pages-hostile").serve();
    let hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{202e}</textarea>";
    let created = json!({
        "name": hostile,
        "researchQuestion": hostile,
        "planDesignRationale": hostile,
        "steps": [{ "stepType": "custom", "title": hostile, "instructions": hostile }],
    });
    let created = server.post("/api/v1/plans", created).await.expect_success();
    let id = text(&created, "planId");
    let at = format!("/api/v1/plans/{id}/next");
    let step = server
        .post(&at, json!({ "sessionId": hostile }))
        .await
        .expect_success();
    let step = text(&step, "stepId");
    let review = json!({ "summary": hostile, "questions": [hostile] });
    let at = format!("/api/v1/steps/{step}/review");
    server.post(&at, review).await.expect_success();
    let skill = json!({
        "skillName": hostile,
        "status": "started",
        "sessionId": hostile,
        "planId": id,
        "metadata": { hostile: hostile },
    });
    let skill = server.post("/api/v1/skills", skill).await.expect_success();
    let skill = text(&skill, "executionId");
    let failed = json!({ "skillName": hostile, "status": "failed", "executionId": skill, "errorMessage": hostile });
    server.post("/api/v1/skills", failed).await.expect_success();
    let browser = Browser::new(&server);
    let mut pages = vec![
        "/plans".to_owned(),
        format!("/plans?q={}", "%22%3E%3Cscript%3E"),
        "/inbox".to_owned(),
        "/library".to_owned(),
        format!("/jump?q={}", "%22%3E%3Cscript%3E"),
        "/library/skills".to_owned(),
        format!("/library/skills?skill={}", "%22%3E%3Cscript%3E"),
        format!("/library/skills/{skill}"),
        format!("/plans/{id}/steps/{step}"),
        format!("/plans/{id}?reorder=1"),
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
        let response = browser.get(&page).await;
        assert_eq!(
            response.html.matches("<script").count(),
            1,
            "{page}: {response:?}"
        );
        response.assert_lacks("<img src=x");
        // The form field of the instructions holds the unmodified text.
        let before_form = response.html.split("<textarea").next().unwrap();
        assert!(!before_form.contains('\u{202e}'), "{page}");
    }
}

#[tokio::test]
async fn plans_are_filtered_searched_and_paginated() {
    let server = program("pages-list").serve();
    for number in 0..55 {
        let name = format!("Boat {number}");
        server
            .post("/api/v1/plans", plan(&name, &["a"]))
            .await
            .expect_success();
    }
    let cancelled = server
        .post("/api/v1/plans", plan("Cancelled", &["a"]))
        .await
        .expect_success();
    let abandon = format!("/api/v1/plans/{}/abandon", text(&cancelled, "planId"));
    server.post(&abandon, json!({})).await.expect_success();
    let browser = Browser::new(&server);
    let first = browser.get("/plans").await;
    assert_eq!(first.html.matches("class=\"pick\"").count(), 50);
    let next = first.html.split("<a href=\"/plans?after=").nth(1).unwrap();
    let next = next.split('"').next().unwrap().replace("&#38;", "&");
    let second = browser.get(&format!("/plans?after={next}")).await;
    assert_eq!(second.html.matches("class=\"pick\"").count(), 6);
    second.assert_contains("Boat 0");
    let found = browser.get("/plans?q=BOAT+54").await;
    assert_eq!(found.html.matches("class=\"pick\"").count(), 1);
    browser
        .get("/plans?q=zeppelin")
        .await
        .assert_contains("id=\"no-matches\"");
    first.assert_contains("class=\"not_started\">not started <span class=\"figures\">55</span>");
    let cancelled = browser.get("/plans?state=cancelled").await;
    assert_eq!(cancelled.html.matches("class=\"pick\"").count(), 1);
}

#[tokio::test]
async fn a_plan_with_ten_thousand_steps_is_paginated() {
    let server = program("pages-long").serve();
    let steps: Vec<String> = (1..=10_000)
        .map(|number| format!("Page {number}"))
        .collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let created = server
        .post("/api/v1/plans", plan("Long", &steps))
        .await
        .expect_success();
    let id = text(&created, "planId");
    let browser = Browser::new(&server);
    let response = browser.get(&format!("/plans/{id}?after=9960")).await;
    response.assert_contains("steps 9962 to 10000");
    response.assert_lacks("Page 9960<");
    let limit = 150_000;
    assert!(response.html.len() < limit, "{}", response.html.len());
    let all = browser
        .get(&format!("/plans/{id}?after=9960&rows=all"))
        .await;
    all.assert_contains("Page 10000<");
}

#[tokio::test]
async fn exports_are_downloads() {
    let server = program("pages-export").serve();
    let created = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .expect_success();
    let id = text(&created, "planId");
    let browser = Browser::new(&server);
    let json = browser.get(&format!("/plans/{id}/export.json")).await;
    json.assert_contains("onward.plan");
    let markdown = browser.get(&format!("/plans/{id}/export.md")).await;
    markdown.assert_contains("# Boats");
    for file in [json, markdown] {
        let disposition = file.headers["content-disposition"].to_str().unwrap();
        assert!(disposition.starts_with("attachment"), "{disposition}");
    }
}

#[tokio::test]
async fn the_execution_report_is_on_the_step_page_and_in_exports() {
    let server = program("pages-report").serve();
    let created = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .expect_success();
    let id = text(&created, "planId");
    let step = text(&created["firstStep"], "stepId");
    let result = json!({
        "resultSummary": "Three offers",
        "stepExecutionReport": { "queries": "sloop prices" },
    });
    let path = format!("/api/v1/steps/{step}/result");
    server.post(&path, result).await.expect_success();
    let browser = Browser::new(&server);
    for page in [
        format!("/plans/{id}/steps/{step}"),
        format!("/plans/{id}/export.json"),
        format!("/plans/{id}/export.md"),
    ] {
        browser.get(&page).await.assert_contains("sloop prices");
    }
    for format in [&["export", &id][..], &["export", &id, "--markdown"]] {
        let exported = server.program().run_ok(format);
        assert!(exported.contains("sloop prices"), "{exported}");
    }
}

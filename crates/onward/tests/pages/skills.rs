//! Skill pages: statistics, list, filters, pagination, and one run.

use onward_testbed::Server;
use reqwest::StatusCode;
use serde_json::json;

use crate::browser::{Browser, text};
use crate::program;

async fn log(server: &Server, skill: &str, end: Option<&str>) -> String {
    let start = json!({ "skillName": skill, "status": "started", "sessionId": "desk" });
    let started = server.post("/api/v1/skills", start).await.expect_success();
    let id = text(&started, "executionId");
    if let Some(end) = end {
        let mut ended = json!({
            "skillName": skill,
            "status": end,
            "executionId": id,
            "metadata": { "outputMediaType": "text/<b>" },
        });
        if end == "failed" {
            ended["errorMessage"] = json!("no <wind>");
        }
        server.post("/api/v1/skills", ended).await.expect_success();
    }
    id
}

#[tokio::test]
async fn skill_runs_are_counted_listed_and_filtered() {
    let server = program("pages-skills").serve();
    let browser = Browser::new(&server);
    browser
        .get("/library/skills")
        .await
        .assert_contains("id=\"first-run\"");
    let failed = log(&server, "sail & row", Some("failed")).await;
    log(&server, "survey", Some("completed")).await;
    log(&server, "survey", Some("completed")).await;
    log(&server, "survey", None).await;
    let response = browser.get("/library/skills").await;
    response.assert_contains("<span class=\"number\">4</span> Runs");
    response.assert_contains("<span class=\"number\">67%</span> Completion rate");
    response.assert_contains("<span class=\"number\">1</span> Failed in 24 h");
    response.assert_contains("no &#60;wind&#62;");
    let rows = |html: &str| html.matches("<a href=\"/library/skills/").count();
    assert_eq!(rows(&response.html), 4);
    let found = browser.get("/library/skills?status=failed").await;
    assert_eq!(rows(&found.html), 1);
    let found = browser
        .get("/library/skills?skill=survey&status=completed")
        .await;
    assert_eq!(rows(&found.html), 2);
    browser
        .get("/library/skills?skill=surv")
        .await
        .assert_contains("id=\"no-matches\"");
    let run = browser.get(&format!("/library/skills/{failed}")).await;
    run.assert_contains("sail &#38; row");
    run.assert_contains("no &#60;wind&#62;");
    run.assert_contains("text/&#60;b&#62;");
    run.assert_contains("href=\"/library/skills?skill=sail%20%26%20row\"");
    let same = browser.get("/library/skills?skill=sail%20%26%20row").await;
    assert_eq!(rows(&same.html), 1);
    for missing in [
        "/library/skills/x",
        "/library/skills/00000000-0000-7000-8000-000000000001",
    ] {
        assert_eq!(browser.get(missing).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn skill_runs_are_paginated() {
    let server = program("pages-skills-paged").serve();
    for _ in 0..25 {
        log(&server, "survey", None).await;
    }
    let browser = Browser::new(&server);
    let first = browser.get("/library/skills?skill=survey").await;
    let rows = |html: &str| html.matches("<a href=\"/library/skills/").count();
    assert_eq!(rows(&first.html), 20);
    let next = first
        .html
        .split("<a href=\"/library/skills?after=")
        .nth(1)
        .unwrap();
    let next = next.split('"').next().unwrap().replace("&#38;", "&");
    let second = browser.get(&format!("/library/skills?after={next}")).await;
    assert_eq!(rows(&second.html), 5);
    second.assert_lacks("rel=\"next\"");
}

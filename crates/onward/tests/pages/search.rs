//! The library: one list of results, the state of the index, and the pages of the results.

use std::time::{Duration, Instant};

use onward_testbed::model_api;
use reqwest::StatusCode;
use serde_json::json;

use crate::browser::{Browser, plan, text};
use crate::program;

/// Text that breaks a page without escaping.
const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}";

/// All chunks are embedded.
const NOTHING_PENDING: &str = "id=\"index-pending\">0<";

#[tokio::test]
async fn displays_results_by_text_and_by_meaning_in_one_list() {
    let url = model_api::start();
    let setup = program("pages-search")
        .with_config(&format!("[embeddings]\nurl = \"{url}\"\nmodel = \"small\""));
    let server = setup.serve();
    for (title, content) in [("Sea", "An orca hunts."), ("Land", "A loaf of bread.")] {
        let body = json!({ "title": title, "content": content });
        server
            .post("/api/v1/artifacts", body)
            .await
            .expect_success();
    }
    let browser = Browser::new(&server);
    let started = Instant::now();
    let response = loop {
        let about = browser.get("/settings/about").await;
        let response = browser.get("/library?q=orca").await;
        // Both artifacts are embedded and found.
        if about.html.contains(NOTHING_PENDING) && response.html.contains(">Land<") {
            about.assert_contains("<code><bdi>small</bdi></code>");
            break response;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{}",
            response.html
        );
        tokio::task::yield_now().await;
    };
    response.assert_contains("data-mode=\"hybrid\"");
    let hits: Vec<&str> = response.html.split("class=\"hit-title\"").skip(1).collect();
    let [sea, land] = hits[..] else {
        panic!("two results: {}", response.html)
    };
    assert!(sea.contains(">Sea<") && land.contains(">Land<"));
    assert!(
        sea.contains("by-text") && sea.contains("by-meaning"),
        "{sea}"
    );
    assert!(
        !land.contains("by-text") && land.contains("by-meaning"),
        "{land}"
    );
    assert!(sea.contains("<mark>orca</mark>"), "{sea}");
}

#[tokio::test]
async fn text_search_works_without_the_model() {
    let setup = program("pages-search-away")
        .with_config("[embeddings]\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"gone\"");
    let server = setup.serve();
    let body = json!({ "title": "Sea", "content": "An orca hunts." });
    server
        .post("/api/v1/artifacts", body)
        .await
        .expect_success();
    let browser = Browser::new(&server);
    let response = browser.get("/library?q=orca").await;
    response.assert_contains("data-mode=\"keyword\"");
    response.assert_contains(">Sea<");
    let about = browser.get("/settings/about").await;
    about.assert_contains("id=\"index-error\"><span class=\"error\">");
}

#[tokio::test]
async fn excerpts_are_plain_text() {
    let server = program("pages-excerpts").serve();
    let content = "# Boats\n\n| boat | price |\n|---|---:|\n| **Contessa** | 44,000 |";
    let body = json!({ "title": "Offers", "content": content });
    let created = server.post("/api/v1/artifacts", body).await;
    created.expect_success();
    let browser = Browser::new(&server);
    browser
        .get("/library")
        .await
        .assert_contains("<bdi>Boats boat price Contessa 44,000</bdi>");
    let found = browser.get("/library?q=contessa").await;
    found.assert_contains("<mark>Contessa</mark>");
    for mark in ["**", "|", "# Boats"] {
        found.assert_lacks(mark);
    }
}

#[tokio::test]
async fn results_link_to_escaped_text() {
    let server = program("pages-texts").serve();
    let created = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .expect_success();
    let id = text(&created, "planId");
    let body = json!({
        "title": HOSTILE, "content": format!("boats {HOSTILE}\nsecond line"), "planId": id,
        "sourceUrl": "javascript:alert(1)",
    });
    let artifact = text(
        &server
            .post("/api/v1/artifacts", body)
            .await
            .expect_success(),
        "artifactId",
    );
    let path = format!("/api/v1/plans/{id}/outputs");
    for content in ["first", "boats at last"] {
        let body = json!({ "title": "Answer", "content": content });
        server.post(&path, body).await.expect_success();
    }
    let browser = Browser::new(&server);
    let found = browser.get("/library?q=boats").await;
    found.assert_contains("data-mode=\"keyword\"");
    found.assert_contains(&format!("href=\"/artifacts/{artifact}\""));
    found.assert_lacks("<script>alert");
    let order = ["href=\"/outputs/", "href=\"/artifacts/"].map(|link| found.html.find(link));
    assert!(order[0].is_some() && order[0] < order[1], "outputs first");
    found.assert_contains(&format!("<a href=\"/plans/{id}\"><bdi>Boats</bdi></a>"));
    let recent = browser.get("/library").await;
    recent.assert_contains("version 2");
    recent.assert_contains(&format!("href=\"/artifacts/{artifact}\""));
    recent.assert_lacks("<script>alert");
    browser
        .get("/library?q=boats&type=quote")
        .await
        .assert_lacks("class=\"hits\"");
    let response = browser.get(&format!("/artifacts/{artifact}")).await;
    response.assert_contains("second line");
    response.assert_contains(&format!("/plans/{id}?tab=artifacts"));
    response.assert_lacks("<script>alert");
    response.assert_lacks("href=\"javascript:");
    let tab = browser.get(&format!("/plans/{id}?tab=outputs")).await;
    tab.assert_contains("version 2");
    tab.assert_lacks(">first<");
    let output = tab
        .html
        .split("/outputs/")
        .nth(1)
        .expect("link to the output");
    let output = output.split('"').next().expect("output id");
    let response = browser.get(&format!("/outputs/{output}")).await;
    response.assert_contains("boats at last");
    for missing in [
        "/artifacts/x",
        "/outputs/x",
        "/artifacts/00000000-0000-4000-8000-000000000000",
    ] {
        assert_ne!(
            browser.get(missing).await.status,
            StatusCode::OK,
            "{missing}"
        );
    }
}

#[tokio::test]
async fn extractions_are_on_their_tab() {
    let url = model_api::start();
    let setup = program("pages-extractions")
        .with_config(&format!("[extraction]\nurl = \"{url}\"\nmodel = \"small\""));
    let server = setup.serve();
    let created = server
        .post("/api/v1/plans", plan("Moons", &["Count"]))
        .await
        .expect_success();
    let id = text(&created, "planId");
    let body = json!({ "title": "Moons", "content": "Io and Europa", "planId": id });
    let artifact = text(
        &server
            .post("/api/v1/artifacts", body)
            .await
            .expect_success(),
        "artifactId",
    );
    for schema in [
        json!({ "type": "object" }),
        json!({ "required": ["planets"] }),
    ] {
        let body = json!({ "schema": schema, "artifactId": artifact });
        server
            .post("/api/v1/extractions", body)
            .await
            .expect_success();
    }
    let browser = Browser::new(&server);
    let response = browser.get(&format!("/plans/{id}?tab=extractions")).await;
    response.assert_contains("&#34;moons&#34;: 2");
    response.assert_contains("class=\"badge failed\"");
    response.assert_contains("class=\"badge done\"");
    response.assert_contains(&format!("/artifacts/{artifact}"));
    let markdown = browser.get(&format!("/plans/{id}/export.md")).await;
    markdown.assert_contains("## Extractions");
}

#[tokio::test]
async fn results_of_steps_are_listed_found_and_filtered() {
    let server = program("pages-results").serve();
    let created = server
        .post("/api/v1/plans", plan("Airships", &["Hypothesis"]))
        .await
        .expect_success();
    let id = text(&created, "planId");
    let next = server
        .post(&format!("/api/v1/plans/{id}/next"), json!({}))
        .await
        .expect_success();
    let step = text(&next, "stepId");
    let result = json!({ "resultSummary": "The zeppelin hypothesis was refuted." });
    server
        .post(&format!("/api/v1/steps/{step}/result"), result)
        .await
        .expect_success();
    let browser = Browser::new(&server);
    let link = format!("href=\"/plans/{id}/steps/{step}\"");
    for path in [
        "/library",
        "/library?type=result",
        "/library?q=zeppelin",
        "/library?q=zeppelin&type=result",
    ] {
        let page = browser.get(path).await;
        page.assert_contains(&link);
        page.assert_contains(&format!("<a href=\"/plans/{id}\"><bdi>Airships</bdi></a>"));
    }
    for path in ["/library?type=quote", "/library?q=zeppelin&type=quote"] {
        browser.get(path).await.assert_lacks(&link);
    }
}

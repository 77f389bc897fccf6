//! What agents' skills did, as people see it.

use reqwest::StatusCode;
use serde_json::json;

use crate::browser::{Browser, text};
use crate::house::{House, Server};

async fn log(server: &Server, skill: &str, end: Option<&str>) -> String {
    let start = json!({ "skillName": skill, "status": "started", "sessionId": "desk" });
    let started = server.post("/api/v1/skills", start).await.done();
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
        server.post("/api/v1/skills", ended).await.done();
    }
    id
}

#[tokio::test]
async fn skills_are_counted_listed_filtered_and_shown() {
    let server = House::new("pages-skills").serve();
    let browser = Browser::at(&server);
    browser.get("/skills").await.shows("log_skill_execution");
    let failed = log(&server, "sail & row", Some("failed")).await;
    log(&server, "survey", Some("completed")).await;
    log(&server, "survey", Some("completed")).await;
    log(&server, "survey", None).await;
    let seen = browser.get("/skills").await;
    seen.shows("<span class=\"number\">4</span> Executions");
    seen.shows("<span class=\"number\">67%</span> Completion rate");
    seen.shows("<span class=\"number\">1</span> Failed in 24 h");
    seen.shows("no &#60;wind&#62;");
    let rows = |html: &str| html.matches("<a href=\"/skills/").count();
    assert_eq!(rows(&seen.html), 4);
    let found = browser.get("/skills?status=failed").await;
    assert_eq!(rows(&found.html), 1);
    let found = browser.get("/skills?skill=survey&status=completed").await;
    assert_eq!(rows(&found.html), 2);
    browser
        .get("/skills?skill=surv")
        .await
        .shows("No execution fits");
    let one = browser.get(&format!("/skills/{failed}")).await;
    one.shows("sail &#38; row");
    one.shows("no &#60;wind&#62;");
    one.shows("text/&#60;b&#62;");
    one.shows("href=\"/skills?skill=sail%20%26%20row\"");
    let same = browser.get("/skills?skill=sail%20%26%20row").await;
    assert_eq!(rows(&same.html), 1);
    for missing in ["/skills/x", "/skills/00000000-0000-7000-8000-000000000001"] {
        assert_eq!(browser.get(missing).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn executions_come_a_page_at_a_time() {
    let server = House::new("pages-skills-paged").serve();
    for _ in 0..25 {
        log(&server, "survey", None).await;
    }
    let browser = Browser::at(&server);
    let first = browser.get("/skills?skill=survey").await;
    let rows = |html: &str| html.matches("<a href=\"/skills/").count();
    assert_eq!(rows(&first.html), 20);
    let next = first
        .html
        .split("<a href=\"/skills?behind=")
        .nth(1)
        .unwrap();
    let next = next.split('"').next().unwrap().replace("&#38;", "&");
    let second = browser.get(&format!("/skills?behind={next}")).await;
    assert_eq!(rows(&second.html), 5);
    second.hides("rel=\"next\"");
}

//! The page of the search: three rankings beside each other, how much is indexed, and what it leads to.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::json;

use crate::browser::{Browser, plan, text};
use crate::house::House;
use crate::model;

/// Text that means harm, if it becomes part of a page.
const HARM: &str = "<script>alert(1)</script>\"'&\u{202e}";

#[tokio::test]
async fn three_rankings_stand_beside_each_other() {
    let url = model::start();
    let house = House::new("pages-search")
        .configured(&format!("[embeddings]\nurl = \"{url}\"\nmodel = \"small\""));
    let server = house.serve();
    for (title, content) in [("Sea", "An orca hunts."), ("Land", "A loaf of bread.")] {
        let body = json!({ "title": title, "content": content });
        server.post("/api/v1/artifacts", body).await.done();
    }
    let browser = Browser::at(&server);
    let began = Instant::now();
    let seen = loop {
        let seen = browser.get("/search?q=orca").await;
        // Both are embedded and found, and the figures of the index are as new.
        let waiting = "Waiting</dt><dd class=\"figures\">";
        if seen.html.contains(&format!("{waiting}0<")) && seen.html.contains("meaning 2") {
            break seen;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{}", seen.html);
        tokio::task::yield_now().await;
    };
    seen.shows("by words and by meaning");
    let column = |id: &str| {
        let from = seen
            .html
            .split(&format!("id=\"{id}\""))
            .nth(1)
            .expect("a column");
        from.split("</section>").next().expect("its end").to_owned()
    };
    let (words, meaning, both) = (column("keyword"), column("semantic"), column("fused"));
    assert!(words.contains("Sea") && !words.contains("Land"), "{words}");
    let (sea, land) = (meaning.find("Sea"), meaning.find("Land"));
    assert!(sea.is_some() && sea < land, "{meaning}");
    assert!(
        both.contains("score 0.0328 · words 1 · meaning 1"),
        "{both}"
    );
    assert!(both.contains("· words – · meaning 2"), "{both}");
    seen.shows("<code><bdi>small</bdi></code>");
    let health = column("health");
    assert!(
        health.contains("Waiting</dt><dd class=\"figures\">0<"),
        "{health}"
    );
}

#[tokio::test]
async fn a_model_that_is_away_is_named_and_words_are_found() {
    let house = House::new("pages-search-away")
        .configured("[embeddings]\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"gone\"");
    let server = house.serve();
    let body = json!({ "title": "Sea", "content": "An orca hunts." });
    server.post("/api/v1/artifacts", body).await.done();
    let browser = Browser::at(&server);
    let seen = browser.get("/search?q=orca").await;
    seen.shows("by words alone");
    seen.shows("The model does not answer:");
    seen.shows("Last error");
    seen.shows(">Sea<");
}

#[tokio::test]
async fn what_is_found_opens_and_stays_text() {
    let server = House::new("pages-texts").serve();
    let made = server
        .post("/api/v1/plans", plan("Boats", &["Offers"]))
        .await
        .done();
    let id = text(&made, "planId");
    let body = json!({
        "title": HARM, "content": format!("boats {HARM}\nsecond line"), "planId": id,
        "sourceUrl": "javascript:alert(1)",
    });
    let artifact = text(
        &server.post("/api/v1/artifacts", body).await.done(),
        "artifactId",
    );
    let path = format!("/api/v1/plans/{id}/outputs");
    for words in ["first", "boats at last"] {
        let body = json!({ "title": "Answer", "content": words });
        server.post(&path, body).await.done();
    }
    let browser = Browser::at(&server);
    let found = browser.get("/search?q=boats").await;
    found.shows("No model is configured");
    found.shows(&format!("href=\"/artifacts/{artifact}\""));
    found.hides("<script>alert");
    browser
        .get("/search?q=boats&type=quote")
        .await
        .shows("Nothing that is stored");
    let seen = browser.get(&format!("/artifacts/{artifact}")).await;
    seen.shows("second line");
    seen.shows(&format!("/plans/{id}?tab=artifacts"));
    seen.hides("<script>alert");
    seen.hides("href=\"javascript:");
    let tab = browser.get(&format!("/plans/{id}?tab=outputs")).await;
    tab.shows("version 2");
    tab.hides(">first<");
    let output = tab.html.split("/outputs/").nth(1).expect("a link");
    let output = output.split('"').next().expect("an id");
    let seen = browser.get(&format!("/outputs/{output}")).await;
    seen.shows("boats at last");
    for nowhere in [
        "/artifacts/x",
        "/outputs/x",
        "/artifacts/00000000-0000-4000-8000-000000000000",
    ] {
        assert_ne!(
            browser.get(nowhere).await.status,
            StatusCode::OK,
            "{nowhere}"
        );
    }
}

#[tokio::test]
async fn what_was_extracted_stands_on_its_tab() {
    let url = model::start();
    let house = House::new("pages-extractions")
        .configured(&format!("[extraction]\nurl = \"{url}\"\nmodel = \"small\""));
    let server = house.serve();
    let made = server
        .post("/api/v1/plans", plan("Moons", &["Count"]))
        .await
        .done();
    let id = text(&made, "planId");
    let body = json!({ "title": "Moons", "content": "Io and Europa", "planId": id });
    let artifact = text(
        &server.post("/api/v1/artifacts", body).await.done(),
        "artifactId",
    );
    for schema in [
        json!({ "type": "object" }),
        json!({ "required": ["planets"] }),
    ] {
        let body = json!({ "schema": schema, "artifactId": artifact });
        server.post("/api/v1/extractions", body).await.done();
    }
    let browser = Browser::at(&server);
    let seen = browser.get(&format!("/plans/{id}?tab=extractions")).await;
    seen.shows("&#34;moons&#34;: 2");
    seen.shows("not valid");
    seen.shows("> valid<");
    seen.shows(&format!("/artifacts/{artifact}"));
    let markdown = browser.get(&format!("/plans/{id}/export.md")).await;
    markdown.shows("## Extractions");
}

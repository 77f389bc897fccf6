//! Rendering of Markdown from agents, and the source view.

use serde_json::json;

use crate::browser::{Browser, plan, text};
use crate::program;

const MARKDOWN: &str = "## Two remain\n\n|boat|price|\n|---|---:|\n|**A**|1|\n\n\
                    [test](https://example.org) [no](javascript:alert(1))\n\
                    <img src=x onerror=alert(1)> ![x](https://example.org/x.png)";
const RENDERED: [&str; 3] = [
    "<h3>Two remain</h3>",
    "<td class=\"number\">1</td>",
    "<a href=\"https://example.org\">test</a>",
];
const REMOVED: [&str; 4] = ["<img src=x", "javascript:", "x.png", " style="];

#[tokio::test]
async fn summaries_results_and_outputs_are_rendered_as_markdown() {
    let server = program("pages-prose").serve();
    let created = plan("Boats", &["Offers", "Compare"]);
    let id = text(
        &server.post("/api/v1/plans", created).await.expect_success(),
        "planId",
    );
    let next = format!("/api/v1/plans/{id}/next");
    let step = text(
        &server.post(&next, json!({})).await.expect_success(),
        "stepId",
    );
    let result = json!({ "resultSummary": MARKDOWN });
    server
        .post(&format!("/api/v1/steps/{step}/result"), result)
        .await
        .expect_success();
    let other = text(
        &server.post(&next, json!({})).await.expect_success(),
        "stepId",
    );
    let review = json!({ "summary": MARKDOWN, "questions": ["Is *red* fine?"] });
    server
        .post(&format!("/api/v1/steps/{other}/review"), review)
        .await
        .expect_success();
    let output = json!({ "title": "Answer", "content": MARKDOWN });
    let path = format!("/api/v1/plans/{id}/outputs");
    let output = text(
        &server.post(&path, output).await.expect_success(),
        "outputId",
    );
    let browser = Browser::new(&server);
    for page in [
        "/inbox".to_owned(),
        format!("/plans/{id}/steps/{step}"),
        format!("/plans/{id}?tab=reviews"),
        format!("/outputs/{output}"),
    ] {
        let response = browser.get(&page).await;
        for part in RENDERED {
            response.assert_contains(part);
        }
        // The activity also has the source, as text.
        let is_rendered_only = !page.contains("tab=");
        for part in REMOVED.iter().filter(|_| is_rendered_only) {
            response.assert_lacks(part);
        }
    }
    browser
        .get("/inbox")
        .await
        .assert_contains("Is <em>red</em> fine?");
    let listed = browser.get(&format!("/plans/{id}")).await;
    listed.assert_contains("Two remain boat price A 1 test no");
    let source = browser.get(&format!("/outputs/{output}?as=written")).await;
    source.assert_contains("## Two remain");
    source.assert_lacks("<h3>");
    let plain = json!({ "title": "Plain", "content": "# a", "mediaType": "text/plain" });
    let plain = text(
        &server.post(&path, plain).await.expect_success(),
        "outputId",
    );
    browser
        .get(&format!("/outputs/{plain}"))
        .await
        .assert_contains("# a");
}

//! What agents write, as people read it: Markdown where it is meant, and nothing else of it.

use serde_json::json;

use crate::browser::{Browser, plan, text};
use crate::house::House;

const SAID: &str = "## Two remain\n\n|boat|price|\n|---|---:|\n|**A**|1|\n\n\
                    [test](https://example.org) [no](javascript:alert(1))\n\
                    <img src=x onerror=alert(1)> ![x](https://example.org/x.png)";
const SHOWN: [&str; 3] = [
    "<h3>Two remain</h3>",
    "<td class=\"number\">1</td>",
    "<a href=\"https://example.org\">test</a>",
];
const HIDDEN: [&str; 4] = ["<img src=x", "javascript:", "x.png", " style="];

#[tokio::test]
async fn a_summary_a_result_and_an_output_are_shown_as_markdown() {
    let server = House::new("pages-prose").serve();
    let made = plan("Boats", &["Offers", "Compare"]);
    let id = text(&server.post("/api/v1/plans", made).await.done(), "planId");
    let next = format!("/api/v1/plans/{id}/next");
    let step = text(&server.post(&next, json!({})).await.done(), "stepId");
    let result = json!({ "resultSummary": SAID });
    server
        .post(&format!("/api/v1/steps/{step}/result"), result)
        .await
        .done();
    let other = text(&server.post(&next, json!({})).await.done(), "stepId");
    let asked = json!({ "summary": SAID, "questions": ["Is *red* fine?"] });
    server
        .post(&format!("/api/v1/steps/{other}/review"), asked)
        .await
        .done();
    let output = json!({ "title": "Answer", "content": SAID });
    let path = format!("/api/v1/plans/{id}/outputs");
    let output = text(&server.post(&path, output).await.done(), "outputId");
    let browser = Browser::at(&server);
    for page in [
        "/reviews".to_owned(),
        format!("/plans/{id}/steps/{step}"),
        format!("/plans/{id}?tab=reviews"),
        format!("/outputs/{output}"),
    ] {
        let seen = browser.get(&page).await;
        for part in SHOWN {
            seen.shows(part);
        }
        for part in HIDDEN {
            seen.hides(part);
        }
    }
    browser.get("/reviews").await.shows("Is <em>red</em> fine?");
    let listed = browser.get(&format!("/plans/{id}")).await;
    listed.shows("Two remain boat price A 1 test no");
    let written = browser.get(&format!("/outputs/{output}?as=written")).await;
    written.shows("## Two remain");
    written.hides("<h3>");
    let plain = json!({ "title": "Plain", "content": "# a", "mediaType": "text/plain" });
    let plain = text(&server.post(&path, plain).await.done(), "outputId");
    browser.get(&format!("/outputs/{plain}")).await.shows("# a");
}

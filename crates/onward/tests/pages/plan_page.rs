//! The plan page: lines between steps, the graph, actions of a blocked plan, short ids, and the
//! number of entries in the activity.

use std::collections::HashSet;
use std::time::Duration;

use onward_testbed::mcp_client::{Client, Era};
use onward_testbed::{Server, TIMEOUT};
use serde_json::{Value, json};

use crate::browser::{Browser, PageResponse, plan, text};
use crate::program;

async fn create(server: &Server, body: Value) -> String {
    let created = server.post("/api/v1/plans", body).await;
    text(&created.expect_success(), "planId")
}

/// Claims the next step and submits a result.
async fn complete(server: &Server, plan: &str, result: Value) {
    let next = format!("/api/v1/plans/{plan}/next");
    let next = server.post(&next, json!({})).await.expect_success();
    let path = format!("/api/v1/steps/{}/result", text(&next, "stepId"));
    server.post(&path, result).await.expect_success();
}

/// The positions of the boxes in the graph.
fn boxes(page: &PageResponse) -> HashSet<String> {
    let boxes = page.html.split("<rect class=\"node ").skip(1);
    let place = |node: &str| node.split(" width=").next().map(str::to_owned);
    let places = boxes.filter_map(place);
    places
        .filter_map(|place| place.split_once("\" ").map(|(_, place)| place.to_owned()))
        .collect()
}

#[tokio::test]
async fn only_dependencies_are_drawn_as_lines() {
    let server = program("pages-lines").serve();
    let browser = Browser::new(&server);
    let steps = ["A", "B", "C", "D", "E", "F"];
    let id = create(&server, plan("Independent", &steps)).await;
    let rail = browser.get(&format!("/plans/{id}")).await;
    rail.assert_lacks("class=\"edge\"");
    assert_eq!(rail.html.matches("<circle class=\"queued\"").count(), 6);
    let graph = browser.get(&format!("/plans/{id}?view=graph")).await;
    graph.assert_lacks("class=\"edge\"");
    graph.assert_contains("id=\"independent\"");
    assert_eq!(boxes(&graph).len(), 6);
    let mut body = plan("Dependent", &steps);
    for (step, parent) in [(1, 1), (2, 1), (4, 2)] {
        body["steps"][step]["dependsOn"] = json!([parent]);
    }
    let id = create(&server, body).await;
    let rail = browser.get(&format!("/plans/{id}")).await;
    rail.assert_contains("class=\"edge\"");
    let graph = browser.get(&format!("/plans/{id}?view=graph")).await;
    assert_eq!(graph.html.matches("class=\"edge\"").count(), 3);
    graph.assert_lacks("id=\"independent\"");
    assert_eq!(boxes(&graph).len(), 6);
}

#[tokio::test]
async fn the_graph_has_taken_branches() {
    let server = program("pages-graph-branches").serve();
    let mut body = plan("Boats", &["Offers", "Prices", "Compare", "Write"]);
    let added = json!({ "stepType": "analyze", "title": "Explain", "instructions": "Why?" });
    body["branchingConditions"] = json!([
        {
            "afterStepOrder": 1, "conditionExpression": "confidence > 0.5",
            "ifTrueAction": "skip_to", "actionParams": { "targetStepOrder": 3 },
        },
        {
            "afterStepOrder": 3, "conditionExpression": "confidence > 0.5",
            "ifTrueAction": "add_steps", "actionParams": { "steps": [added] },
        },
    ]);
    let id = create(&server, body).await;
    let browser = Browser::new(&server);
    let address = format!("/plans/{id}?view=graph");
    let before = browser.get(&address).await;
    before.assert_lacks("class=\"arc\"");
    before.assert_lacks(" added\"");
    for _ in 0..2 {
        complete(
            &server,
            &id,
            json!({ "resultSummary": "Two.", "confidence": 0.9 }),
        )
        .await;
    }
    let graph = browser.get(&address).await;
    assert_eq!(graph.html.matches("<path class=\"arc\"").count(), 1);
    let arc = graph.html.split("<path class=\"arc\"").nth(1).unwrap();
    let title = arc.split("</path>").next().unwrap();
    assert!(title.contains("<title>"), "{title}");
    assert_eq!(graph.html.matches("node queued added\"").count(), 1);
    assert_eq!(boxes(&graph).len(), 5);
}

#[tokio::test]
async fn a_blocked_plan_offers_to_retry_the_failed_step_or_to_cancel() {
    let program = program("pages-blocked");
    let server = program.serve();
    let mut boats = plan("Boats", &["Offers", "Prices"]);
    boats["steps"][1]["dependsOn"] = json!([1]);
    let id = create(&server, boats).await;
    let next = format!("/api/v1/plans/{id}/next");
    let step = server.post(&next, json!({})).await.expect_success();
    let step = text(&step, "stepId");
    let fail = json!({ "action": "fail_step", "stepId": step, "reason": "No offers." });
    let modify = format!("/api/v1/plans/{id}/modify");
    server.post(&modify, fail).await.expect_success();
    let browser = Browser::new(&server);
    let page = browser.get(&format!("/plans/{id}")).await;
    page.assert_contains("class=\"verdict blocked\"");
    page.assert_contains(&format!("href=\"/plans/{id}?tab=about#cancel\""));
    page.assert_lacks("id=\"resume\"");
    let overview = browser.get("/").await;
    overview.assert_contains("class=\"badge blocked\"");
    overview.assert_contains(&format!(
        "<a class=\"button primary\" href=\"/plans/{id}\" data-primary>"
    ));
    let retry = format!("/plans/{id}/steps/{step}/redo");
    let fields = [("reason", "There are offers now.")];
    let retried = browser
        .submit(&format!("/plans/{id}"), &retry, &fields)
        .await;
    let retried = browser.get(&retried.location).await;
    retried.assert_lacks("class=\"verdict blocked\"");
    let step = server.post(&next, json!({})).await.expect_success();
    assert_eq!(step["stepOrder"], 2, "{step}");
}

#[tokio::test]
async fn a_person_skips_a_failed_step_or_lets_a_waiting_one_continue() {
    for action in ["skip", "continue"] {
        let server = program("pages-unblock").serve();
        let mut boats = plan("Boats", &["Offers", "Prices"]);
        boats["steps"][1]["dependsOn"] = json!([1]);
        let id = create(&server, boats).await;
        let next = format!("/api/v1/plans/{id}/next");
        let step = server.post(&next, json!({})).await.expect_success();
        let failed = text(&step, "stepId");
        let fail = json!({ "action": "fail_step", "stepId": failed, "reason": "No offers." });
        let modify = format!("/api/v1/plans/{id}/modify");
        server.post(&modify, fail).await.expect_success();
        let listed = server.get(&format!("/api/v1/plans/{id}/steps")).await;
        let listed = listed.expect_success();
        let waiting = text(&listed["steps"][1], "stepId");
        let browser = Browser::new(&server);
        let (page, step) = match action {
            "skip" => (format!("/plans/{id}"), failed),
            _ => (format!("/plans/{id}/steps/{waiting}"), waiting.clone()),
        };
        let form = format!("/plans/{id}/steps/{step}/{action}");
        let done = browser.submit(&page, &form, &[]).await;
        let done = browser.get(&done.location).await;
        done.assert_contains("class=\"flash\"");
        let step = server.post(&next, json!({})).await.expect_success();
        assert_eq!(step["stepId"], waiting.as_str(), "{step}");
        let status = if action == "skip" {
            "skipped"
        } else {
            "failed"
        };
        assert_eq!(step["dependencies"][0]["status"], status, "{step}");
    }
}

#[tokio::test]
async fn ids_are_short_and_can_be_copied() {
    let server = program("pages-ids").serve();
    let id = create(&server, plan("Boats", &["Offers"])).await;
    let output = json!({ "title": "Report", "content": "Two." });
    let output = server
        .post(&format!("/api/v1/plans/{id}/outputs"), output)
        .await;
    let output = text(&output.expect_success(), "outputId");
    let session = "0d9f5a94-4f0c-4d11-9a5e-0c8e1f7b2a10";
    let next = json!({ "sessionId": session });
    let next = server.post(&format!("/api/v1/plans/{id}/next"), next).await;
    let step = text(&next.expect_success(), "stepId");
    let skill = json!({ "skillName": "lint", "status": "started", "sessionId": session });
    let skill = server.post("/api/v1/skills", skill).await.expect_success();
    let skill = text(&skill, "executionId");
    let abandon = format!("/api/v1/plans/{id}/abandon");
    let browser = Browser::new(&server);
    for (page, shown) in [
        (format!("/plans/{id}"), &id[..]),
        (format!("/plans/{id}?tab=about"), session),
        (format!("/plans/{id}/steps/{step}"), session),
        (format!("/outputs/{output}"), &output),
        (format!("/library/skills/{skill}"), &skill),
        (format!("/library/skills/{skill}"), session),
    ] {
        let response = browser.get(&page).await;
        response.assert_contains(&format!(
            "<code title=\"{shown}\"><bdi>{}</bdi></code>",
            &shown[..8]
        ));
        response.assert_contains(&format!("data-copy=\"{shown}\""));
        response.assert_lacks(&format!(">{shown}<"));
    }
    server.post(&abandon, json!({})).await.expect_success();
    let page = format!("/plans/{id}/steps/{step}");
    let forked = browser.submit(&page, &format!("{page}/fork"), &[]).await;
    let forked = forked.location.replace("done=forked", "tab=about");
    let forked = browser.get(&forked).await;
    forked.assert_contains(&format!("<a href=\"/plans/{id}\"><code title=\"{id}\">"));
    forked.assert_contains(&format!("data-copy=\"{id}\""));
}

#[tokio::test]
async fn the_activity_tab_counts_the_entries_of_its_list() {
    let server = program("pages-activity-count").serve();
    let id = create(&server, plan("Boats", &["Offers", "Prices"])).await;
    let next = format!("/api/v1/plans/{id}/next");
    let step = server.post(&next, json!({})).await.expect_success();
    // The release has two events and one entry; the tool call has an entry and no event.
    let release = json!({ "action": "requeue_step", "stepId": step["stepId"] });
    let modify = format!("/api/v1/plans/{id}/modify");
    server.post(&modify, release).await.expect_success();
    let mut client = Client::start(server.program(), Era::Stateless);
    client.call("get_plan_status", json!({ "planId": id }));
    let browser = Browser::new(&server);
    let page = async |tab: &str| browser.get(&format!("/plans/{id}?tab={tab}")).await.html;
    for tab in ["steps", "activity", "about"] {
        // Calls are logged after their responses, so they may be added between two pages.
        let counted = async {
            loop {
                let activity = page("activity").await;
                let list = activity.split("<ol class=\"activity\"").nth(1).unwrap();
                let list = list.split("</ol>").next().unwrap();
                let count = format!(
                    "<span class=\"figures\">{}</span>",
                    list.matches("<li id=").count()
                );
                let html = page(tab).await;
                let link = html.split("?tab=activity#tabs\"").nth(1).unwrap();
                let link = link.split("</a>").next().unwrap();
                if list.contains("<li id=\"call-") && link.contains(&count) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let counted = tokio::time::timeout(TIMEOUT, counted).await;
        counted.expect("the tab counts the entries, including the call");
    }
}

//! The approval of a plan on the review page and over the API, with edits of its steps.

use serde_json::{Value, json};

use onward_testbed::Server;

use crate::browser::{Browser, plan, text};
use crate::program;

/// Creates a plan that requires approval. Returns it, and the ids of its steps.
async fn create(server: &Server) -> (Value, Vec<String>) {
    let mut body = plan("Boats", &["Offers", "Prices", "Rumours"]);
    body["requiresApproval"] = json!(true);
    let created = server.post("/api/v1/plans", body).await.expect_success();
    let steps = created["steps"].as_array().expect("steps");
    let steps = steps.iter().map(|step| text(step, "stepId")).collect();
    (created, steps)
}

async fn steps(server: &Server, plan: &str) -> Vec<(String, String)> {
    let path = format!("/api/v1/plans/{plan}/export");
    let export = server.get(&path).await.expect_success();
    let steps = export["steps"].as_array().expect("steps").clone();
    let title = |step: &Value| step["title"].as_str().unwrap_or_default().to_owned();
    steps
        .iter()
        .map(|step| (title(step), text(step, "instructions")))
        .collect()
}

fn pair(title: &str, instructions: &str) -> (String, String) {
    (title.to_owned(), instructions.to_owned())
}

#[tokio::test]
async fn the_review_page_approves_a_plan_with_edits() {
    let server = program("pages-approval").serve();
    let (created, ids) = create(&server).await;
    let id = text(&created, "planId");
    let before = steps(&server, &id).await;
    let review = text(&created["approval"], "reviewId");
    let browser = Browser::new(&server);
    let path = format!("/reviews/{review}");
    let page = browser.get(&path).await;
    page.assert_contains("value=\"approve\"");
    page.assert_contains("value=\"reject\"");
    page.assert_lacks("value=\"modify\"");
    page.assert_lacks("value=\"skip\"");
    page.assert_contains(&format!("name=\"instructions-{}\"", ids[2]));
    page.assert_contains("name=\"instructions-new\"");

    let to = format!("/reviews/{}/decide", ids[0]);
    let title = format!("title-{}", ids[0]);
    let instructions = format!("instructions-{}", ids[0]);
    let remove = format!("remove-{}", ids[2]);
    let mut fields = vec![
        ("decision", "approve"),
        ("review", review.as_str()),
        (title.as_str(), "Fleet"),
        (instructions.as_str(), ""),
        ("instructions-new", "Compare\r\nthem."),
        (remove.as_str(), "true"),
    ];
    let rejected = browser.submit(&path, &to, &fields).await;
    assert_eq!(rejected.status, 400);
    rejected.assert_contains("role=\"alert\"");
    rejected.assert_contains("value=\"Fleet\"");
    assert_eq!(steps(&server, &id).await, before);

    fields[3].1 = "Count the boats.";
    let decided = browser.submit(&path, &to, &fields).await;
    assert_eq!(decided.location, "/inbox?done=approve");
    let changed = steps(&server, &id).await;
    assert_eq!(
        changed,
        [
            pair("Fleet", "Count the boats."),
            before[1].clone(),
            pair("", "Compare\nthem."),
        ]
    );
    let next = server
        .post(&format!("/api/v1/plans/{id}/next"), json!({}))
        .await;
    assert_eq!(text(&next.expect_success(), "stepId"), ids[0]);
}

#[tokio::test]
async fn the_api_approves_a_plan_with_edits() {
    let server = program("api-approval").serve();
    let (created, ids) = create(&server).await;
    let id = text(&created, "planId");
    let path = format!("/api/v1/steps/{}/decision", ids[0]);
    for (edits, field) in [
        (json!([{ "stepId": ids[1] }]), "edits[0].instructions"),
        (json!([{ "remove": true }]), "edits[0].stepId"),
        (
            json!([{ "stepId": ids[1], "instructions": " " }]),
            "edits[0].instructions",
        ),
        (
            json!([{ "stepId": ids[1], "delete": true }]),
            "edits[0].delete",
        ),
    ] {
        let body = json!({ "decision": "approve", "edits": edits });
        let response = server.post(&path, body).await;
        let problem = response.expect_problem(400, "invalid_input");
        assert_eq!(problem["details"]["issues"][0]["path"], field, "{problem}");
    }
    let body = json!({
        "decision": "approve",
        "edits": [{ "stepId": ids[1], "instructions": "Other prices." }],
    });
    let decided = server.post(&path, body).await.expect_success();
    assert_eq!(decided["planStatus"], "executing");
    let (_, changed) = &steps(&server, &id).await[1];
    assert_eq!(changed, "Other prices.");
}

#[tokio::test]
async fn the_form_of_a_new_plan_can_require_approval() {
    let server = program("pages-approval-form").serve();
    let browser = Browser::new(&server);
    let fields = [
        ("name", "Boats"),
        ("researchQuestion", "Which one?"),
        ("requiresApproval", "true"),
        ("steps[0].instructions", "Find offers."),
        ("steps[0].stepType", "search"),
    ];
    let created = browser.submit("/plans/new", "/plans/new", &fields).await;
    let plan = created.location.split(['/', '?']).nth(2).expect("plan id");
    let status = server.get(&format!("/api/v1/plans/{plan}")).await;
    let status = status.expect_success();
    assert_eq!(status["status"], "awaiting_review", "{status}");
}

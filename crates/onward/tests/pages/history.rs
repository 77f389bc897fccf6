//! What happened to a plan: values of branch conditions, added steps, earlier attempts, late results
//! and versions of outputs. Also exports of several plans, and the filters of the list.

use onward_testbed::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::browser::{Browser, plan, text};
use crate::program;

async fn create(server: &Server, body: Value) -> String {
    let created = server.post("/api/v1/plans", body).await;
    text(&created.expect_success(), "planId")
}

async fn start(server: &Server, plan: &str) -> Value {
    let next = format!("/api/v1/plans/{plan}/next");
    server.post(&next, json!({})).await.expect_success()
}

async fn submit(server: &Server, step: &str, body: Value) -> onward_testbed::Response {
    server
        .post(&format!("/api/v1/steps/{step}/result"), body)
        .await
}

#[tokio::test]
async fn branches_have_the_values_that_their_conditions_read() {
    let server = program("pages-branch-values").serve();
    let mut body = plan("Boats", &["Offers", "Prices", "Write"]);
    let added = json!({ "stepType": "analyze", "title": "Explain it", "instructions": "Why?" });
    body["branchingConditions"] = json!([
        { "afterStepOrder": 1, "conditionExpression": "confidence < 0.3", "ifTrueAction": "fail" },
        {
            "afterStepOrder": 1, "conditionExpression": "has(result.spread) && result.spread > 25",
            "ifTrueAction": "add_steps", "actionParams": { "steps": [added] },
        },
        { "afterStepOrder": 3, "conditionExpression": "confidence < 0.2", "ifTrueAction": "fail" },
    ]);
    let id = create(&server, body).await;
    let step = text(&start(&server, &id).await, "stepId");
    let result = json!({ "resultSummary": "Two.", "confidence": 0.86, "result": { "spread": 64 } });
    submit(&server, &step, result).await.expect_success();
    let page = Browser::new(&server).get(&format!("/plans/{id}")).await;
    page.assert_contains("(<bdi>was 0.86</bdi>)");
    page.assert_contains("(<bdi>was 64</bdi>)");
    page.assert_contains("1 of 3 taken");
    assert_eq!(page.html.matches("class=\"bracket\"").count(), 1);
    page.assert_contains("added by a branch");
    // A condition that was not reached has read nothing.
    assert_eq!(page.html.matches("<bdi>was ").count(), 4, "rail and list");
}

#[tokio::test]
async fn a_released_step_has_its_earlier_attempts_and_late_results() {
    let server = program("pages-attempts").serve();
    let id = create(&server, plan("Boats", &["Offers", "Prices"])).await;
    let first = start(&server, &id).await;
    let step = text(&first, "stepId");
    let release = json!({ "action": "requeue_step", "stepId": step });
    let modify = format!("/api/v1/plans/{id}/modify");
    server.post(&modify, release).await.expect_success();
    let page = format!("/plans/{id}?step={step}");
    let browser = Browser::new(&server);
    let released = browser.get(&page).await;
    released.assert_contains("Attempt 1: released");
    released.assert_lacks("Late results");
    start(&server, &id).await;
    let done = json!({ "resultSummary": "Two." });
    submit(&server, &step, done).await.expect_success();
    let token = text(&first, "claimToken");
    let late = json!({ "resultSummary": "Three.", "claimToken": token });
    let rejected = submit(&server, &step, late).await;
    assert_ne!(rejected.status, StatusCode::OK);
    for page in [page, format!("/plans/{id}/steps/{step}")] {
        let response = browser.get(&page).await;
        response.assert_contains("Attempt 1: released");
        response.assert_lacks("Attempt 2: ");
        response.assert_contains("Late results");
        response.assert_contains("href=\"/artifacts/");
        response.assert_lacks(&token);
    }
    let library = browser.get("/library").await;
    library.assert_contains(&step[..8]);
}

#[tokio::test]
async fn every_version_of_an_output_can_be_selected() {
    let server = program("pages-versions").serve();
    let id = create(&server, plan("Boats", &["Offers"])).await;
    let step = text(&start(&server, &id).await, "stepId");
    let mut outputs = Vec::new();
    for content in ["The **first** draft.", "The *second* draft."] {
        let body = json!({ "title": "Report", "content": content });
        let at = format!("/api/v1/plans/{id}/outputs");
        outputs.push(text(
            &server.post(&at, body).await.expect_success(),
            "outputId",
        ));
    }
    let done = json!({ "resultSummary": "Done." });
    submit(&server, &step, done).await.expect_success();
    let browser = Browser::new(&server);
    let files = format!("/plans/{id}?tab=files");
    let newest = browser.get(&files).await;
    newest.assert_contains("<em>second</em>");
    newest.assert_lacks("<strong>first</strong>");
    newest.assert_contains(&format!("output={}#output", outputs[0]));
    let earlier = browser.get(&format!("{files}&output={}", outputs[0])).await;
    earlier.assert_contains("<strong>first</strong>");
    earlier.assert_lacks("<em>second</em>");
    let page = browser.get(&format!("/outputs/{}", outputs[0])).await;
    page.assert_contains(&format!("href=\"/outputs/{}\"", outputs[1]));
    // An output of another plan is not displayed here.
    let other = create(&server, plan("Houses", &["Offers"])).await;
    let foreign = browser
        .get(&format!("/plans/{other}?tab=files&output={}", outputs[0]))
        .await;
    assert_eq!(foreign.status, StatusCode::OK);
    foreign.assert_lacks("<strong>first</strong>");
}

#[tokio::test]
async fn selected_plans_are_exported_in_one_file() {
    let server = program("pages-export").serve();
    let mut plans = Vec::new();
    for name in ["Boats", "Houses", "Ships"] {
        plans.push(create(&server, plan(name, &["Offers"])).await);
    }
    let browser = Browser::new(&server);
    let csrf_token = browser.get("/plans").await.csrf_token();
    let fields = [
        ("csrf_token", csrf_token.as_str()),
        ("plan", &plans[0]),
        ("plan", &plans[2]),
    ];
    let file = browser.post("/plans/export", &fields).await;
    assert_eq!(file.status, StatusCode::OK);
    let header = &file.headers["content-disposition"];
    assert_eq!(header, "attachment; filename=\"plans.jsonl\"");
    let documents = file.html.lines();
    let documents = documents.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let names: Vec<_> = documents
        .map(|document| text(&document["plan"], "name"))
        .collect();
    assert_eq!(names, ["Boats", "Ships"]);
    let none = browser
        .post("/plans/export", &[("csrf_token", &csrf_token)])
        .await;
    assert_eq!(none.location, "/plans?done=none_selected");
}

#[tokio::test]
async fn plans_are_filtered_by_agent_and_directory_and_sorted() {
    let server = program("pages-filters").serve();
    for name in ["Boats", "Anchors"] {
        create(&server, plan(name, &["Offers"])).await;
    }
    let browser = Browser::new(&server);
    let names = |html: &str| -> Vec<String> {
        let cells = html.split("<td class=\"main\">").skip(1);
        let name = |cell: &str| {
            let name = cell.split("<bdi>").nth(1)?.split('<').next()?;
            Some(name.to_owned())
        };
        cells.filter_map(name).collect()
    };
    for (query, expected) in [
        ("", &["Anchors", "Boats"][..]),
        ("?sort=since", &["Boats", "Anchors"]),
        ("?sort=name", &["Anchors", "Boats"]),
        ("?state=not_started", &["Boats", "Anchors"]),
        ("?state=not_started&sort=activity", &["Anchors", "Boats"]),
        ("?state=not_started&sort=name", &["Anchors", "Boats"]),
        ("?sort=nonsense", &["Anchors", "Boats"]),
        ("?agent=codex", &[]),
        ("?directory=/src", &[]),
        ("?state=not_started&agent=codex", &[]),
    ] {
        let page = browser.get(&format!("/plans{query}")).await;
        assert_eq!(names(&page.html), expected, "{query}");
    }
    let filtered = browser.get("/plans?agent=codex").await;
    filtered.assert_contains("id=\"menu-agent\"");
    filtered.assert_contains("Clear filters");
}

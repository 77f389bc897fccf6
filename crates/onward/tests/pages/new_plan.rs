//! The form that creates a plan, without JavaScript: rows are added and removed by the server, and a
//! rejected plan keeps all entered values.

use reqwest::StatusCode;
use serde_json::Value;

use crate::browser::Browser;
use crate::program;

const FORM: &str = "/plans/new";

const PLAN: [(&str, &str); 8] = [
    ("name", "Boats <b>"),
    ("researchQuestion", "Which boat?"),
    ("steps[0].title", "Offers"),
    ("steps[0].stepType", "search"),
    ("steps[0].instructions", "Find\r\noffers."),
    ("steps[1].instructions", "Compare them."),
    ("steps[1].stepType", "custom"),
    ("steps[1].dependsOn", "1"),
];

fn with<'f>(more: &[(&'f str, &'f str)]) -> Vec<(&'f str, &'f str)> {
    [&PLAN[..], more].concat()
}

#[tokio::test]
async fn creates_a_plan_with_dependencies_and_a_branch() {
    let server = program("pages-new-plan").serve();
    let browser = Browser::new(&server);
    browser
        .get("/plans")
        .await
        .assert_contains("href=\"/plans/new\"");
    let fields = with(&[
        ("branchingConditions[0].afterStepOrder", "1"),
        (
            "branchingConditions[0].conditionExpression",
            "confidence < 0.5",
        ),
        ("branchingConditions[0].ifTrueAction", "add_steps"),
        (
            "branchingConditions[0].actionParams.steps[0].instructions",
            "Again.",
        ),
        (
            "branchingConditions[0].actionParams.steps[0].stepType",
            "search",
        ),
    ]);
    let redirect = browser.submit(FORM, FORM, &fields).await;
    assert_eq!(redirect.status, StatusCode::SEE_OTHER, "{redirect:?}");
    let (page, _) = redirect.location.split_once('?').expect("a message");
    let page = browser.get(page).await;
    page.assert_contains("Boats &#60;b&#62;");
    page.assert_lacks("<b>");
    let id = redirect.location.split(['/', '?']).nth(2).expect("a plan");
    let steps = server.get(&format!("/api/v1/plans/{id}/steps")).await;
    let steps = steps.expect_success();
    assert_eq!(steps["steps"].as_array().map(Vec::len), Some(2));
    let export = server.get(&format!("/api/v1/plans/{id}/export")).await;
    let export = export.expect_success();
    assert_eq!(export["steps"][0]["instructions"], "Find\noffers.");
    assert_eq!(export["branches"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_rejected_plan_keeps_the_values_and_marks_the_inputs() {
    let server = program("pages-new-plan-rejected").serve();
    let browser = Browser::new(&server);
    for (field, value) in [
        ("steps[1].dependsOn", "7"),
        ("steps[1].maxAttempts", "many"),
        ("steps[1].stepType", "dig"),
        ("stallThresholdMs", "0"),
    ] {
        let mut fields = with(&[]);
        fields.retain(|(name, _)| *name != field);
        fields.push((field, value));
        let rejected = browser.submit(FORM, FORM, &fields).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{field}");
        rejected.assert_contains("role=\"alert\"");
        rejected.assert_contains(&format!("id=\"error-{field}\""));
        rejected.assert_contains(&format!("href=\"#{field}\""));
        rejected.assert_contains("value=\"Boats &#60;b&#62;\"");
        rejected.assert_contains("Compare them.</textarea>");
    }
    let branch = [
        ("branchingConditions[0].afterStepOrder", "1"),
        ("branchingConditions[0].conditionExpression", "(("),
        ("branchingConditions[0].ifTrueAction", "fail"),
    ];
    let rejected = browser.submit(FORM, FORM, &with(&branch)).await;
    rejected.assert_contains("id=\"error-branchingConditions[0].conditionExpression\"");
    let rejected = browser.submit(FORM, FORM, &[("name", "Boats")]).await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    let plans = server.get("/api/v1/plans").await.expect_success();
    assert_eq!(plans["plans"].as_array().map(Vec::len), Some(0), "{plans}");
}

#[tokio::test]
async fn steps_and_branches_are_added_and_removed_without_a_script() {
    let server = program("pages-new-plan-rows").serve();
    let browser = Browser::new(&server);
    let submit = async |action: &str| {
        let fields = with(&[
            ("action", action),
            ("branchingConditions[0].afterStepOrder", "2"),
        ]);
        let page = browser.submit(FORM, FORM, &fields).await;
        assert_eq!(page.status, StatusCode::OK, "{action}");
        page
    };
    let page = submit("add:step").await;
    page.assert_contains("id=\"step-3\"");
    page.assert_contains("Compare them.</textarea>");
    submit("add:branch")
        .await
        .assert_contains("id=\"branch-2\"");
    let page = submit("remove_step:0").await;
    page.assert_lacks("id=\"step-2\"");
    page.assert_contains("name=\"branchingConditions[0].afterStepOrder\" value=\"1\"");
    submit("remove_branch:0")
        .await
        .assert_lacks("id=\"branch-1\"");
    // Unknown rows and actions change nothing.
    submit("remove_step:99")
        .await
        .assert_contains("id=\"step-2\"");
    let plans = server.get("/api/v1/plans").await.expect_success();
    assert_eq!(plans["plans"], Value::Array(Vec::new()));
}

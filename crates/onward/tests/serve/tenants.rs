//! Tenant isolation: on every route, ids of another tenant get the same response as ids that do not
//! exist.

use onward_testbed::{Program, Response};
use serde_json::{Value, json};

use crate::basics::plan;
use crate::program;
use crate::routes::samples;

/// Valid ids that do not exist.
const MISSING: [&str; 3] = [
    "5d0e1f8a-3b67-4c1d-9e42-7a8b9c0d1e2f",
    "01a1de72-276f-7000-b14a-7edfe918b874",
    "0b6f4a52-1c9d-4e3f-8a7b-6c5d4e3f2a1b",
];

/// A response without the requested ids and the generated id of the kept artifact.
fn normalize(response: &Response, ids: &[&str]) -> (u16, String, String) {
    let mut text = response.text().to_owned();
    for id in ids {
        text = text.replace(id, "ID");
    }
    let mut json: Value = serde_json::from_str(&text).expect("valid JSON");
    if let Some(kept) = json.pointer_mut("/details/keptArtifactId") {
        *kept = json!("KEPT");
    }
    (
        response.status.as_u16(),
        response.header("content-type").to_owned(),
        json.to_string(),
    )
}

#[tokio::test]
async fn other_tenants_ids_look_like_missing_ids() {
    isolates_tenants(program("tenants")).await;
}

#[tokio::test]
async fn other_tenants_ids_look_like_missing_ids_on_postgresql() {
    let database = onward_testbed::Cluster::shared().database();
    isolates_tenants(program("tenants-postgres").with_database(database)).await;
}

async fn isolates_tenants(setup: Program) {
    let setup = setup.with_config("[access]\nrequire_tokens = true");
    let ours = setup.token("acme", "ours", "owner");
    let theirs = setup.token("globex", "theirs", "owner");
    let server = setup.serve();
    let created = server
        .post_as(&theirs, "/api/v1/plans", plan())
        .await
        .expect_success();
    let their_plan = created["planId"].as_str().expect("id is a string");
    let their_step = created["firstStep"]["stepId"]
        .as_str()
        .expect("id is a string");
    let tokens = server
        .get_as(&theirs, "/api/v1/tokens")
        .await
        .expect_success();
    let their_token = tokens["tokens"][0]["tokenId"]
        .as_str()
        .expect("id is a string");
    let audit = format!("/api/v1/plans/{their_plan}/audit");
    let before = server.get_as(&theirs, &audit).await.expect_success();

    let foreign = [their_plan, their_step, their_token];
    let [plan, step, token] = foreign;
    let foreign_samples = samples(&server, Some(&ours), (plan, step, token)).await;
    let missing_samples = samples(&server, Some(&ours), MISSING.into()).await;
    let mut compared = 0;
    for (theirs, missing) in foreign_samples.iter().zip(&missing_samples) {
        assert_eq!(theirs.operation, missing.operation);
        if theirs.path == missing.path {
            continue;
        }
        compared += 1;
        let their_response = theirs.send(&server, Some(&ours)).await;
        let missing_response = missing.send(&server, Some(&ours)).await;
        assert!(
            their_response.status.is_client_error(),
            "{theirs:?}: {their_response:?}"
        );
        assert_eq!(
            normalize(&their_response, &foreign),
            normalize(&missing_response, &MISSING),
            "{}",
            theirs.operation
        );
    }
    assert!(compared >= 12, "{compared}");

    // Lists contain nothing of the other tenant, and nothing was changed.
    for path in [
        "/api/v1/plans?includeFinished=true",
        "/api/v1/reviews",
        "/api/v1/tokens",
    ] {
        let list = server.get_as(&ours, path).await;
        for id in foreign {
            assert!(!list.text().contains(id), "{list:?}");
        }
    }
    assert_eq!(
        server.get_as(&theirs, &audit).await.expect_success(),
        before
    );
}

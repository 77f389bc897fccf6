//! What belongs to another tenant is answered as what never was: the same bytes, on every route.

use serde_json::{Value, json};

use crate::basics::plan;
use crate::house::{Answer, House};
use crate::routes::samples;

/// Ids that nobody was ever given, of the kind that is given out.
const NEVER: [&str; 3] = [
    "5d0e1f8a-3b67-4c1d-9e42-7a8b9c0d1e2f",
    "01a1de72-276f-7000-b14a-7edfe918b874",
    "0b6f4a52-1c9d-4e3f-8a7b-6c5d4e3f2a1b",
];

/// An answer without the ids that it was asked about, and without the one under which what was
/// submitted is kept: that one is fresh each time.
fn bare(answer: &Answer, asked: &[&str]) -> (u16, String, String) {
    let mut text = answer.text.clone();
    for id in asked {
        text = text.replace(id, "ID");
    }
    let mut json: Value = serde_json::from_str(&text).expect("JSON");
    if let Some(kept) = json.pointer_mut("/details/keptArtifactId") {
        *kept = json!("KEPT");
    }
    (
        answer.status.as_u16(),
        answer.kind.clone(),
        json.to_string(),
    )
}

#[tokio::test]
async fn another_tenants_ids_are_ids_that_never_were() {
    tried(House::new("tenants")).await;
}

#[tokio::test]
async fn another_tenants_ids_are_ids_that_never_were_on_postgresql() {
    let database = onward_testbed::Cluster::shared().database();
    tried(House::new("tenants-postgres").on(database)).await;
}

async fn tried(house: House) {
    let house = house.configured("[access]\nrequire_tokens = true");
    let ours = house.token("acme", "ours", "owner");
    let theirs = house.token("globex", "theirs", "owner");
    let server = house.serve();
    let made = server
        .post_as(&theirs, "/api/v1/plans", plan())
        .await
        .done();
    let theirs_plan = made["planId"].as_str().expect("an id");
    let theirs_step = made["firstStep"]["stepId"].as_str().expect("an id");
    let tokens = server.get_as(&theirs, "/api/v1/tokens").await.done();
    let theirs_token = tokens["tokens"][0]["tokenId"].as_str().expect("an id");
    let audit = format!("/api/v1/plans/{theirs_plan}/audit");
    let before = server.get_as(&theirs, &audit).await.done();

    let foreign = [theirs_plan, theirs_step, theirs_token];
    let [plan, step, token] = foreign;
    let about_theirs = samples(&server, Some(&ours), (plan, step, token)).await;
    let about_nothing = samples(&server, Some(&ours), NEVER.into()).await;
    let mut about_ids = 0;
    for (theirs, never) in about_theirs.iter().zip(&about_nothing) {
        assert_eq!(theirs.operation, never.operation);
        if theirs.path == never.path {
            continue;
        }
        about_ids += 1;
        let theirs_answer = theirs.send(&server, Some(&ours)).await;
        let never_answer = never.send(&server, Some(&ours)).await;
        assert!(
            theirs_answer.status.is_client_error(),
            "{theirs:?}: {theirs_answer:?}"
        );
        assert_eq!(
            bare(&theirs_answer, &foreign),
            bare(&never_answer, &NEVER),
            "{}",
            theirs.operation
        );
    }
    assert!(about_ids >= 12, "{about_ids}");

    // Lists and streams of one hold nothing of the other, and nothing was changed.
    for path in [
        "/api/v1/plans?includeFinished=true",
        "/api/v1/reviews",
        "/api/v1/tokens",
    ] {
        let list = server.get_as(&ours, path).await;
        for id in foreign {
            assert!(!list.text.contains(id), "{list:?}");
        }
    }
    assert_eq!(server.get_as(&theirs, &audit).await.done(), before);
}

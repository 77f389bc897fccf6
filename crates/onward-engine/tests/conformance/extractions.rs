//! Extractions: stored with the plan of their artifact, exported and imported with it.

use onward_core::id::ArtifactId;
use onward_core::refusal::Issue;
use onward_core::{Code, Role};
use onward_engine::extract::NewExtraction;
use onward_engine::{Error, ObjectKind};
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::invalid_path;
use crate::research::finding;

pub(crate) fn extracted(artifact: Option<ArtifactId>, data: Value) -> NewExtraction {
    NewExtraction {
        artifact,
        schema: json!({ "type": "object" }),
        instructions: Some("only moons".to_owned()),
        data,
        issues: Vec::new(),
        model: "a-model".to_owned(),
    }
}

async fn lists_extractions_with_the_plan_of_their_artifact(harness: &Harness) {
    let (plan, other) = (harness.plan(1).await, harness.plan(1).await);
    let mut note = finding("Moons", "Io and Europa");
    note.plan = Some(plan.id);
    let artifact = harness.store(note).await;
    let mut invalid = extracted(Some(artifact), json!(null));
    invalid.issues.push(Issue {
        path: "/moons".to_owned(),
        message: "not a list\0".to_owned(),
    });
    let e = &harness.engine;
    let first = e.store_extraction(
        &harness.me,
        extracted(Some(artifact), json!({ "moons": 2 })),
    );
    let first = first.await.unwrap();
    assert!(first.is_valid());
    let second = e.store_extraction(&harness.me, invalid).await.unwrap();
    assert!(!second.is_valid());
    // An extraction from inline text belongs to no plan.
    e.store_extraction(&harness.me, extracted(None, json!(1)))
        .await
        .unwrap();
    let found = e.extractions(&harness.me, plan.id, 9).await.unwrap();
    assert_eq!(found, [first, second]);
    assert_eq!(found[1].issues[0].message, "not a list\u{fffd}");
    assert_eq!(e.extractions(&harness.me, other.id, 9).await.unwrap(), []);
    assert_eq!(
        e.extractions(&harness.me, plan.id, 1).await.unwrap().len(),
        1
    );
}

async fn an_artifact_of_another_tenant_is_not_found(harness: &Harness) {
    let other = harness.create_tenant("other").await;
    let artifact = harness.store(finding("Ours", "text")).await;
    let e = &harness.engine;
    let missing = ArtifactId::new(uuid::Uuid::from_u128(7));
    let message = async |id: ArtifactId| {
        let err = e.artifact(&other, id).await.unwrap_err();
        err.to_string().replace(&id.to_string(), "ID")
    };
    assert_eq!(message(artifact).await, message(missing).await);
    let rejected = e
        .store_extraction(&other, extracted(Some(artifact), json!(1)))
        .await;
    assert!(matches!(
        rejected,
        Err(Error::NotFound {
            kind: ObjectKind::Artifact,
            ..
        })
    ));
    assert!(e.artifact(&harness.me, artifact).await.is_ok());
}

async fn viewers_cannot_store_extractions(harness: &Harness) {
    for (role, may) in [
        (Role::Owner, true),
        (Role::Admin, true),
        (Role::Member, true),
        (Role::Agent, true),
        (Role::Viewer, false),
    ] {
        let mut caller = harness.me.clone();
        caller.role = role;
        let stored = harness
            .engine
            .store_extraction(&caller, extracted(None, json!(1)))
            .await;
        assert_eq!(stored.is_ok(), may, "{role:?}");
        assert_eq!(harness.engine.may_extract(&caller).is_ok(), may, "{role:?}");
        if let Err(err) = stored {
            assert_eq!(err.code(), Code::Forbidden);
        }
    }
}

async fn extractions_are_exported_with_their_plan_and_survive_its_deletion(harness: &Harness) {
    let plan = harness.plan(1).await;
    let mut note = finding("Moons", "Io and Europa");
    note.plan = Some(plan.id);
    let artifact = harness.store(note).await;
    let e = &harness.engine;
    let stored = e.store_extraction(
        &harness.me,
        extracted(Some(artifact), json!({ "moons": 2 })),
    );
    let stored = stored.await.unwrap();
    let document = e.export(&harness.me, plan.id).await.unwrap();
    assert_eq!(
        document["extractions"][0]["extractionId"],
        stored.id.to_string()
    );
    // Import into another tenant.
    let other = harness.create_tenant("elsewhere").await;
    e.import(&other, &document).await.unwrap();
    let mut imported = e.extractions(&other, plan.id, 9).await.unwrap();
    assert_eq!(imported.pop(), Some(stored.clone()));
    // Deleting the plan keeps the artifact and its extractions; importing links them again.
    e.delete_plan(&harness.me, plan.id).await.unwrap();
    e.import(&harness.me, &document).await.unwrap();
    assert_eq!(
        e.extractions(&harness.me, plan.id, 9).await.unwrap(),
        [stored]
    );
    // An extraction whose artifact is not in the document is rejected.
    let mut invalid = document;
    invalid["extractions"][0]["artifactId"] = json!(plan.id.to_string());
    let third = harness.create_tenant("third").await;
    let path = invalid_path(e.import(&third, &invalid).await);
    assert_eq!(path, "extractions[0].artifactId");
}

on_both_databases![
    lists_extractions_with_the_plan_of_their_artifact,
    an_artifact_of_another_tenant_is_not_found,
    viewers_cannot_store_extractions,
    extractions_are_exported_with_their_plan_and_survive_its_deletion,
];

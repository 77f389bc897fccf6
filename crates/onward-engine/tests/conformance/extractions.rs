//! What models took out of texts is kept, belongs to a plan where its artifact does, and moves with it.

use onward_core::id::ArtifactId;
use onward_core::refusal::Issue;
use onward_core::{Code, Role};
use onward_engine::Error;
use onward_engine::extract::Extracted;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::research::finding;

pub(crate) fn extracted(artifact: Option<ArtifactId>, data: Value) -> Extracted {
    Extracted {
        artifact,
        schema: json!({ "type": "object" }),
        instructions: Some("only moons".to_owned()),
        data,
        issues: Vec::new(),
        model: "a-model".to_owned(),
    }
}

async fn what_was_extracted_stands_with_the_plan_of_its_artifact(desk: &Desk) {
    let (plan, other) = (desk.plan(1).await, desk.plan(1).await);
    let mut note = finding("Moons", "Io and Europa");
    note.plan = Some(plan.id);
    let artifact = desk.store(note).await;
    let mut wrong = extracted(Some(artifact), json!(null));
    wrong.issues.push(Issue {
        path: "/moons".to_owned(),
        message: "is no list\0".to_owned(),
    });
    let e = &desk.engine;
    let first = e.store_extraction(&desk.me, extracted(Some(artifact), json!({ "moons": 2 })));
    let first = first.await.unwrap();
    assert!(first.is_valid());
    let second = e.store_extraction(&desk.me, wrong).await.unwrap();
    assert!(!second.is_valid());
    // One out of a text that came with the call belongs to no plan.
    e.store_extraction(&desk.me, extracted(None, json!(1)))
        .await
        .unwrap();
    let found = e.extractions(&desk.me, plan.id, 9).await.unwrap();
    assert_eq!(found, [first, second]);
    assert_eq!(found[1].issues[0].message, "is no list\u{fffd}");
    assert_eq!(e.extractions(&desk.me, other.id, 9).await.unwrap(), []);
    assert_eq!(e.extractions(&desk.me, plan.id, 1).await.unwrap().len(), 1);
}

async fn another_tenants_artifact_is_none_at_all(desk: &Desk) {
    let other = desk.tenant("other").await;
    let artifact = desk.store(finding("Ours", "words")).await;
    let e = &desk.engine;
    let never = ArtifactId::new(uuid::Uuid::from_u128(7));
    let of = async |id: ArtifactId| {
        let why = e.artifact(&other, id).await.unwrap_err();
        why.to_string().replace(&id.to_string(), "ID")
    };
    assert_eq!(of(artifact).await, of(never).await);
    let kept = e
        .store_extraction(&other, extracted(Some(artifact), json!(1)))
        .await;
    assert!(matches!(
        kept,
        Err(Error::NotFound {
            what: "artifact",
            ..
        })
    ));
    assert!(e.artifact(&desk.me, artifact).await.is_ok());
}

async fn who_only_reads_extracts_nothing(desk: &Desk) {
    for (role, may) in [
        (Role::Owner, true),
        (Role::Admin, true),
        (Role::Member, true),
        (Role::Agent, true),
        (Role::Viewer, false),
    ] {
        let mut caller = desk.me.clone();
        caller.role = role;
        let kept = desk
            .engine
            .store_extraction(&caller, extracted(None, json!(1)))
            .await;
        assert_eq!(kept.is_ok(), may, "{role:?}");
        assert_eq!(desk.engine.may_extract(&caller).is_ok(), may, "{role:?}");
        if let Err(why) = kept {
            assert_eq!(why.code(), Code::Forbidden);
        }
    }
}

async fn extractions_move_with_their_plan_and_outlive_it(desk: &Desk) {
    let plan = desk.plan(1).await;
    let mut note = finding("Moons", "Io and Europa");
    note.plan = Some(plan.id);
    let artifact = desk.store(note).await;
    let e = &desk.engine;
    let kept = e.store_extraction(&desk.me, extracted(Some(artifact), json!({ "moons": 2 })));
    let kept = kept.await.unwrap();
    let document = e.export(&desk.me, plan.id).await.unwrap();
    assert_eq!(
        document["extractions"][0]["extractionId"],
        kept.id.to_string()
    );
    // Somewhere else it is all there.
    let other = desk.tenant("elsewhere").await;
    e.import(&other, &document).await.unwrap();
    let mut there = e.extractions(&other, plan.id, 9).await.unwrap();
    assert_eq!(there.pop(), Some(kept.clone()));
    // Here the plan goes, the artifact stays with what was taken out of it, and both come back.
    e.delete_plan(&desk.me, plan.id).await.unwrap();
    e.import(&desk.me, &document).await.unwrap();
    assert_eq!(e.extractions(&desk.me, plan.id, 9).await.unwrap(), [kept]);
    // One that is out of nothing in the document is refused.
    let mut wrong = document;
    wrong["extractions"][0]["artifactId"] = json!(plan.id.to_string());
    let third = desk.tenant("third").await;
    let refused = e.import(&third, &wrong).await.unwrap_err();
    assert!(
        refused.to_string().contains("extractions[0].artifactId"),
        "{refused}"
    );
}

on_both_databases![
    what_was_extracted_stands_with_the_plan_of_its_artifact,
    another_tenants_artifact_is_none_at_all,
    who_only_reads_extracts_nothing,
    extractions_move_with_their_plan_and_outlive_it,
];

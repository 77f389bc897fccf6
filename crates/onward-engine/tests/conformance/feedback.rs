//! Plan feedback: a rating, a comment or both; deleted together with the plan.

use onward_core::PlanId;
use onward_core::policy::MAX_REMARK;
use onward_engine::feedback::NewFeedback;
use onward_engine::{Error, ObjectKind};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, document, invalid_path};

fn opinion(plan: PlanId, rating: Option<u32>, comment: Option<&str>) -> NewFeedback {
    NewFeedback {
        plan,
        rating,
        comment: comment.map(str::to_owned),
        output: None,
    }
}

/// The tenant's stored feedback, oldest first.
fn stored(harness: &Harness) -> String {
    let tenant = &harness.me.tenant;
    let rows = format!(
        "SELECT rating, comment, actor, created_at FROM feedback WHERE tenant_id = '{tenant}' \
         ORDER BY created_at, feedback_id"
    );
    harness.sql(&rows).unwrap()
}

async fn stores_a_rating_a_comment_or_both(harness: &Harness) {
    let plan = harness.plan(1).await;
    let before = document(&harness.engine, &harness.me, plan.id).await;
    let mut ids = Vec::new();
    for (rating, comment) in [
        (Some(1), None),
        (Some(5), Some("good\0")),
        (None, Some("on time")),
        (Some(3), Some(" ")),
    ] {
        let feedback = opinion(plan.id, rating, comment);
        ids.push(
            harness
                .engine
                .submit_feedback(&harness.me, feedback)
                .await
                .unwrap(),
        );
    }
    ids.dedup();
    assert_eq!(ids.len(), 4);
    let now = harness.now().as_millis();
    let expected = [
        format!("1||me|{now}"),
        format!("5|good\u{FFFD}|me|{now}"),
        format!("|on time|me|{now}"),
        format!("3||me|{now}"),
    ];
    assert_eq!(stored(harness), expected.join("\n"));
    let events = harness.audit_trail(plan.id).await;
    assert_eq!(
        events,
        ["plan_modified created"],
        "feedback does not change the plan"
    );
    let after = document(&harness.engine, &harness.me, plan.id).await;
    assert_eq!(after["plan"], before["plan"]);
}

async fn accepts_feedback_for_a_completed_plan(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness.complete_steps(plan.id, 1).await;
    let feedback = opinion(plan.id, Some(4), None);
    harness
        .engine
        .submit_feedback(&harness.me, feedback)
        .await
        .unwrap();
}

async fn rejects_empty_and_invalid_feedback_with_its_path(harness: &Harness) {
    let plan = harness.plan(1).await;
    let long = "é".repeat(MAX_REMARK + 1);
    for (rating, comment, path) in [
        (None, None, "rating"),
        (None, Some(" \n"), "rating"),
        (Some(0), None, "rating"),
        (Some(6), Some("six"), "rating"),
        (Some(1), Some(long.as_str()), "comment"),
    ] {
        let feedback = opinion(plan.id, rating, comment);
        let rejected = harness.engine.submit_feedback(&harness.me, feedback).await;
        assert_eq!(invalid_path(rejected), path, "{rating:?} {comment:?}");
    }
    let most = "é".repeat(MAX_REMARK);
    let feedback = opinion(plan.id, None, Some(&most));
    harness
        .engine
        .submit_feedback(&harness.me, feedback)
        .await
        .unwrap();
}

async fn rejects_feedback_for_a_missing_output_or_plan(harness: &Harness) {
    let plan = harness.plan(1).await;
    let feedback = NewFeedback {
        output: Some("an output".to_owned()),
        ..opinion(plan.id, Some(1), None)
    };
    let rejected = harness.engine.submit_feedback(&harness.me, feedback).await;
    assert!(
        matches!(
            &rejected,
            Err(Error::NotFound { kind: ObjectKind::Output, name }) if name == "an output"
        ),
        "{rejected:?}"
    );
    assert_eq!(stored(harness), "");
    let no_plan = opinion(PlanId::from_u128(7), Some(1), None);
    let rejected = harness.engine.submit_feedback(&harness.me, no_plan).await;
    assert_eq!(code(rejected), "plan_not_found");
}

async fn deleting_a_plan_deletes_its_feedback(harness: &Harness) {
    let (plan, other) = (harness.plan(1).await, harness.plan(1).await);
    for id in [plan.id, other.id] {
        let feedback = opinion(id, Some(2), None);
        harness
            .engine
            .submit_feedback(&harness.me, feedback)
            .await
            .unwrap();
    }
    harness
        .engine
        .delete_plan(&harness.me, plan.id)
        .await
        .unwrap();
    let now = harness.now().as_millis();
    assert_eq!(stored(harness), format!("2||me|{now}"));
}

async fn verify_finds_corrupt_feedback(harness: &Harness) {
    let plan = harness.plan(1).await;
    let feedback = opinion(plan.id, Some(2), None);
    harness
        .engine
        .submit_feedback(&harness.me, feedback)
        .await
        .unwrap();
    harness.corrupt(&format!(
        "UPDATE feedback SET actor = X'FF' WHERE tenant_id = '{}'",
        harness.me.tenant
    ));
    let checked = harness.engine.verify(&harness.me).await.unwrap();
    assert!(
        checked.inconsistencies[0].message.contains("`feedback`"),
        "{checked:?}"
    );
}

on_both_databases![
    stores_a_rating_a_comment_or_both,
    accepts_feedback_for_a_completed_plan,
    rejects_empty_and_invalid_feedback_with_its_path,
    rejects_feedback_for_a_missing_output_or_plan,
    deleting_a_plan_deletes_its_feedback,
];

/// PostgreSQL rejects invalid text on write.
mod sqlite_types {
    use super::verify_finds_corrupt_feedback;
    crate::on_sqlite![verify_finds_corrupt_feedback];
}

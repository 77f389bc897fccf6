//! What people say about a plan: a rating, a comment, or both; it goes when the plan goes.

use onward_core::PlanId;
use onward_core::policy::MAX_REMARK;
use onward_engine::feedback::Opinion;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, document, refusal};

fn opinion(plan: PlanId, rating: Option<u32>, comment: Option<&str>) -> Opinion {
    Opinion {
        plan,
        rating,
        comment: comment.map(str::to_owned),
        output: None,
    }
}

/// What is kept of a tenant's own plans, in the order in which it was said.
fn kept(desk: &Desk) -> String {
    let tenant = &desk.me.tenant;
    let rows = format!(
        "SELECT rating, comment, actor, created_at FROM feedback WHERE tenant_id = '{tenant}' \
         ORDER BY created_at, feedback_id"
    );
    desk.sql(&rows).unwrap()
}

async fn a_rating_a_comment_or_both_are_kept(desk: &Desk) {
    let plan = desk.plan(1).await;
    let before = document(&desk.engine, &desk.me, plan.id).await;
    let mut ids = Vec::new();
    for (rating, comment) in [
        (Some(1), None),
        (Some(5), Some("good\0")),
        (None, Some("on time")),
        (Some(3), Some(" ")),
    ] {
        let said = opinion(plan.id, rating, comment);
        ids.push(desk.engine.submit_feedback(&desk.me, said).await.unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), 4);
    let now = desk.now().as_millis();
    let expected = [
        format!("1||me|{now}"),
        format!("5|good\u{FFFD}|me|{now}"),
        format!("|on time|me|{now}"),
        format!("3||me|{now}"),
    ];
    assert_eq!(kept(desk), expected.join("\n"));
    let trail = desk.trail(plan.id).await;
    assert_eq!(
        trail,
        ["plan_modified created"],
        "nothing of the plan changes"
    );
    let after = document(&desk.engine, &desk.me, plan.id).await;
    assert_eq!(after["plan"], before["plan"]);
}

async fn a_plan_that_is_over_is_talked_about_too(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.work_off(plan.id, 1).await;
    let said = opinion(plan.id, Some(4), None);
    desk.engine.submit_feedback(&desk.me, said).await.unwrap();
}

async fn saying_nothing_or_too_much_is_refused_by_its_path(desk: &Desk) {
    let plan = desk.plan(1).await;
    let long = "é".repeat(MAX_REMARK + 1);
    for (rating, comment, path) in [
        (None, None, "rating"),
        (None, Some(" \n"), "rating"),
        (Some(0), None, "rating"),
        (Some(6), Some("six"), "rating"),
        (Some(1), Some(long.as_str()), "comment"),
    ] {
        let said = opinion(plan.id, rating, comment);
        let refused = refusal(desk.engine.submit_feedback(&desk.me, said).await);
        let onward_core::Refusal::InvalidInput(issues) = refused else {
            panic!("refused for another reason: {refused}")
        };
        assert_eq!(issues[0].path, path, "{rating:?} {comment:?}");
    }
    let most = "é".repeat(MAX_REMARK);
    let said = opinion(plan.id, None, Some(&most));
    desk.engine.submit_feedback(&desk.me, said).await.unwrap();
}

async fn an_output_that_is_not_there_cannot_be_talked_about(desk: &Desk) {
    let plan = desk.plan(1).await;
    let said = Opinion {
        output: Some("an output".to_owned()),
        ..opinion(plan.id, Some(1), None)
    };
    let refused = desk.engine.submit_feedback(&desk.me, said).await;
    assert_eq!(refused.unwrap_err().to_string(), "no output `an output`");
    assert_eq!(kept(desk), "");
    let nowhere = opinion(PlanId::from_u128(7), Some(1), None);
    let refused = desk.engine.submit_feedback(&desk.me, nowhere).await;
    assert_eq!(code(refused), "plan_not_found");
}

async fn what_was_said_goes_with_its_plan(desk: &Desk) {
    let (plan, other) = (desk.plan(1).await, desk.plan(1).await);
    for id in [plan.id, other.id] {
        let said = opinion(id, Some(2), None);
        desk.engine.submit_feedback(&desk.me, said).await.unwrap();
    }
    desk.engine.delete_plan(&desk.me, plan.id).await.unwrap();
    let now = desk.now().as_millis();
    assert_eq!(kept(desk), format!("2||me|{now}"));
}

async fn damaged_words_are_found(desk: &Desk) {
    let plan = desk.plan(1).await;
    let said = opinion(plan.id, Some(2), None);
    desk.engine.submit_feedback(&desk.me, said).await.unwrap();
    desk.damage(&format!(
        "UPDATE feedback SET actor = X'FF' WHERE tenant_id = '{}'",
        desk.me.tenant
    ));
    let checked = desk.engine.verify(&desk.me).await.unwrap();
    assert!(checked.faults[0].what.contains("`feedback`"), "{checked:?}");
}

on_both_databases![
    a_rating_a_comment_or_both_are_kept,
    a_plan_that_is_over_is_talked_about_too,
    saying_nothing_or_too_much_is_refused_by_its_path,
    an_output_that_is_not_there_cannot_be_talked_about,
    what_was_said_goes_with_its_plan,
];

/// PostgreSQL takes nothing there that cannot be read.
mod loose_types {
    use super::damaged_words_are_found;
    crate::on_sqlite![damaged_words_are_found];
}

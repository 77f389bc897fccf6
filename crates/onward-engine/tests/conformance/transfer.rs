//! Out as a document and in again: on the same database, in another tenant, on the other database.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::command::ReportSkill;
use onward_core::policy::OnStall;
use onward_core::skill::SkillStatus;
use onward_engine::feedback::Opinion;
use onward_engine::next::Next;
use onward_engine::submit::Submission;
use serde_json::{Map, Value};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::place::{Company, Kind};
use crate::verbs::{code, document, error, result};
use crate::walk::Walk;

/// A plan to which much has happened.
async fn eventful(desk: &Desk, seed: &str) -> PlanId {
    let mut walk = Walk::begin(desk, seed, OnStall::Mark).await;
    for _ in 0..30 {
        walk.step(desk).await;
        desk.advance(Duration::from_millis(walk.rest()));
    }
    walk.plan
}

async fn a_plan_comes_back_as_it_was(desk: &Desk) {
    for round in 0..3 {
        let plan = eventful(desk, &format!("back {round}")).await;
        let before = document(&desk.engine, &desk.me, plan).await;
        desk.engine.delete_plan(&desk.me, plan).await.unwrap();
        desk.advance(Duration::from_secs(60));
        assert_eq!(desk.engine.import(&desk.me, &before).await.unwrap(), plan);
        assert_eq!(document(&desk.engine, &desk.me, plan).await, before);
        let line = &desk.engine.tenant_log(&desk.me, 1).await.unwrap()[0];
        assert_eq!(line.action, "plan_imported");
    }
}

async fn a_plan_is_the_same_on_the_other_database_and_back(desk: &Desk) {
    let other_kind = match desk.place.kind() {
        Kind::Sqlite => Kind::Postgres,
        Kind::Postgres => Kind::Sqlite,
    };
    let name = format!("over there from {:?}", desk.place.kind());
    let there = Desk::seeded(other_kind, Company::Shared, &name, "there").await;
    for round in 0..3 {
        let plan = eventful(desk, &format!("there {round}")).await;
        let before = document(&desk.engine, &desk.me, plan).await;
        there.engine.import(&there.me, &before).await.unwrap();
        let over_there = document(&there.engine, &there.me, plan).await;
        assert_eq!(over_there.to_string(), before.to_string());
        let back = desk.tenant(&format!("back-{round}")).await;
        desk.engine.import(&back, &over_there).await.unwrap();
        let after = document(&desk.engine, &back, plan).await;
        assert_eq!(after.to_string(), before.to_string());
    }
    there.close(Company::Shared).await;
}

async fn work_goes_on_where_it_stood(desk: &Desk) {
    let plan = desk.plan(3).await;
    let first = desk.take(plan.id).await;
    let submission = Submission {
        claim_next: true,
        ..result(&first, "done")
    };
    let answer = desk.submit(submission.clone()).await.unwrap();
    let second = crate::verbs::handed(answer.next_step.clone().unwrap());
    let document = document(&desk.engine, &desk.me, plan.id).await;
    let other = desk.tenant("other").await;
    desk.engine.import(&other, &document).await.unwrap();
    let again = desk.engine.submit(&other, submission).await.unwrap();
    assert_eq!(again, answer, "it was submitted before");
    desk.engine
        .submit(&other, result(&second, "done"))
        .await
        .unwrap();
    let next = desk
        .engine
        .next_step(&other, plan.id, None, false)
        .await
        .unwrap();
    assert_eq!(crate::verbs::handed(next).step, plan.steps[2]);
    assert_eq!(
        desk.statuses(plan.id).await,
        ["completed", "in_progress", "pending"]
    );
}

async fn a_plan_that_is_there_is_a_conflict_and_not_touched(desk: &Desk) {
    let plan = desk.plan(2).await;
    let early = document(&desk.engine, &desk.me, plan.id).await;
    desk.work_off(plan.id, 1).await;
    let before = document(&desk.engine, &desk.me, plan.id).await;
    assert_eq!(code(desk.engine.import(&desk.me, &early).await), "conflict");
    assert_eq!(document(&desk.engine, &desk.me, plan.id).await, before);
}

async fn a_plan_whose_steps_are_another_plans_is_a_conflict(desk: &Desk) {
    let plan = desk.plan(2).await;
    let before = document(&desk.engine, &desk.me, plan.id).await;
    let other = desk.engine.fresh_plan();
    let text = before
        .to_string()
        .replace(&plan.id.to_string(), &other.to_string());
    let doubled: Value = serde_json::from_str(&text).unwrap();
    let refused = error(desk.engine.import(&desk.me, &doubled).await);
    assert_eq!(refused.code().as_str(), "conflict", "{refused}");
    assert_eq!(
        code(desk.engine.sheet(&desk.me, other).await),
        "plan_not_found"
    );
    assert_eq!(document(&desk.engine, &desk.me, plan.id).await, before);
}

async fn many_who_import_the_same_plan_at_once_make_it_once(desk: &Desk) {
    let plan = desk.plan(2).await;
    let before = document(&desk.engine, &desk.me, plan.id).await;
    desk.engine.delete_plan(&desk.me, plan.id).await.unwrap();
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let (engine, me, before) = (desk.engine.clone(), desk.me.clone(), before.clone());
            tokio::spawn(async move { engine.import(&me, &before).await })
        })
        .collect();
    let mut codes = Vec::new();
    for call in calls {
        codes.push(
            call.await
                .unwrap()
                .map_or_else(|why| why.code().as_str(), |_| "made"),
        );
    }
    codes.sort_unstable();
    assert_eq!(
        codes,
        ["conflict", "conflict", "conflict", "conflict", "made"]
    );
}

async fn artifacts_go_along_with_their_plan(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    desk.hand_in(&step, "first").await;
    let kept = error(desk.submit(result(&step, "late")).await).kept();
    let before = document(&desk.engine, &desk.me, plan.id).await;
    let other = desk.tenant("other").await;
    desk.engine.import(&other, &before).await.unwrap();
    let whole = desk.engine.whole_plan(&other, plan.id).await.unwrap();
    assert_eq!(Some(whole.artifacts[0].id), kept);
    // Where the plan was before, its artifacts have stayed; now they belong to it again.
    desk.engine.delete_plan(&desk.me, plan.id).await.unwrap();
    desk.engine.import(&desk.me, &before).await.unwrap();
    assert_eq!(document(&desk.engine, &desk.me, plan.id).await, before);
}

async fn skills_and_feedback_go_along_with_their_plan(desk: &Desk) {
    let plan = desk.plan(1).await;
    let ended = desk
        .start_skill(&desk.me, "ended", "s", Some(plan.id))
        .await;
    desk.start_skill(&desk.me, "open", "s", Some(plan.id)).await;
    let report = |status, error: Option<&str>| ReportSkill {
        skill: "ended".to_owned(),
        status,
        session: None,
        plan: None,
        metadata: Map::from_iter([("outputMediaType".to_owned(), "text/html".into())]),
        error: error.map(str::to_owned),
    };
    let failed = report(SkillStatus::Failed, Some("no paper"));
    desk.engine
        .log_skill(&desk.me, Some(ended), failed)
        .await
        .unwrap();
    for (rating, comment) in [(Some(5), None), (None, Some("well"))] {
        let opinion = Opinion {
            plan: plan.id,
            rating,
            comment: comment.map(str::to_owned),
            output: None,
        };
        desk.engine
            .submit_feedback(&desk.me, opinion)
            .await
            .unwrap();
    }
    desk.work_off(plan.id, 1).await;
    let before = document(&desk.engine, &desk.me, plan.id).await;
    let count = |key: &str| before[key].as_array().map(Vec::len);
    assert_eq!(
        (count("skillExecutions"), count("feedback")),
        (Some(2), Some(2))
    );

    let other = desk.tenant("other").await;
    desk.engine.import(&other, &before).await.unwrap();
    assert_eq!(document(&desk.engine, &other, plan.id).await, before);
    let next = desk.engine.next_step(&other, plan.id, None, false).await;
    let Next::Complete(notes) = next.unwrap() else {
        panic!("it is complete")
    };
    assert_eq!(notes.media_type.as_deref(), Some("text/html"));
    // Where the plan was before, the one that is still at work has stayed.
    desk.engine.delete_plan(&desk.me, plan.id).await.unwrap();
    desk.engine.import(&desk.me, &before).await.unwrap();
    assert_eq!(document(&desk.engine, &desk.me, plan.id).await, before);
}

async fn a_document_from_before_there_were_skills_is_taken_in(desk: &Desk) {
    let plan = desk.plan(1).await;
    let mut early = document(&desk.engine, &desk.me, plan.id).await;
    let fields = early.as_object_mut().unwrap();
    fields.remove("skillExecutions").unwrap();
    fields.remove("feedback").unwrap();
    let other = desk.tenant("other").await;
    desk.engine.import(&other, &early).await.unwrap();
}

async fn what_stands_beside_a_plan_must_fit_its_trail(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.start_skill(&desk.me, "survey", "s", Some(plan.id))
        .await;
    let opinion = Opinion {
        plan: plan.id,
        rating: Some(1),
        comment: None,
        output: None,
    };
    desk.engine
        .submit_feedback(&desk.me, opinion)
        .await
        .unwrap();
    let sound = document(&desk.engine, &desk.me, plan.id).await;
    let other = desk.tenant("other").await;
    let changes: [(&str, &str, Value); 7] = [
        (
            "/skillExecutions/0/skillName",
            "skillExecutions[0]",
            "another".into(),
        ),
        (
            "/skillExecutions/0/executionId",
            "skillExecutions[0]",
            plan.id.to_string().into(),
        ),
        (
            "/skillExecutions/0/status",
            "skillExecutions[0].endedAt",
            "completed".into(),
        ),
        (
            "/skillExecutions/0/status",
            "skillExecutions[0].status",
            "paused".into(),
        ),
        (
            "/skillExecutions/0/metadata",
            "skillExecutions[0].metadata",
            Value::Null,
        ),
        ("/feedback/0/rating", "feedback[0]", 6.into()),
        ("/feedback/0/rating", "feedback[0]", Value::Null),
    ];
    for (pointer, path, value) in changes {
        let mut spoilt = sound.clone();
        *spoilt.pointer_mut(pointer).unwrap() = value;
        let refused = crate::verbs::refusal(desk.engine.import(&other, &spoilt).await);
        let onward_core::Refusal::InvalidInput(issues) = refused else {
            panic!("refused for another reason: {refused}")
        };
        assert_eq!(issues[0].path, path, "{pointer}");
    }
    let mut ended = sound.clone();
    ended["skillExecutions"][0]["status"] = "completed".into();
    ended["skillExecutions"][0]["endedAt"] = ended["plan"]["createdAt"].clone();
    assert_eq!(
        code(desk.engine.import(&other, &ended).await),
        "invalid_input"
    );
    desk.engine.import(&other, &sound).await.unwrap();
}

on_both_databases![
    skills_and_feedback_go_along_with_their_plan,
    a_document_from_before_there_were_skills_is_taken_in,
    what_stands_beside_a_plan_must_fit_its_trail,
    a_plan_comes_back_as_it_was,
    a_plan_is_the_same_on_the_other_database_and_back,
    work_goes_on_where_it_stood,
    a_plan_that_is_there_is_a_conflict_and_not_touched,
    a_plan_whose_steps_are_another_plans_is_a_conflict,
    many_who_import_the_same_plan_at_once_make_it_once,
    artifacts_go_along_with_their_plan,
];

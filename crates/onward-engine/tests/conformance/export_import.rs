//! Export and import: into the same database, another tenant and the other backend.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use onward_core::PlanId;
use onward_core::command::ReportSkill;
use onward_core::id::ClaimToken;
use onward_core::policy::OnStall;
use onward_core::skill::SkillStatus;
use onward_engine::feedback::NewFeedback;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::research::NewArtifact;
use onward_engine::submit::Submission;
use onward_testbed::{Backend, TestDir};
use serde_json::{Map, Value};

use crate::database::Isolation;
use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{assert_reimported, code, document, error, invalid_path, submission_for};
use crate::random_walk::RandomWalk;
use crate::research::finding;

/// A plan after a random walk of 30 calls.
async fn walked_plan(harness: &Harness, seed: &str) -> PlanId {
    let mut walk = RandomWalk::start(harness, seed, OnStall::Mark).await;
    for _ in 0..30 {
        walk.step(harness).await;
        harness.advance(Duration::from_millis(walk.pause()));
    }
    walk.plan
}

async fn an_imported_plan_equals_the_exported_one(harness: &Harness) {
    for round in 0..3 {
        let plan = walked_plan(harness, &format!("back {round}")).await;
        let before = document(&harness.engine, &harness.me, plan).await;
        harness.engine.delete_plan(&harness.me, plan).await.unwrap();
        harness.advance(Duration::from_secs(60));
        assert_eq!(
            harness.engine.import(&harness.me, &before).await.unwrap(),
            plan
        );
        assert_eq!(document(&harness.engine, &harness.me, plan).await, before);
        let line = &harness.engine.tenant_log(&harness.me, 1).await.unwrap()[0];
        assert_eq!(line.action, "plan_imported");
    }
}

/// A document that was written to a file in parts.
async fn document_in_parts(harness: &Harness, plan: PlanId) -> Value {
    let directory = TestDir::new("export in parts");
    let path = directory.join("plan.json");
    let file = File::create(&path).unwrap();
    let exported = harness.engine.export_to(&harness.me, plan, Arc::new(file));
    exported.await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    document.as_object_mut().unwrap().remove("exportedAt");
    document
}

async fn an_export_in_parts_equals_the_whole_document(harness: &Harness) {
    let walked = walked_plan(harness, "in parts").await;
    let plan = harness.plan(20).await;
    for index in 0..20 {
        let step = harness.claim(plan.id).await;
        harness
            .submit(submission_for(&step, &format!("result {index}")))
            .await
            .unwrap();
        let finding = NewArtifact {
            plan: Some(plan.id),
            ..finding(&format!("finding {index}"), "text")
        };
        harness.store(finding).await;
    }
    for plan in [walked, plan.id] {
        let whole = document(&harness.engine, &harness.me, plan).await;
        assert_eq!(document_in_parts(harness, plan).await, whole);
    }
}

async fn loads_no_plan_above_the_limit(harness: &Harness) {
    let plan = harness.plan(2).await.id;
    let load = |max_bytes| {
        harness
            .engine
            .full_plan_within(&harness.me, plan, max_bytes)
    };
    assert_eq!(code(load(10).await), "conflict");
    assert!(load(1_000_000).await.is_ok());
}

async fn a_plan_round_trips_through_the_other_backend(harness: &Harness) {
    let other_backend = match harness.database.backend() {
        Backend::Sqlite => Backend::Postgres,
        Backend::Postgres => Backend::Sqlite,
    };
    let name = format!("imported from {:?}", harness.database.backend());
    let target = Harness::with_seed(other_backend, Isolation::Shared, &name, "target").await;
    for round in 0..3 {
        let plan = walked_plan(harness, &format!("exported {round}")).await;
        let before = document(&harness.engine, &harness.me, plan).await;
        target.engine.import(&target.me, &before).await.unwrap();
        let imported = document(&target.engine, &target.me, plan).await;
        assert_eq!(imported.to_string(), before.to_string());
        let back = harness.create_tenant(&format!("back-{round}")).await;
        harness.engine.import(&back, &imported).await.unwrap();
        let after = document(&harness.engine, &back, plan).await;
        assert_eq!(after.to_string(), before.to_string());
    }
    target.close(Isolation::Shared).await;
}

async fn an_imported_plan_continues_where_it_was_exported(harness: &Harness) {
    let plan = harness.plan(3).await;
    let first = harness.claim(plan.id).await;
    let submission = Submission {
        claim_next: true,
        ..submission_for(&first, "done")
    };
    let response = harness.submit(submission.clone()).await.unwrap();
    let second = crate::operations::claimed_step(response.next_step.clone().unwrap());
    let document = document(&harness.engine, &harness.me, plan.id).await;
    let other = harness.create_tenant("other").await;
    harness.engine.import(&other, &document).await.unwrap();
    // The document contains no claim tokens, so the imported claims have new ones.
    let masked = submission_for(
        &AssignedStep {
            token: ClaimToken::new("[token]"),
            ..second.clone()
        },
        "x",
    );
    for unknown in [submission_for(&second, "late"), masked] {
        let rejected = harness.engine.submit(&other, unknown).await;
        assert_eq!(code(rejected), "claim_superseded");
    }
    let without_token = Submission {
        token: None,
        ..submission
    };
    let again = harness.engine.submit(&other, without_token).await.unwrap();
    let again = crate::operations::claimed_step(again.next_step.unwrap());
    assert_eq!(again.step, second.step, "duplicate submission");
    assert_ne!(again.token, second.token);
    harness
        .engine
        .submit(&other, submission_for(&again, "done"))
        .await
        .unwrap();
    let next = harness
        .engine
        .next_step(&other, plan.id, None, false)
        .await
        .unwrap();
    assert_eq!(crate::operations::claimed_step(next).step, plan.steps[2]);
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["completed", "in_progress", "pending"]
    );
}

async fn a_document_contains_no_claim_tokens(harness: &Harness) {
    let plan = harness.plan(2).await;
    let first = harness.claim(plan.id).await;
    harness.complete(&first, "done").await;
    let second = harness.claim(plan.id).await;
    let text = document(&harness.engine, &harness.me, plan.id)
        .await
        .to_string();
    for token in [&first.token, &second.token] {
        assert!(!text.contains(token.as_str()), "{text}");
    }
}

async fn an_imported_step_in_progress_can_be_taken_over(harness: &Harness) {
    let plan = harness.plan(1).await;
    let held = harness.claim(plan.id).await;
    let document = document(&harness.engine, &harness.me, plan.id).await;
    let other = harness.create_tenant("other").await;
    harness.engine.import(&other, &document).await.unwrap();
    harness.advance(onward_core::DEFAULT_STALL_THRESHOLD + Duration::from_millis(1));
    let next = harness.engine.next_step(&other, plan.id, None, true).await;
    let taken_over = crate::operations::claimed_step(next.unwrap());
    assert_eq!((taken_over.step, taken_over.attempt), (held.step, 2));
    harness
        .engine
        .submit(&other, submission_for(&taken_over, "done"))
        .await
        .unwrap();
}

async fn importing_an_existing_plan_is_a_conflict(harness: &Harness) {
    let plan = harness.plan(2).await;
    let early = document(&harness.engine, &harness.me, plan.id).await;
    harness.complete_steps(plan.id, 1).await;
    let before = document(&harness.engine, &harness.me, plan.id).await;
    assert_eq!(
        code(harness.engine.import(&harness.me, &early).await),
        "conflict"
    );
    assert_eq!(
        document(&harness.engine, &harness.me, plan.id).await,
        before
    );
}

async fn importing_existing_step_ids_is_a_conflict(harness: &Harness) {
    let plan = harness.plan(2).await;
    let before = document(&harness.engine, &harness.me, plan.id).await;
    let other = harness.engine.new_plan_id();
    let text = before
        .to_string()
        .replace(&plan.id.to_string(), &other.to_string());
    let duplicate: Value = serde_json::from_str(&text).unwrap();
    let rejected = error(harness.engine.import(&harness.me, &duplicate).await);
    assert_eq!(rejected.code().as_str(), "conflict", "{rejected}");
    assert_eq!(
        code(harness.engine.sheet(&harness.me, other).await),
        "plan_not_found"
    );
    assert_eq!(
        document(&harness.engine, &harness.me, plan.id).await,
        before
    );
}

async fn concurrent_imports_create_the_plan_once(harness: &Harness) {
    let plan = harness.plan(2).await;
    let before = document(&harness.engine, &harness.me, plan.id).await;
    harness
        .engine
        .delete_plan(&harness.me, plan.id)
        .await
        .unwrap();
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let (engine, me, before) = (harness.engine.clone(), harness.me.clone(), before.clone());
            tokio::spawn(async move { engine.import(&me, &before).await })
        })
        .collect();
    let mut codes = Vec::new();
    for call in calls {
        codes.push(
            call.await
                .unwrap()
                .map_or_else(|err| err.code().as_str(), |_| "imported"),
        );
    }
    codes.sort_unstable();
    assert_eq!(
        codes,
        ["conflict", "conflict", "conflict", "conflict", "imported"]
    );
}

async fn artifacts_are_exported_with_their_plan(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "first").await;
    let artifact = error(harness.submit(submission_for(&step, "late")).await).kept();
    let before = document(&harness.engine, &harness.me, plan.id).await;
    let other = harness.create_tenant("other").await;
    harness.engine.import(&other, &before).await.unwrap();
    let whole = harness.engine.full_plan(&other, plan.id).await.unwrap();
    assert_eq!(Some(whole.artifacts[0].id), artifact);
    // Deleting the plan kept its artifacts; importing it links them again.
    assert_reimported(harness, plan.id).await;
}

async fn skills_and_feedback_are_exported_with_their_plan(harness: &Harness) {
    let plan = harness.plan(1).await;
    let ended = harness
        .start_skill(&harness.me, "ended", "s", Some(plan.id))
        .await;
    harness
        .start_skill(&harness.me, "open", "s", Some(plan.id))
        .await;
    let report = |status, error: Option<&str>| ReportSkill {
        skill: "ended".to_owned(),
        status,
        session: None,
        plan: None,
        metadata: Map::from_iter([("outputMediaType".to_owned(), "text/html".into())]),
        error: error.map(str::to_owned),
    };
    let failed = report(SkillStatus::Failed, Some("no paper"));
    harness
        .engine
        .log_skill(&harness.me, Some(ended), failed)
        .await
        .unwrap();
    for (rating, comment) in [(Some(5), None), (None, Some("well"))] {
        let opinion = NewFeedback {
            plan: plan.id,
            rating,
            comment: comment.map(str::to_owned),
            output: None,
        };
        harness
            .engine
            .submit_feedback(&harness.me, opinion)
            .await
            .unwrap();
    }
    harness.complete_steps(plan.id, 1).await;
    let before = document(&harness.engine, &harness.me, plan.id).await;
    let count = |key: &str| before[key].as_array().map(Vec::len);
    assert_eq!(
        (count("skillExecutions"), count("feedback")),
        (Some(2), Some(2))
    );

    let other = harness.create_tenant("other").await;
    harness.engine.import(&other, &before).await.unwrap();
    assert_eq!(document(&harness.engine, &other, plan.id).await, before);
    let next = harness.engine.next_step(&other, plan.id, None, false).await;
    let NextStep::Complete(notes) = next.unwrap() else {
        panic!("plan is not complete")
    };
    assert_eq!(notes.media_type.as_deref(), Some("text/html"));
    // Deleting the plan kept the running skill execution; importing it links it again.
    assert_reimported(harness, plan.id).await;
}

async fn imports_a_document_without_skills_and_feedback(harness: &Harness) {
    let plan = harness.plan(1).await;
    let mut document = document(&harness.engine, &harness.me, plan.id).await;
    let fields = document.as_object_mut().unwrap();
    fields.remove("skillExecutions").unwrap();
    fields.remove("feedback").unwrap();
    let other = harness.create_tenant("other").await;
    harness.engine.import(&other, &document).await.unwrap();
}

async fn rejects_skills_and_feedback_that_contradict_the_audit_trail(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness
        .start_skill(&harness.me, "survey", "s", Some(plan.id))
        .await;
    let opinion = NewFeedback {
        plan: plan.id,
        rating: Some(1),
        comment: None,
        output: None,
    };
    harness
        .engine
        .submit_feedback(&harness.me, opinion)
        .await
        .unwrap();
    let valid = document(&harness.engine, &harness.me, plan.id).await;
    let other = harness.create_tenant("other").await;
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
        let mut invalid = valid.clone();
        *invalid.pointer_mut(pointer).unwrap() = value;
        let rejected = harness.engine.import(&other, &invalid).await;
        assert_eq!(invalid_path(rejected), path, "{pointer}");
    }
    let mut ended = valid.clone();
    ended["skillExecutions"][0]["status"] = "completed".into();
    ended["skillExecutions"][0]["endedAt"] = ended["plan"]["createdAt"].clone();
    assert_eq!(
        code(harness.engine.import(&other, &ended).await),
        "invalid_input"
    );
    harness.engine.import(&other, &valid).await.unwrap();
}

on_both_databases![
    skills_and_feedback_are_exported_with_their_plan,
    imports_a_document_without_skills_and_feedback,
    rejects_skills_and_feedback_that_contradict_the_audit_trail,
    an_imported_plan_equals_the_exported_one,
    an_export_in_parts_equals_the_whole_document,
    loads_no_plan_above_the_limit,
    a_plan_round_trips_through_the_other_backend,
    an_imported_plan_continues_where_it_was_exported,
    a_document_contains_no_claim_tokens,
    an_imported_step_in_progress_can_be_taken_over,
    importing_an_existing_plan_is_a_conflict,
    importing_existing_step_ids_is_a_conflict,
    concurrent_imports_create_the_plan_once,
    artifacts_are_exported_with_their_plan,
];

//! Late results: a rejected result is stored as an artifact whose id the error returns. Submitting
//! the same result again stores it once.

use onward_core::id::{ArtifactId, ClaimToken};
use onward_core::{Code, PlanId, StepId};
use onward_engine::step::{ProgressReport, ReviewRequest};
use onward_engine::submit::Submission;
use onward_store::Artifact;
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{error, submission_for, submission_without_token};

async fn artifacts(harness: &Harness, plan: PlanId) -> Vec<Artifact> {
    harness
        .engine
        .full_plan(&harness.me, plan)
        .await
        .unwrap()
        .artifacts
}

async fn stores_a_rejected_result_with_all_its_fields(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "first").await;
    let mut late = submission_for(&step, "second");
    late.result.data = Some(json!({ "sources": [1, 2] }).into());
    late.result.confidence = Some(0.25);
    late.result.report = Some(json!({ "tools": "many" }).into());
    late.result.formatting_notes = Some("short".to_owned());
    let rejected = error(harness.submit(late).await);
    let stored = artifacts(harness, plan.id).await;
    assert_eq!(rejected.kept(), Some(stored[0].id));
    assert_eq!((stored.len(), stored[0].kind.as_str()), (1, "late_result"));
    assert_eq!(
        (stored[0].plan, stored[0].step),
        (Some(plan.id), Some(step.step))
    );
    let content: Value = serde_json::from_str(&stored[0].content).unwrap();
    assert_eq!(
        content,
        json!({
            "resultSummary": "second",
            "result": { "sources": [1, 2] },
            "confidence": 0.25,
            "stepExecutionReport": { "tools": "many" },
            "outputFormattingNotes": "short",
        })
    );
    assert_eq!(
        harness.audit_trail(plan.id).await.last().unwrap(),
        "late_result_kept"
    );
}

async fn stores_the_same_rejected_result_once_and_different_results_separately(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "first").await;
    let reject = async |summary: &str| error(harness.submit(submission_for(&step, summary)).await);
    let (one, again, other) = (reject("a").await, reject("a").await, reject("b").await);
    assert_eq!(
        (one.kept(), one.to_string()),
        (again.kept(), again.to_string())
    );
    assert_ne!(one.kept(), other.kept());
    assert_eq!(artifacts(harness, plan.id).await.len(), 2);
    let events = harness.audit_trail(plan.id).await;
    assert_eq!(
        events
            .iter()
            .filter(|name| *name == "late_result_kept")
            .count(),
        2
    );
}

async fn stores_a_result_for_a_missing_step_without_a_plan(harness: &Harness) {
    let missing = StepId::from_u128(7);
    let rejected = error(
        harness
            .submit(submission_without_token(missing, "late"))
            .await,
    );
    assert_eq!(rejected.code().as_str(), "step_not_found");
    let stored = rejected.kept().expect("result is stored");
    let rows = harness.sql(&format!(
        "SELECT plan_id, step_id, content FROM artifacts WHERE tenant_id = '{}' AND artifact_id = {}",
        harness.me.tenant,
        harness.id_literal(stored)
    ));
    assert_eq!(rows.as_deref(), Ok(r#"||{"resultSummary":"late"}"#));
}

async fn stores_results_for_terminal_plans(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    harness
        .engine
        .abandon_plan(&harness.me, plan.id, None)
        .await
        .unwrap();
    for submission in [
        submission_for(&step, "late"),
        submission_without_token(step.step, "later"),
        submission_without_token(plan.steps[1], "never begun"),
    ] {
        let rejected = error(harness.submit(submission).await);
        assert_eq!(rejected.code().as_str(), "plan_is_terminal");
        assert!(rejected.kept().is_some());
    }
    assert_eq!(artifacts(harness, plan.id).await.len(), 3);
}

async fn stores_invalid_results(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let mut confident = submission_for(&step, "confident");
    confident.result.confidence = Some(1.5);
    let rejected = error(harness.submit(confident).await);
    assert_eq!(rejected.code().as_str(), "invalid_input");
    assert!(rejected.kept().is_some());
    assert_eq!(harness.step_statuses(plan.id).await, ["in_progress"]);
}

async fn stores_rejected_review_requests_and_progress_reports(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let token = || Some(ClaimToken::new("not mine"));
    let question = ReviewRequest {
        step: step.step,
        summary: "Is it the Moon?".to_owned(),
        questions: vec!["Really?".to_owned()],
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: token(),
        session: None,
    };
    let review = error(harness.engine.request_review(&harness.me, question).await);
    let progress = ProgressReport {
        step: step.step,
        note: Some("half way".to_owned()),
        percent: Some(50.0),
        token: token(),
        session: None,
    };
    let reported = error(
        harness
            .engine
            .report_progress(&harness.me, progress.clone())
            .await,
    );
    let empty = ProgressReport {
        note: None,
        percent: None,
        ..progress
    };
    let empty = error(harness.engine.report_progress(&harness.me, empty).await);
    assert_eq!(empty.kept(), None);
    let stored: Vec<Artifact> = artifacts(harness, plan.id).await;
    let content = |id: Option<ArtifactId>| {
        let found = stored.iter().find(|artifact| Some(artifact.id) == id);
        found.expect("artifact exists").content.clone()
    };
    assert!(content(review.kept()).contains("Is it the Moon?"));
    assert!(content(review.kept()).contains("Really?"));
    assert!(content(reported.kept()).contains("half way"));
}

async fn stores_a_result_that_exceeds_the_nesting_limit_as_text(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let mut deep = submission_for(&step, "deep");
    let nested = (0..120).fold(json!("bottom"), |inner, _| json!([inner]));
    deep.result.data = Some(json!({ "nested": nested }).into());
    let rejected = error(harness.submit(deep).await);
    assert_eq!(rejected.code().as_str(), "invalid_input");
    let kept = rejected.kept().expect("work is kept");
    let kept = harness.engine.artifact(&harness.me, kept).await.unwrap();
    assert!(kept.content.contains("bottom"));
    harness.complete(&step, "shallow").await;
}

async fn accepts_a_valid_result_after_a_rejected_one(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let wrong = Submission {
        token: Some(ClaimToken::new("wrong")),
        ..submission_for(&step, "right")
    };
    error(harness.submit(wrong).await);
    let submitted = harness.complete(&step, "right").await;
    assert_eq!(submitted.plan_status.as_str(), "completed");
}

async fn stores_an_unparsable_request_unchanged(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let store = async |step: &str, summary: &str| {
        let work = json!({ "resultSummary": summary, "confidence": "hi\u{0}gh" });
        let engine = &harness.engine;
        let stored =
            engine.store_unparsed_result(&harness.me, step, None, work, Code::InvalidInput);
        stored.await.unwrap()
    };
    let id = step.step.to_string();
    let one = store(&id, "a").await;
    assert_eq!(store(&id, "a").await, one, "stored once");
    let found = harness.engine.artifact(&harness.me, one).await.unwrap();
    assert_ne!(store(&id, "b").await, one);
    assert_eq!(artifacts(harness, plan.id).await, [], "unlisted");
    let content: Value = serde_json::from_str(&found.content).unwrap();
    let expected = json!({ "resultSummary": "a", "confidence": "hi\u{fffd}gh" });
    assert_eq!(content, expected);
    assert_eq!(
        harness.audit_trail(plan.id).await.last().unwrap(),
        "late_result_kept"
    );
    // For an unknown step the artifact has no plan; different step names are stored separately.
    let (first, second) = (
        store("unknown", "a").await,
        store("un\u{0}known", "a").await,
    );
    assert_ne!(first, second);
    // The step is unchanged.
    harness.complete(&step, "a").await;
}

async fn an_accepted_result_supersedes_the_invalid_input_of_its_claim(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    let invalid = |summary: &str| {
        let mut invalid = submission_for(&step, summary);
        invalid.result.confidence = Some(1.5);
        invalid
    };
    let artifact = async |id: ArtifactId| harness.engine.artifact(&harness.me, id).await;
    let first = error(harness.submit(invalid("zebra one")).await);
    let first = first.kept().expect("work is kept");
    let second = error(harness.submit(invalid("zebra two")).await);
    let second = second.kept().expect("work is kept");
    assert!(artifact(first).await.is_err(), "superseded by the second");
    assert!(artifact(second).await.is_ok());
    assert_eq!(artifacts(harness, plan.id).await, []);
    harness.complete(&step, "valid").await;
    assert!(artifact(second).await.is_err(), "superseded by the result");
}

async fn the_invalid_input_of_another_claim_stays(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let mut foreign = submission_for(&step, "foreign");
    foreign.result.confidence = Some(1.5);
    foreign.token = Some(ClaimToken::new("not mine"));
    let kept = error(harness.submit(foreign).await).kept().unwrap();
    harness.complete(&step, "valid").await;
    let found = harness.engine.artifact(&harness.me, kept).await;
    assert!(found.is_ok(), "{found:?}");
    assert_eq!(artifacts(harness, plan.id).await, []);
}

async fn a_search_never_finds_invalid_input(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    let mut invalid = submission_for(&step, "Zebras migrate.");
    invalid.result.confidence = Some(1.5);
    let rejected = error(harness.submit(invalid).await);
    assert!(rejected.kept().is_some());
    let unparsed = json!({ "resultSummary": "Zebras rest.", "confidence": "high" });
    for step in [step.step.to_string(), "unknown".to_owned()] {
        let engine = &harness.engine;
        let work = unparsed.clone();
        let stored =
            engine.store_unparsed_result(&harness.me, &step, None, work, Code::InvalidInput);
        stored.await.unwrap();
    }
    assert_eq!(harness.titles("zebras").await, Vec::<String>::new());
    harness.complete(&step, "valid").await;
    error(harness.submit(submission_for(&step, "Zebras sleep.")).await);
    assert_eq!(harness.titles("zebras").await.len(), 1, "a late result");
}

async fn an_error_that_rejects_work_says_that_it_was_kept(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    harness.complete(&step, "first").await;
    let rejected = error(harness.submit(submission_for(&step, "second")).await);
    assert!(rejected.to_string().ends_with(onward_engine::error::KEPT));
    let missing = error(
        harness
            .submit(submission_without_token(StepId::from_u128(7), "x"))
            .await,
    );
    assert!(missing.to_string().ends_with(onward_engine::error::KEPT));
}

on_both_databases![
    an_accepted_result_supersedes_the_invalid_input_of_its_claim,
    the_invalid_input_of_another_claim_stays,
    a_search_never_finds_invalid_input,
    an_error_that_rejects_work_says_that_it_was_kept,
    stores_an_unparsable_request_unchanged,
    stores_a_rejected_result_with_all_its_fields,
    stores_the_same_rejected_result_once_and_different_results_separately,
    stores_a_result_for_a_missing_step_without_a_plan,
    stores_results_for_terminal_plans,
    stores_invalid_results,
    stores_rejected_review_requests_and_progress_reports,
    stores_a_result_that_exceeds_the_nesting_limit_as_text,
    accepts_a_valid_result_after_a_rejected_one,
];

//! A result that is refused is kept, whatever the reason, and the refusal says where. The same one
//! submitted again is kept once.

use onward_core::id::{ArtifactId, ClaimToken};
use onward_core::{Code, PlanId, StepId};
use onward_engine::step::{Progress, Question};
use onward_engine::submit::Submission;
use onward_store::Artifact;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{error, result, result_without_token};

async fn artifacts(desk: &Desk, plan: PlanId) -> Vec<Artifact> {
    desk.engine
        .whole_plan(&desk.me, plan)
        .await
        .unwrap()
        .artifacts
}

async fn a_refused_result_is_kept_with_all_that_it_said(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    desk.hand_in(&step, "first").await;
    let mut late = result(&step, "second");
    late.result.data = Some(json!({ "sources": [1, 2] }));
    late.result.confidence = Some(0.25);
    late.result.report = Some(json!({ "tools": "many" }));
    late.result.formatting_notes = Some("short".to_owned());
    let refused = error(desk.submit(late).await);
    let kept = artifacts(desk, plan.id).await;
    assert_eq!(refused.kept(), Some(kept[0].id));
    assert_eq!((kept.len(), kept[0].kind.as_str()), (1, "late_result"));
    assert_eq!(
        (kept[0].plan, kept[0].step),
        (Some(plan.id), Some(step.step))
    );
    let content: Value = serde_json::from_str(&kept[0].content).unwrap();
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
        desk.trail(plan.id).await.last().unwrap(),
        "late_result_kept"
    );
}

async fn the_same_refused_result_is_kept_once_and_another_one_beside_it(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    desk.hand_in(&step, "first").await;
    let refuse = async |words: &str| error(desk.submit(result(&step, words)).await);
    let (one, again, other) = (refuse("a").await, refuse("a").await, refuse("b").await);
    assert_eq!(
        (one.kept(), one.to_string()),
        (again.kept(), again.to_string())
    );
    assert_ne!(one.kept(), other.kept());
    assert_eq!(artifacts(desk, plan.id).await.len(), 2);
    let trail = desk.trail(plan.id).await;
    assert_eq!(
        trail
            .iter()
            .filter(|name| *name == "late_result_kept")
            .count(),
        2
    );
}

async fn a_result_for_a_step_that_never_was_is_kept_without_a_plan(desk: &Desk) {
    let nowhere = StepId::from_u128(7);
    let refused = error(desk.submit(result_without_token(nowhere, "words")).await);
    assert_eq!(refused.code().as_str(), "step_not_found");
    let kept = refused.kept().expect("it is kept");
    let rows = desk.sql(&format!(
        "SELECT plan_id, step_id, content FROM artifacts WHERE tenant_id = '{}' AND artifact_id = {}",
        desk.me.tenant,
        desk.literal(kept)
    ));
    assert_eq!(rows.as_deref(), Ok(r#"||{"resultSummary":"words"}"#));
}

async fn results_for_plans_and_steps_that_are_over_are_kept(desk: &Desk) {
    let plan = desk.plan(2).await;
    let step = desk.take(plan.id).await;
    desk.engine
        .abandon_plan(&desk.me, plan.id, None)
        .await
        .unwrap();
    for submission in [
        result(&step, "late"),
        result_without_token(step.step, "later"),
        result_without_token(plan.steps[1], "never begun"),
    ] {
        let refused = error(desk.submit(submission).await);
        assert_eq!(refused.code().as_str(), "plan_is_terminal");
        assert!(refused.kept().is_some());
    }
    assert_eq!(artifacts(desk, plan.id).await.len(), 3);
}

async fn results_that_do_not_fit_are_kept_too(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    let mut confident = result(&step, "sure");
    confident.result.confidence = Some(1.5);
    let refused = error(desk.submit(confident).await);
    assert_eq!(refused.code().as_str(), "invalid_input");
    assert!(refused.kept().is_some());
    assert_eq!(desk.statuses(plan.id).await, ["in_progress"]);
}

async fn words_of_refused_questions_and_reports_are_kept(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    let token = || Some(ClaimToken::new("not mine"));
    let question = Question {
        step: step.step,
        summary: "Is it the Moon?".to_owned(),
        questions: vec!["Really?".to_owned()],
        token: token(),
        session: None,
    };
    let asked = error(desk.engine.request_review(&desk.me, question).await);
    let progress = Progress {
        step: step.step,
        note: Some("half way".to_owned()),
        percent: Some(50.0),
        token: token(),
        session: None,
    };
    let reported = error(
        desk.engine
            .report_progress(&desk.me, progress.clone())
            .await,
    );
    let silent = Progress {
        note: None,
        percent: None,
        ..progress
    };
    let said_nothing = error(desk.engine.report_progress(&desk.me, silent).await);
    assert_eq!(said_nothing.kept(), None);
    let kept: Vec<Artifact> = artifacts(desk, plan.id).await;
    let content = |id: Option<ArtifactId>| {
        let found = kept.iter().find(|artifact| Some(artifact.id) == id);
        found.expect("it is kept").content.clone()
    };
    assert!(content(asked.kept()).contains("Is it the Moon?"));
    assert!(content(asked.kept()).contains("Really?"));
    assert!(content(reported.kept()).contains("half way"));
}

async fn a_result_that_is_nested_too_deep_to_be_read_again_is_kept_as_text(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    let mut deep = result(&step, "deep");
    let nested = (0..120).fold(json!("bottom"), |inner, _| json!([inner]));
    deep.result.data = Some(json!({ "nested": nested }));
    let refused = error(desk.submit(deep).await);
    assert_eq!(refused.code().as_str(), "invalid_input");
    let kept = artifacts(desk, plan.id).await;
    assert_eq!(refused.kept(), Some(kept[0].id));
    assert!(kept[0].content.contains("bottom"));
    desk.hand_in(&step, "shallow").await;
}

async fn a_refused_result_stays_refused_and_the_next_one_is_accepted(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    let wrong = Submission {
        token: Some(ClaimToken::new("wrong")),
        ..result(&step, "right")
    };
    error(desk.submit(wrong).await);
    let submitted = desk.hand_in(&step, "right").await;
    assert_eq!(submitted.plan_status.as_str(), "completed");
}

async fn work_that_could_not_be_read_is_kept_as_it_came(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    let keep = async |step: &str, words: &str| {
        let work = json!({ "resultSummary": words, "confidence": "hi\u{0}gh" });
        let engine = &desk.engine;
        let kept = engine.keep_unread(&desk.me, step, work, Code::InvalidInput);
        kept.await.unwrap()
    };
    let named = step.step.to_string();
    let one = keep(&named, "a").await;
    assert_eq!(keep(&named, "a").await, one, "kept once");
    assert_ne!(keep(&named, "b").await, one);
    let kept = artifacts(desk, plan.id).await;
    assert_eq!(kept.len(), 2);
    let found = kept.iter().find(|artifact| artifact.id == one).unwrap();
    assert_eq!(found.step, Some(step.step));
    let content: Value = serde_json::from_str(&found.content).unwrap();
    let as_it_came = json!({ "resultSummary": "a", "confidence": "hi\u{fffd}gh" });
    assert_eq!(content, as_it_came);
    assert_eq!(
        desk.trail(plan.id).await.last().unwrap(),
        "late_result_kept"
    );
    // For a step that is none it belongs to no plan, and each name has its own.
    let (nowhere, elsewhere) = (
        keep("nowhere", "a").await,
        keep("else\u{0}where", "a").await,
    );
    assert_ne!(nowhere, elsewhere);
    assert_eq!(artifacts(desk, plan.id).await.len(), 2);
    // The step is as it was.
    desk.hand_in(&step, "a").await;
}

on_both_databases![
    work_that_could_not_be_read_is_kept_as_it_came,
    a_refused_result_is_kept_with_all_that_it_said,
    the_same_refused_result_is_kept_once_and_another_one_beside_it,
    a_result_for_a_step_that_never_was_is_kept_without_a_plan,
    results_for_plans_and_steps_that_are_over_are_kept,
    results_that_do_not_fit_are_kept_too,
    words_of_refused_questions_and_reports_are_kept,
    a_result_that_is_nested_too_deep_to_be_read_again_is_kept_as_text,
    a_refused_result_stays_refused_and_the_next_one_is_accepted,
];

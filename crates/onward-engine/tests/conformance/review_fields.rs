//! Typed questions of a review: stored, exported, and answered with data of the result.

use onward_core::Json;
use onward_core::event::Decision;
use onward_core::step::{FieldKind, FieldOption, ReviewField, ReviewOptions, ReviewScope};
use onward_engine::next_step::AssignedStep;
use onward_engine::step::{OpenedReview, ReviewDecision, ReviewRequest};
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, document};

fn fields() -> Vec<ReviewField> {
    let option = |value: &str, title: Option<&str>| FieldOption {
        value: value.to_owned(),
        title: title.map(str::to_owned),
    };
    vec![
        ReviewField {
            name: "colour".to_owned(),
            title: Some("Which <colour>?".to_owned()),
            kind: FieldKind::Choice,
            options: vec![option("red", Some("Red one")), option("blue", None)],
            default: Some(json!("red").into()),
        },
        ReviewField {
            name: "count".to_owned(),
            title: None,
            kind: FieldKind::Number,
            options: Vec::new(),
            default: None,
        },
    ]
}

async fn request(harness: &Harness, step: &AssignedStep) -> OpenedReview {
    let request = ReviewRequest {
        step: step.step,
        summary: "It is the Moon.".to_owned(),
        questions: Vec::new(),
        scope: ReviewScope::Step,
        options: ReviewOptions {
            fields: fields(),
            ..ReviewOptions::default()
        },
        token: None,
        session: None,
    };
    let opened = harness.engine.request_review(&harness.me, request).await;
    opened.expect("review was requested")
}

fn approval(step: &AssignedStep, answers: &Value) -> ReviewDecision {
    ReviewDecision {
        answers: answers.as_object().cloned().unwrap_or_default(),
        ..ReviewDecision::new(step.step, Decision::Approve, None)
    }
}

async fn answers_are_stored_with_the_result(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    request(harness, &step).await;
    let engine = &harness.engine;
    let open = engine.open_reviews(&harness.me, 10).await.unwrap();
    assert_eq!(open[0].review.options.fields, fields());
    let missing = engine.decide_review(&harness.me, approval(&step, &json!({})));
    assert_eq!(code(missing.await), "invalid_input");
    let decision = approval(&step, &json!({ "count": 3 }));
    let decided = engine.decide_review(&harness.me, decision.clone()).await;
    let decided = decided.unwrap();
    let repeated = engine.decide_review(&harness.me, decision).await;
    assert_eq!(repeated.unwrap(), decided);
    let result = harness.step_result(plan.id, 0).await;
    let answers = json!({ "colour": "red", "count": 3 });
    let data = result.data.as_ref().and_then(Json::parse);
    assert_eq!(data, Some(json!({ "review": { "answers": answers } })));
}

async fn questions_survive_an_export_and_import(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = harness.claim(plan.id).await;
    request(harness, &step).await;
    let exported = document(&harness.engine, &harness.me, plan.id).await;
    let engine = &harness.engine;
    engine.delete_plan(&harness.me, plan.id).await.unwrap();
    engine.import(&harness.me, &exported).await.unwrap();
    let imported = document(engine, &harness.me, plan.id).await;
    assert_eq!(imported, exported);
    let decision = approval(&step, &json!({ "count": 1.5, "colour": "blue" }));
    engine.decide_review(&harness.me, decision).await.unwrap();
    let decided = document(engine, &harness.me, plan.id).await;
    engine.delete_plan(&harness.me, plan.id).await.unwrap();
    engine.import(&harness.me, &decided).await.unwrap();
    assert_eq!(document(engine, &harness.me, plan.id).await, decided);
}

on_both_databases![
    answers_are_stored_with_the_result,
    questions_survive_an_export_and_import,
];

//! Typed questions of a review: stored, exported, and answered with data of the result.

use onward_core::Json;
use onward_core::event::Decision;
use onward_core::step::{FieldKind, FieldOption, ReviewField, ReviewOptions, ReviewScope};
use onward_engine::next_step::{AssignedStep, StepDecision};
use onward_engine::step::{OpenedReview, ReviewDecision, ReviewRequest};
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{claimed_step, code, document, submission_for};

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
    assert_eq!(result.summary, "It is the Moon.\n→ colour: red\n→ count: 3");
}

/// The decision on the step before: order, word, answers and feedback.
fn decision(decision: Option<&StepDecision>) -> Option<(u32, Decision, Value, Option<&str>)> {
    let StepDecision { order, decided, .. } = decision?;
    let answers = decided.answers.as_ref().and_then(Json::parse);
    Some((
        *order,
        decided.decision,
        answers.unwrap_or_default(),
        decided.remark(),
    ))
}

async fn the_agent_that_continues_receives_the_answers(harness: &Harness) {
    let plan = harness.plan(4).await;
    let first = harness.claim(plan.id).await;
    assert_eq!(first.surroundings.decision, None);
    request(harness, &first).await;
    let approve = approval(&first, &json!({ "count": 3 }));
    let engine = &harness.engine;
    engine.decide_review(&harness.me, approve).await.unwrap();
    let second = harness.claim(plan.id).await;
    let answers = json!({ "colour": "red", "count": 3 });
    let expected = Some((1, Decision::Approve, answers, None));
    assert_eq!(decision(second.surroundings.decision.as_ref()), expected);
    assert_eq!(second.surroundings.feedback, [""; 0]);
    let context = engine.step_context(&harness.me, second.step, None).await;
    assert_eq!(
        context.unwrap().decision,
        second.surroundings.decision,
        "the rows and the plan in memory agree"
    );
    request(harness, &second).await;
    let modify = ReviewDecision {
        decision: Decision::Modify,
        feedback: Some("Count again.".to_owned()),
        ..approval(&second, &json!({ "count": 4 }))
    };
    engine.decide_review(&harness.me, modify).await.unwrap();
    let again = harness.claim(plan.id).await;
    assert_eq!(again.step, second.step);
    let expected = (
        2,
        Decision::Modify,
        json!({ "count": 4 }),
        Some("Count again."),
    );
    let received = decision(again.surroundings.decision.as_ref());
    assert_eq!(received, Some(expected));
    let context = engine.step_context(&harness.me, again.step, None).await;
    assert_eq!(context.unwrap().decision, again.surroundings.decision);
    request(harness, &again).await;
    let skip = ReviewDecision::new(again.step, Decision::Skip, None);
    engine.decide_review(&harness.me, skip).await.unwrap();
    let third = harness.claim(plan.id).await;
    let expected = (2, Decision::Skip, Value::Null, None);
    assert_eq!(
        decision(third.surroundings.decision.as_ref()),
        Some(expected)
    );
    let mut submission = submission_for(&third, "done");
    submission.claim_next = true;
    let submitted = harness.submit(submission.clone()).await.unwrap();
    let repeated = harness.submit(submission).await.unwrap();
    assert_eq!(repeated, submitted);
    let fourth = claimed_step(submitted.next_step.unwrap());
    assert_eq!(fourth.surroundings.decision, None);
}

async fn a_dependent_step_receives_the_answers_of_its_dependency(harness: &Harness) {
    let mut draft = harness.draft(3);
    draft.steps[2].depends_on = vec![1];
    let plan = harness.create(draft).await;
    let first = harness.claim(plan.id).await;
    request(harness, &first).await;
    let approve = approval(&first, &json!({ "count": 3 }));
    harness
        .engine
        .decide_review(&harness.me, approve)
        .await
        .unwrap();
    let second = harness.claim(plan.id).await;
    let plain = ReviewDecision::new(second.step, Decision::Approve, None);
    harness.request_review(&second).await.unwrap();
    harness
        .engine
        .decide_review(&harness.me, plain)
        .await
        .unwrap();
    let third = harness.claim(plan.id).await;
    let received = third.surroundings.decision.expect("a decision");
    assert_eq!((received.step, received.order), (first.step, 1));
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
    the_agent_that_continues_receives_the_answers,
    a_dependent_step_receives_the_answers_of_its_dependency,
    questions_survive_an_export_and_import,
];

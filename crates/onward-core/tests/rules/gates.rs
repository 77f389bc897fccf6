//! Gates of a step: result schema, acceptance criteria with evidence, and required reviews.

use std::sync::Arc;

use onward_core::command::{DecideReview, Reviewer, SubmitResult};
use onward_core::event::Decision;
use onward_core::policy::{MAX_CRITERIA, MAX_RESULT_SCHEMA_BYTES, MAX_SCHEMA_BYTES_PER_COMMAND};
use onward_core::step::{Evidence, EvidenceKind, Gates, ReviewBy, StepResult, StepState};
use onward_core::{Code, Command, PlanStatus, Refusal, StepStatus};
use serde_json::{Value, json};

use crate::harness::{Harness, create_plan, decision, id, result, session};

/// A plan of two steps; the first has these gates.
fn gated(gates: Gates) -> Harness {
    let mut command = create_plan(2);
    command.steps[0].gates = Some(Arc::new(gates));
    Harness::new(command)
}

fn schema(schema: Value) -> Gates {
    Gates {
        result_schema: Some(schema.into()),
        ..Gates::default()
    }
}

fn criteria(texts: &[&str]) -> Gates {
    Gates {
        acceptance_criteria: texts.iter().map(|text| (*text).to_owned()).collect(),
        ..Gates::default()
    }
}

fn reviewed_by(by: ReviewBy) -> Gates {
    Gates {
        review_by: Some(by),
        ..Gates::default()
    }
}

fn evidence(criterion: &str) -> Evidence {
    Evidence {
        criterion: criterion.to_owned(),
        kind: EvidenceKind::Command,
        value: "cargo test".to_owned(),
        outcome: "412 passed".to_owned(),
    }
}

fn with_data(data: Value) -> Arc<StepResult> {
    Arc::new(StepResult {
        data: Some(data.into()),
        ..StepResult::from_summary("test result")
    })
}

fn with_evidence(criteria: &[&str]) -> Arc<StepResult> {
    Arc::new(StepResult {
        evidence: criteria.iter().map(|text| evidence(text)).collect(),
        ..StepResult::from_summary("test result")
    })
}

/// The paths of the issues of a rejected command.
fn paths(harness: &mut Harness, command: &Command) -> Vec<String> {
    let refusal = harness.expect_rejection(command);
    let Refusal::InvalidInput(issues) = refusal else {
        panic!("{refusal:?}")
    };
    issues.into_iter().map(|issue| issue.path).collect()
}

/// The paths of the issues of a plan with these gates.
fn creation_paths(gates: Gates) -> Vec<String> {
    let mut command = create_plan(1);
    command.steps[0].gates = Some(Arc::new(gates));
    match onward_core::decide::create::decide(&command) {
        Ok(_) => Vec::new(),
        Err(Refusal::InvalidInput(issues)) => issues.into_iter().map(|issue| issue.path).collect(),
        Err(other) => panic!("{other:?}"),
    }
}

fn decide_as(reviewer: &Reviewer, session_name: Option<&str>) -> Command {
    let Command::DecideReview(command) = decision(1, Decision::Approve, None) else {
        panic!("not a decision")
    };
    Command::DecideReview(DecideReview {
        reviewer: reviewer.clone(),
        session: session_name.map(session),
        ..command
    })
}

const AGENT: Reviewer = Reviewer::Agent { permitted: true };
const UNPERMITTED: Reviewer = Reviewer::Agent { permitted: false };

#[test]
fn rejects_a_result_that_does_not_match_the_schema_with_the_paths() {
    let moon = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let mut harness = gated(schema(json!({
        "type": "object",
        "properties": { "moons": { "type": "array", "items": moon } },
        "required": ["moons"],
    })))
    .started();
    let missing = harness.submit(1, None);
    assert_eq!(paths(&mut harness, &missing), ["result"]);
    assert!(missing.late_result().is_some());
    let invalid = with_data(json!({ "moons": [{ "name": "Io" }, { "name": 1 }] }));
    let invalid = harness.submit_result(1, None, &invalid);
    assert_eq!(paths(&mut harness, &invalid), ["result.moons[1].name"]);
    let valid = with_data(json!({ "moons": [{ "name": "Io" }] }));
    let valid = harness.submit_result(1, None, &valid);
    assert_eq!(harness.run(&valid), ["step_completed"]);
}

#[test]
fn rejects_a_schema_that_cannot_be_compiled() {
    for invalid in [
        json!([]),
        json!("string"),
        json!({ "type": "moon" }),
        json!({ "$ref": "https://example.org/a.json" }),
        json!({ "$ref": "#" }),
        json!({ "title": "x".repeat(MAX_RESULT_SCHEMA_BYTES) }),
    ] {
        assert_eq!(creation_paths(schema(invalid)), ["steps[0].resultSchema"]);
    }
    assert!(creation_paths(schema(json!({ "type": "object" }))).is_empty());
}

#[test]
fn limits_the_schemas_of_one_command() {
    let large = json!({ "title": "x".repeat(MAX_RESULT_SCHEMA_BYTES - 100) });
    let most = u32::try_from(MAX_SCHEMA_BYTES_PER_COMMAND / MAX_RESULT_SCHEMA_BYTES).unwrap();
    let with_schemas = |count: u32| {
        let mut command = create_plan(count);
        for step in &mut command.steps {
            step.gates = Some(Arc::new(schema(large.clone())));
        }
        onward_core::decide::create::decide(&command)
    };
    assert!(with_schemas(most).is_ok());
    let refusal = with_schemas(most + 1).unwrap_err();
    assert_eq!(refusal.code(), Code::InvalidInput);
}

#[test]
fn rejects_a_result_without_evidence_for_each_criterion() {
    let mut harness = gated(criteria(&["The tests pass.", "The text is short."])).started();
    let none = harness.submit(1, None);
    assert_eq!(paths(&mut harness, &none), ["evidence", "evidence"]);
    let one = harness.submit_result(1, None, &with_evidence(&["2"]));
    assert_eq!(paths(&mut harness, &one), ["evidence"]);
    let unknown = harness.submit_result(1, None, &with_evidence(&["1", "2", "3"]));
    assert_eq!(paths(&mut harness, &unknown), ["evidence[2].criterion"]);
    let blank = Evidence {
        value: " ".to_owned(),
        outcome: String::new(),
        ..evidence("1")
    };
    let blank = Arc::new(StepResult {
        evidence: vec![blank, evidence("2")],
        ..StepResult::from_summary("test result")
    });
    let blank = harness.submit_result(1, None, &blank);
    assert_eq!(
        paths(&mut harness, &blank),
        ["evidence[0].value", "evidence[0].outcome"]
    );
    let all = harness.submit_result(1, None, &with_evidence(&["1", "The text is short."]));
    assert_eq!(harness.run(&all), ["step_completed"]);
}

#[test]
fn stores_the_text_of_a_criterion_that_was_sent_as_a_number() {
    let mut harness = gated(criteria(&["The tests pass."])).started();
    let submit = harness.submit_result(1, None, &with_evidence(&["1"]));
    harness.run(&submit);
    let StepState::Completed { result, .. } = &harness.plan.step(id(1)).unwrap().state else {
        panic!("step is not completed")
    };
    assert_eq!(result.evidence, [evidence("The tests pass.")]);
    assert!(
        harness.run(&submit).is_empty(),
        "a repetition changes nothing"
    );
}

#[test]
fn accepts_evidence_for_a_step_without_criteria() {
    let mut harness = Harness::with_steps(1).started();
    let submit = harness.submit_result(1, None, &with_evidence(&["It works."]));
    assert_eq!(harness.run(&submit), ["step_completed", "plan_completed"]);
}

#[test]
fn rejects_invalid_criteria() {
    let many = vec!["x"; MAX_CRITERIA + 1];
    let paths = creation_paths(criteria(&many));
    assert_eq!(
        paths.first().map(String::as_str),
        Some("steps[0].acceptanceCriteria")
    );
    assert_eq!(
        creation_paths(criteria(&["a", " ", "a"])),
        [
            "steps[0].acceptanceCriteria[1]",
            "steps[0].acceptanceCriteria[2]"
        ]
    );
}

#[test]
fn a_result_that_requires_a_review_does_not_complete_the_step() {
    let mut harness = gated(reviewed_by(ReviewBy::Person)).started();
    let submitted = with_data(json!({ "n": 7 }));
    let submit = harness.submit_result(1, None, &submitted);
    let events = harness.execute(&submit).unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].action(), Some("review_requested"));
    assert_eq!(harness.step_statuses()[0], StepStatus::AwaitingInput);
    assert_eq!(harness.status(), PlanStatus::Executing);
    assert!(
        harness.run(&submit).is_empty(),
        "a repetition changes nothing"
    );
    let different = harness.submit_result(1, None, &result("another result"));
    assert_eq!(harness.rejection_code(&different), Code::IllegalTransition);
    assert_eq!(harness.claim_next().unwrap().0, 2, "the plan continues");

    harness.run(&decision(1, Decision::Approve, None));
    let StepState::Completed { result, .. } = &harness.plan.step(id(1)).unwrap().state else {
        panic!("step is not completed")
    };
    assert_eq!(*result, submitted, "the whole result is approved");
    assert!(
        harness.run(&submit).is_empty(),
        "a repetition changes nothing"
    );
}

#[test]
fn a_result_without_a_claim_is_claimed_and_submitted_for_review() {
    let mut harness = gated(reviewed_by(ReviewBy::Person));
    let submit = harness.submit(1, None);
    assert_eq!(
        harness.run(&submit),
        ["step_started", "plan_status_changed", "user_reviewed"]
    );
}

#[test]
fn a_result_for_a_stalled_plan_resumes_it_and_waits_for_its_review() {
    let mut harness = gated(reviewed_by(ReviewBy::Person)).stalled();
    let submit = harness.submit(1, None);
    assert_eq!(harness.run(&submit), ["plan_resumed", "user_reviewed"]);
    assert_eq!(harness.status(), PlanStatus::Executing);
}

#[test]
fn a_modified_result_is_reviewed_again() {
    let mut harness = gated(reviewed_by(ReviewBy::Person)).started();
    let submit = harness.submit(1, None);
    harness.run(&submit);
    harness.run(&decision(1, Decision::Modify, Some("shorter")));
    assert_eq!(harness.step_statuses()[0], StepStatus::InProgress);
    assert_eq!(harness.run(&submit), ["step_progressed", "user_reviewed"]);
}

#[test]
fn an_agent_cannot_decide_a_review_by_a_person() {
    let mut harness = gated(reviewed_by(ReviewBy::Person));
    harness.claim_next_for(Some("worker"), false).unwrap();
    let submit = harness.submit(1, None);
    harness.run(&submit);
    for reviewer in [AGENT, UNPERMITTED] {
        for name in [None, Some("worker"), Some("other")] {
            let refusal = harness.expect_rejection(&decide_as(&reviewer, name));
            assert_eq!(refusal, Refusal::NotReviewer(ReviewBy::Person));
            assert_eq!(refusal.code(), Code::Forbidden);
        }
    }
    harness.run(&decide_as(&Reviewer::Person, None));
}

#[test]
fn another_session_decides_a_review_by_another_session() {
    for reviewer in [AGENT, UNPERMITTED] {
        let mut harness = gated(reviewed_by(ReviewBy::OtherSession));
        let (_, claim) = harness.claim_next_for(Some("worker"), false).unwrap();
        let submit = match harness.submit(1, Some(&claim.token)) {
            Command::SubmitResult(submit) => Command::SubmitResult(SubmitResult {
                session: Some(session("helper")),
                ..submit
            }),
            other => other,
        };
        harness.run(&submit);
        // The sessions that did the work, and callers that cannot be distinguished from them.
        let with_token =
            crate::harness::with_token(decide_as(&reviewer, Some("other")), Some(&claim.token));
        let refused = [
            decide_as(&reviewer, None),
            decide_as(&reviewer, Some("worker")),
            decide_as(&reviewer, Some("helper")),
            with_token,
        ];
        for command in refused {
            let refusal = harness.expect_rejection(&command);
            assert_eq!(refusal, Refusal::NotReviewer(ReviewBy::OtherSession));
        }
        harness.run(&decide_as(&reviewer, Some("other")));
        assert_eq!(harness.step_statuses()[0], StepStatus::Completed);
    }
}

#[test]
fn an_agent_cannot_review_the_work_of_an_unknown_session() {
    let mut harness = gated(reviewed_by(ReviewBy::OtherSession)).started();
    let submit = harness.submit(1, None);
    harness.run(&submit);
    let refusal = harness.expect_rejection(&decide_as(&AGENT, Some("other")));
    assert_eq!(refusal, Refusal::NotReviewer(ReviewBy::OtherSession));
}

#[test]
fn only_a_person_approves_a_gated_step_without_a_result() {
    let mut harness = gated(criteria(&["The tests pass."])).started();
    let request = harness.request_review(1, None);
    harness.run(&request);
    let refusal = harness.expect_rejection(&decide_as(&AGENT, Some("other")));
    assert_eq!(refusal, Refusal::NotReviewer(ReviewBy::Person));
    harness.run(&decide_as(&Reviewer::Person, None));
}

#[test]
fn an_agent_decides_other_reviews_only_with_the_permission() {
    let mut harness = Harness::with_steps(2).in_review();
    let code = harness.rejection_code(&decide_as(&UNPERMITTED, Some("other")));
    assert_eq!(code, Code::Forbidden);
    harness.run(&decide_as(&AGENT, None));
}

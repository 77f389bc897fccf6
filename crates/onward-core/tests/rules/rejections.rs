//! Rejected commands: stable codes, the fields of `Refusal`, and hints that name the next call.

use std::collections::BTreeSet;
use std::sync::Arc;

use onward_core::event::Decision;
use onward_core::plan::{IllegalPlanTransition, PlanCause};
use onward_core::step::{IllegalStepTransition, StepCause, StepResult};
use onward_core::{Code, PlanStatus, Refusal, StepStatus};
use serde_json::json;

use crate::harness::{Harness, abandon, decision, id};

#[test]
fn codes_are_distinct_and_snake_case() {
    let codes: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(codes.len(), Code::ALL.len());
    for code in codes {
        let snake = code.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        assert!(snake || code == "INVALID_STEP_REFERENCE", "{code}");
    }
}

#[test]
fn an_illegal_transition_reports_status_cause_and_hint() {
    let mut harness = Harness::with_steps(1).started();
    let refusal = harness.expect_rejection(&decision(1, Decision::Approve, None));
    let expected = IllegalStepTransition {
        from: StepStatus::InProgress,
        cause: StepCause::Approve,
    };
    assert_eq!(refusal, Refusal::IllegalStepTransition(expected));
    let mut harness = Harness::with_steps(1).stalled();
    let command = harness.request_review(1, None);
    let refusal = harness.expect_rejection(&command);
    let expected = IllegalPlanTransition {
        from: PlanStatus::Stalled,
        cause: PlanCause::RequestReview,
    };
    assert_eq!(refusal, Refusal::IllegalPlanTransition(expected));
    for call in ["{get_next_step}", "{report_step_progress}"] {
        assert!(refusal.hint().contains(call), "{}", refusal.hint());
    }
}

#[test]
fn rejects_commands_on_a_terminal_plan() {
    let mut harness = Harness::with_steps(1).started().abandoned();
    for command in [
        harness.submit(1, None),
        harness.report(1, None),
        harness.request_review(1, None),
        abandon(),
    ] {
        let refusal = harness.expect_rejection(&command);
        assert_eq!(refusal, Refusal::PlanIsTerminal(PlanStatus::Failed));
        assert_eq!(refusal.code(), Code::PlanIsTerminal);
    }
}

#[test]
fn rejects_an_invalid_result_with_all_invalid_fields() {
    let mut harness = Harness::with_steps(1).started();
    let result = StepResult {
        summary: String::new(),
        data: Some(json!([1]).into()),
        confidence: Some(1.5),
        report: Some(json!({ "log": "x".repeat(1024 * 1024) }).into()),
        formatting_notes: None,
        evidence: Vec::new(),
    };
    let command = harness.submit_result(1, None, &Arc::new(result));
    let refusal = harness.expect_rejection(&command);
    let Refusal::InvalidInput(issues) = refusal else {
        panic!("{refusal:?}")
    };
    let paths: Vec<&str> = issues.iter().map(|issue| issue.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "resultSummary",
            "result",
            "stepExecutionReport",
            "confidence"
        ]
    );
    assert!(command.late_result().is_some());
}

#[test]
fn accepts_a_result_of_exactly_one_mebibyte() {
    let mut harness = Harness::with_steps(1).started();
    let padding = 1024 * 1024 - r#"{"log":""}"#.len();
    let data = Some(json!({ "log": "x".repeat(padding) }));
    let result = StepResult {
        data: data.map(Into::into),
        confidence: Some(1.0),
        ..StepResult::from_summary("large result")
    };
    let command = harness.submit_result(1, None, &Arc::new(result));
    assert_eq!(harness.run(&command), ["step_completed", "plan_completed"]);
}

#[test]
fn rejects_an_unknown_step() {
    let mut harness = Harness::with_steps(1);
    let command = harness.submit(7, None);
    assert_eq!(
        harness.expect_rejection(&command),
        Refusal::StepNotFound(id(7))
    );
}

#[test]
fn messages_and_hints_are_lower_case_without_full_stop() {
    let mut harness = Harness::with_steps(1).in_review();
    let command = harness.submit(1, None);
    let refusals = [
        harness.expect_rejection(&command),
        harness.expect_rejection(&decision(1, Decision::Modify, None)),
        Refusal::LimitExceeded {
            what: "steps",
            limit: 10,
            actual: 11,
        },
        Refusal::InvalidInput(Vec::new()),
    ];
    for refusal in refusals {
        for text in [refusal.to_string(), refusal.hint().to_owned()] {
            assert!(!text.ends_with('.'), "{text}");
            assert!(
                text.starts_with(|c: char| c == '`' || c.is_lowercase() || c.is_ascii_digit()),
                "{text}"
            );
        }
    }
}

//! Refusals: stable codes, sentences that say what is wrong, hints that name a call.

use std::collections::BTreeSet;
use std::sync::Arc;

use onward_core::event::Decision;
use onward_core::step::StepResult;
use onward_core::{Code, Refusal};
use serde_json::json;

use crate::desk::{Desk, abandon, decision, id};

#[test]
fn every_code_has_a_word_of_its_own() {
    let words: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(words.len(), Code::ALL.len());
    for word in words {
        let snake = word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        assert!(snake || word == "INVALID_STEP_REFERENCE", "{word}");
    }
}

#[test]
fn an_illegal_move_names_the_state_and_what_was_asked() {
    let mut desk = Desk::with(1).started();
    let refusal = desk.refuses(&decision(1, Decision::Approve, None));
    assert_eq!(
        refusal.to_string(),
        "a step that is `in_progress` has no open review to decide"
    );
    let mut desk = Desk::with(1).stalled();
    let command = desk.request_review(1, None);
    let refusal = desk.refuses(&command);
    assert_eq!(
        refusal.to_string(),
        "a plan that is `stalled` cannot be put up for review"
    );
    assert_eq!(
        refusal.hint(),
        "`get_next_step` or `report_step_progress` resumes the plan"
    );
}

#[test]
fn what_is_asked_of_a_plan_that_is_over_is_refused_as_such() {
    let mut desk = Desk::with(1).started().abandoned();
    for command in [
        desk.submit(1, None),
        desk.report(1, None),
        desk.request_review(1, None),
        abandon(),
    ] {
        let refusal = desk.refuses(&command);
        assert_eq!(refusal.code(), Code::PlanIsTerminal);
        assert_eq!(
            refusal.to_string(),
            "the plan is `failed`, and takes no more changes"
        );
    }
}

#[test]
fn a_result_that_does_not_fit_is_refused_field_by_field() {
    let mut desk = Desk::with(1).started();
    let result = StepResult {
        summary: String::new(),
        data: Some(json!([1])),
        confidence: Some(1.5),
        report: Some(json!({ "log": "x".repeat(1024 * 1024) })),
        formatting_notes: None,
    };
    let command = desk.submit_result(1, None, &Arc::new(result));
    let Refusal::InvalidInput(issues) = desk.refuses(&command) else {
        panic!("not invalid")
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
fn a_result_of_exactly_a_mebibyte_fits() {
    let mut desk = Desk::with(1).started();
    let padding = 1024 * 1024 - r#"{"log":""}"#.len();
    let data = Some(json!({ "log": "x".repeat(padding) }));
    let result = StepResult {
        data,
        confidence: Some(1.0),
        ..StepResult::of_summary("big")
    };
    let command = desk.submit_result(1, None, &Arc::new(result));
    assert_eq!(desk.does(&command), ["step_completed", "plan_completed"]);
}

#[test]
fn an_unknown_step_is_not_found() {
    let mut desk = Desk::with(1);
    let command = desk.submit(7, None);
    assert_eq!(desk.refuses(&command), Refusal::StepNotFound(id(7)));
}

#[test]
fn sentences_are_lower_case_and_have_no_full_stop() {
    let mut desk = Desk::with(1).in_review();
    let command = desk.submit(1, None);
    let refusals = [
        desk.refuses(&command),
        desk.refuses(&decision(1, Decision::Modify, None)),
        Refusal::LimitExceeded {
            what: "steps",
            limit: 10,
            asked: 11,
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

//! Typed questions of a review, and their answers.

use onward_core::command::{ActionSpec, DecideReview, RequestReview};
use onward_core::event::{Decided, Decision};
use onward_core::policy::{MAX_REMARK, MAX_SUMMARY};
use onward_core::step::{
    FieldKind, FieldOption, ReviewField, ReviewOptions, StepResult, StepState,
};
use onward_core::{Code, Command, Event, Json, Refusal, StepStatus};
use serde_json::{Value, json};

use crate::harness::{Harness, branch, create_plan, decision, id};

fn field(name: &str, kind: FieldKind) -> ReviewField {
    let option = |value: &str| FieldOption {
        value: value.to_owned(),
        title: Some(value.to_uppercase()),
    };
    ReviewField {
        name: name.to_owned(),
        title: None,
        kind,
        options: if kind.has_options() {
            vec![option("red"), option("blue")]
        } else {
            Vec::new()
        },
        default: None,
    }
}

fn all_kinds() -> Vec<ReviewField> {
    FieldKind::ALL
        .map(|kind| field(kind.as_str(), kind))
        .to_vec()
}

fn request(harness: &Harness, fields: Vec<ReviewField>) -> Command {
    let Command::RequestReview(request) = harness.request_review(1, None) else {
        panic!("not a request")
    };
    Command::RequestReview(RequestReview {
        options: ReviewOptions {
            fields,
            ..ReviewOptions::default()
        },
        ..request
    })
}

fn decide(choice: Decision, answers: &Value) -> Command {
    let Command::DecideReview(command) = decision(1, choice, Some("test feedback")) else {
        panic!("not a decision")
    };
    Command::DecideReview(DecideReview {
        answers: answers.as_object().cloned().unwrap_or_default(),
        ..command
    })
}

/// A plan whose first step is under review with these questions.
fn asking(fields: Vec<ReviewField>) -> Harness {
    let mut command = create_plan(3);
    let target = ActionSpec::SkipTo(onward_core::id::StepRef::Order(3));
    let condition = "result.review.answers.choice == \"blue\"";
    command.branches = vec![branch(1, 1, condition, target)];
    let mut harness = Harness::new(command).started();
    let request = request(&harness, fields);
    harness.run(&request);
    harness
}

fn issue_paths(refusal: Refusal) -> Vec<String> {
    let Refusal::InvalidInput(issues) = refusal else {
        panic!("{refusal}")
    };
    issues.into_iter().map(|issue| issue.path).collect()
}

/// The first step's result.
fn result(harness: &Harness) -> &StepResult {
    let step = harness.plan.step(id(1)).unwrap();
    let StepState::Completed { result, .. } = &step.state else {
        panic!("{step:?}")
    };
    result
}

/// The data of the first step's result.
fn data(harness: &Harness) -> Value {
    let data = result(harness).data.as_ref();
    data.and_then(Json::parse).unwrap()
}

fn valid() -> Value {
    json!({
        "text": "fine", "number": 2.5, "boolean": false, "choice": "blue",
        "choices": ["blue", "red"],
    })
}

#[test]
fn answers_become_data_of_the_result_which_conditions_read() {
    let mut harness = asking(all_kinds());
    harness.run(&decide(Decision::Approve, &valid()));
    assert_eq!(data(&harness), json!({ "review": { "answers": valid() } }));
    assert_eq!(harness.step_statuses()[1], StepStatus::Skipped);
    let repeated = decide(Decision::Approve, &valid());
    assert!(harness.run(&repeated).is_empty());
    let other = decide(Decision::Approve, &json!({ "text": "other" }));
    assert_eq!(harness.rejection_code(&other), Code::IllegalTransition);
}

/// The summary of the review in the plan of these tests.
fn summary(harness: &Harness) -> String {
    let Command::RequestReview(request) = harness.request_review(1, None) else {
        panic!("not a request")
    };
    request.summary
}

#[test]
fn the_text_of_the_result_has_the_answers_after_the_summary() {
    let mut harness = asking(all_kinds());
    harness.run(&decide(Decision::Approve, &valid()));
    let text = result(&harness).summary.clone();
    let lines = text.strip_prefix(&summary(&harness)).unwrap();
    let mut lines: Vec<&str> = lines.trim_start().lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "→ boolean: false",
            "→ choice: blue",
            "→ choices: blue, red",
            "→ number: 2.5",
            "→ text: fine",
        ]
    );
}

#[test]
fn the_text_of_the_result_stays_within_its_limit() {
    let names = ["one", "three", "two"];
    let fields = names.map(|name| field(name, FieldKind::Text)).to_vec();
    let mut harness = asking(fields);
    let long = "x".repeat(MAX_REMARK);
    let answers = json!({ "one": long, "two": long, "three": long });
    harness.run(&decide(Decision::Approve, &answers));
    let text = &result(&harness).summary;
    assert_eq!(text.chars().count(), MAX_SUMMARY);
    assert!(text.ends_with('…'));
    assert_eq!(data(&harness)["review"]["answers"], answers);
}

#[test]
fn the_feedback_of_a_decision_is_distinguished_from_its_answers() {
    for (choice, feedback) in [
        (Decision::Approve, Some("test feedback")),
        (Decision::Modify, Some("test feedback")),
        (Decision::Modify, None),
    ] {
        let mut harness = asking(all_kinds());
        let Command::DecideReview(mut command) = decide(choice, &valid()) else {
            panic!("not a decision")
        };
        command.feedback = feedback.map(str::to_owned);
        let events = harness.execute(&Command::DecideReview(command)).unwrap();
        let decided = events.iter().find_map(|event| match event {
            Event::UserReviewed { review, action, .. } => Decided::from_action(*review, action),
            _ => None,
        });
        let decided = decided.expect("the review is decided");
        assert_eq!(decided.remark(), feedback);
        assert_eq!(
            decided.answers.as_ref().and_then(Json::parse),
            Some(valid())
        );
    }
}

#[test]
fn an_unanswered_question_gets_its_default_or_is_required() {
    let mut with_default = field("number", FieldKind::Number);
    with_default.default = Some(json!(3).into());
    let mut harness = asking(vec![with_default, field("text", FieldKind::Text)]);
    let missing = harness.expect_rejection(&decide(Decision::Approve, &json!({})));
    assert_eq!(issue_paths(missing), ["answers.text"]);
    harness.run(&decide(Decision::Approve, &json!({ "text": "fine" })));
    let answers = json!({ "number": 3, "text": "fine" });
    assert_eq!(data(&harness), json!({ "review": { "answers": answers } }));
    let repeated = decide(Decision::Approve, &json!({ "text": "fine" }));
    assert!(harness.run(&repeated).is_empty());
}

#[test]
fn rejects_answers_of_another_type_with_their_paths() {
    let mut harness = asking(all_kinds());
    for (name, answer) in [
        ("text", json!(1)),
        ("text", json!("x".repeat(10_001))),
        ("number", json!("1")),
        ("boolean", json!("true")),
        ("choice", json!("green")),
        ("choice", json!(["red"])),
        ("choices", json!("red")),
        ("choices", json!(["red", "green"])),
        ("choices", json!(["red", "red"])),
        ("unknown", json!(1)),
    ] {
        let mut answers = valid();
        answers[name] = answer;
        for choice in [Decision::Approve, Decision::Skip] {
            let refusal = harness.expect_rejection(&decide(choice, &answers));
            assert_eq!(issue_paths(refusal), [format!("answers.{name}")]);
        }
    }
}

#[test]
fn other_decisions_require_no_answers() {
    for choice in [Decision::Reject, Decision::Skip, Decision::Modify] {
        let mut harness = asking(all_kinds());
        harness.run(&decide(choice, &json!({})));
        assert_ne!(harness.step_statuses()[0], StepStatus::AwaitingInput);
    }
}

#[test]
fn the_agent_gets_the_answers_with_requested_changes() {
    let mut harness = asking(all_kinds());
    harness.run(&decide(Decision::Modify, &json!({ "number": 7 })));
    let step = harness.plan.step(id(1)).unwrap();
    assert!(step.spec.instructions.contains("{\"number\":7}"));
}

#[test]
fn rejects_invalid_questions_with_their_paths() {
    let mut harness = Harness::with_steps(1).started();
    let text = |name: &str| field(name, FieldKind::Text);
    let with = |change: &dyn Fn(&mut ReviewField)| {
        let mut changed = field("choice", FieldKind::Choice);
        change(&mut changed);
        vec![changed]
    };
    let twice = FieldOption {
        value: "red".to_owned(),
        title: None,
    };
    let invalid: [(Vec<ReviewField>, &str); 11] = [
        (vec![text("")], "fields[0].name"),
        (vec![text("1st")], "fields[0].name"),
        (vec![text("a b")], "fields[0].name"),
        (vec![text(&"x".repeat(65))], "fields[0].name"),
        (vec![text("a"), text("a")], "fields[1].name"),
        (vec![text("a"); 21], "fields"),
        (
            with(&|field| field.title = Some(" ".to_owned())),
            "fields[0].title",
        ),
        (with(&|field| field.options.clear()), "fields[0].options"),
        (
            with(&|field| field.options.push(twice.clone())),
            "fields[0].options[2].value",
        ),
        (
            with(&|field| field.kind = FieldKind::Text),
            "fields[0].options",
        ),
        (
            with(&|field| field.default = Some(json!("green").into())),
            "fields[0].default",
        ),
    ];
    for (fields, path) in invalid {
        let request = request(&harness, fields);
        let refusal = harness.expect_rejection(&request);
        assert!(issue_paths(refusal).contains(&path.to_owned()), "{path}");
    }
}

#[test]
fn repeating_a_request_with_other_questions_is_rejected() {
    let mut harness = asking(all_kinds());
    let same = request(&harness, all_kinds());
    assert!(harness.run(&same).is_empty());
    let other = request(&harness, Vec::new());
    assert_eq!(harness.rejection_code(&other), Code::IllegalTransition);
}

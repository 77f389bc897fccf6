//! Records that the encoder never writes: the decoder returns an error with its path, and neither
//! panics nor guesses.

use onward_core::event::Change;
use onward_core::id::StepId;
use onward_core::{Event, Json};
use onward_store::codec::{Undecodable, decode, decode_action, encode, shown};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::cases;
use crate::content::{json as any_json, text};
use crate::events::events;

const STEP: StepId = StepId::from_u128(7);

/// Keys at the top level that may be absent: optional ones, and those for readers only.
const OPTIONAL_KEYS: [&str; 32] = [
    "answers",
    "assignee",
    "attempt",
    "budget",
    "by",
    "confidence",
    "dueAt",
    "errorMessage",
    "evidence",
    "feedback",
    "fields",
    "forkedFrom",
    "from",
    "labels",
    "note",
    "onDeadline",
    "onDependencyFailure",
    "origin",
    "outputFormattingNotes",
    "percent",
    "planDesignRationale",
    "priority",
    "projectKey",
    "rationale",
    "reason",
    "result",
    "reviewBy",
    "scope",
    "sessionId",
    "stallThresholdMs",
    "stepExecutionReport",
    "to",
];

fn names() -> impl Strategy<Value = String> {
    let known = [
        "plan_modified",
        "step_started",
        "step_completed",
        "step_failed",
        "step_skipped",
        "step_requeued",
        "step_progressed",
        "step_orphaned",
        "branch_taken",
        "user_reviewed",
        "session_resumed",
        "skill_started",
        "skill_completed",
        "budget_exhausted",
        "plan_stalled",
        "plan_resumed",
        "plan_completed",
        "plan_failed",
        "plan_status_changed",
        "late_result_kept",
    ];
    prop_oneof![4 => select(known.to_vec()).prop_map(str::to_owned), 1 => text()]
}

/// JSON pointers to all values inside this one, and to itself.
fn places(value: &Value, at: String, all: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(inner, format!("{at}/{key}"), all);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                places(inner, format!("{at}/{index}"), all);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    all.push(at);
}

fn put(details: &mut Value, place: &Index, other: Value) {
    let mut all = Vec::new();
    places(details, String::new(), &mut all);
    let chosen: &String = place.get(&all);
    if let Some(value) = details.pointer_mut(chosen) {
        *value = other;
    }
}

/// The result is an error that names its path, or an event that can be encoded again.
fn assert_error_or_round_trip(answer: Result<Event, Undecodable>) {
    match answer {
        Ok(event) => {
            let again = encode(&event);
            assert_eq!(
                decode(again.name, again.step, &again.details.to_string()),
                Ok(event)
            );
        }
        Err(error) => {
            let message = error.to_string();
            let Undecodable { path, .. } = error;
            assert!(
                path.is_empty() || message.starts_with(&format!("`{path}`: ")),
                "{path}: {message}"
            );
        }
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn decodes_or_rejects_an_event_that_was_tampered_with(
        event in events(),
        tampering in proptest::collection::vec((any::<Index>(), any_json()), 1..3),
    ) {
        let encoded = encode(&event);
        let mut details = encoded.details.parse().expect("JSON");
        for (place, other) in tampering {
            put(&mut details, &place, other);
        }
        assert_error_or_round_trip(decode(encoded.name, encoded.step, &details.to_string()));
    }

    #[test]
    fn decodes_or_rejects_an_event_under_another_name(
        event in events(), name in names(), step in proptest::option::of(Just(STEP)),
    ) {
        assert_error_or_round_trip(decode(&name, step, &encode(&event).details.to_string()));
    }

    #[test]
    fn decodes_or_rejects_any_json_under_any_name(name in names(), details in any_json()) {
        let details = details.to_string();
        assert_error_or_round_trip(decode(&name, Some(STEP), &details));
        assert_error_or_round_trip(decode(&name, None, &details));
        let _ = decode_action(&name, &details);
        let _ = decode_action("add_steps", &details);
    }

    #[test]
    fn names_a_missing_key_unless_it_is_optional(event in events()) {
        let encoded = encode(&event);
        let details: Value = encoded.details.parse().expect("JSON");
        for key in details.as_object().into_iter().flat_map(|fields| fields.keys()) {
            let mut details = details.clone();
            details.as_object_mut().expect("an object").remove(key);
            match decode(encoded.name, encoded.step, &details.to_string()) {
                Ok(_) => prop_assert!(OPTIONAL_KEYS.contains(&key.as_str()), "`{key}` is not optional"),
                Err(error) => {
                    // Without `noEffect` the effect is decoded, and its keys are missing. Without
                    // `resultSummary` a review has no result, and its `summary` is missing.
                    let expected = format!("missing field `{key}`");
                    let implies_others = ["noEffect", "resultSummary"].contains(&key.as_str());
                    prop_assert!(error.why == expected || implies_others, "{}: {}", key, error.why);
                }
            }
        }
    }

    #[test]
    fn ignores_unknown_keys(event in events(), other in any_json()) {
        let encoded = encode(&event);
        let mut details = encoded.details.parse().expect("JSON");
        details["laterAddition"] = other;
        prop_assert_eq!(decode(encoded.name, encoded.step, &details.to_string()), Ok(event));
    }

    #[test]
    fn removes_only_the_claim_tokens_for_readers(details in any_json(), event in events()) {
        for details in [Json::from(details), encode(&event).details] {
            let expected = without_tokens(&details.parse().expect("JSON"));
            prop_assert_eq!(shown(&details).parse(), Some(expected));
        }
    }
}

/// Naive reference implementation.
fn without_tokens(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| *key != "claimToken")
            .map(|(key, inner)| (key.clone(), without_tokens(inner)))
            .collect(),
        Value::Array(items) => items.iter().map(without_tokens).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[test]
fn removes_claim_tokens_at_any_depth() {
    let details = json!({
        "claimToken": "one", "attempt": 1, "result": { "log": [{ "claimToken": ["two"], "kept": null }] },
    });
    assert_eq!(
        shown(&details.into()),
        json!({ "attempt": 1, "result": { "log": [{ "kept": null }] } }).into()
    );
}

fn rejected(name: &str, step: Option<StepId>, details: Value) -> (String, String) {
    let error = decode(name, step, &details.to_string()).expect_err("undecodable record");
    (error.path, error.why)
}

#[test]
fn an_error_names_its_path() {
    for (name, details, path) in [
        ("step_started", json!({ "attempt": 1 }), ""),
        (
            "step_started",
            json!({ "attempt": -1, "claimToken": "t" }),
            "attempt",
        ),
        (
            "step_started",
            json!({ "attempt": 1.5, "claimToken": "t" }),
            "attempt",
        ),
        (
            "step_started",
            json!({ "attempt": u64::from(u32::MAX) + 1, "claimToken": "t" }),
            "attempt",
        ),
        (
            "step_failed",
            json!({ "from": "foo", "kind": "stalled" }),
            "from",
        ),
        (
            "step_failed",
            json!({ "from": "pending", "kind": "foo" }),
            "kind",
        ),
        (
            "step_skipped",
            json!({ "from": "pending", "by": "branch", "branchId": "x" }),
            "branchId",
        ),
        ("step_started", json!([1, "t"]), ""),
        ("plan_completed", json!([]), ""),
        (
            "user_reviewed",
            json!({ "reviewId": STEP.to_string(), "action": "no" }),
            "action",
        ),
        (
            "plan_stalled",
            json!({ "stalls": [{ "stepId": STEP.to_string(), "attempt": 1, "since": "noon" }] }),
            "stalls[0].since",
        ),
        (
            "plan_stalled",
            json!({ "stalls": [{ "stepId": STEP.to_string(), "attempt": 1 }] }),
            "stalls[0]",
        ),
    ] {
        let (found, why) = rejected(name, Some(STEP), details);
        assert_eq!(found, path, "{name}: {why}");
    }
}

#[test]
fn an_unknown_name_lists_the_expected_ones() {
    let details = json!({ "from": "foo", "kind": "stalled" });
    assert_eq!(
        rejected("step_failed", Some(STEP), details).1,
        "`from`: unknown value `foo`: expected one of `pending`, `in_progress`, `awaiting_input`, \
         `completed`, `skipped`, `failed`"
    );
}

#[test]
fn rejects_a_condition_that_no_longer_parses() {
    let branch = json!({
        "branchId": STEP.to_string(), "afterStepId": STEP.to_string(),
        "conditionExpression": "confidence >= ", "ifTrueAction": "continue", "actionParams": {},
    });
    let (path, why) = rejected(
        "plan_modified",
        Some(STEP),
        json!({ "action": "add_branch", "branch": branch }),
    );
    assert_eq!(path, "branch.conditionExpression");
    assert!(why.contains("line 1, column 15"), "{why}");
}

#[test]
fn null_is_not_absent() {
    let details = json!({ "action": "seen", "note": null });
    assert_eq!(rejected("step_progressed", Some(STEP), details).0, "note");
}

#[test]
fn rejects_a_step_that_does_not_match_the_event() {
    let removed = Event::PlanModified {
        change: Change::StepRemoved { step: STEP },
        rationale: None,
    };
    let details = encode(&removed).details;
    assert_eq!(
        rejected("plan_modified", None, details.parse().unwrap()).1,
        "`plan_modified` requires a step, but is stored without one"
    );
    assert_eq!(
        rejected("plan_completed", Some(STEP), json!({})).1,
        format!("the step of the event is `{STEP}`, expected none")
    );
}

#[test]
fn truncates_a_long_text_in_an_error() {
    let (_, why) = rejected(
        "step_failed",
        Some(STEP),
        json!({ "from": "é".repeat(100_000) }),
    );
    assert!(why.len() < 1_000, "{}", why.len());
}

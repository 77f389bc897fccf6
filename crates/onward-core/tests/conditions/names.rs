//! The names in a condition: the five built-in names, the keys of the result, and precedence.

use super::*;

#[test]
fn evaluates_the_documented_examples() {
    let result = json!({ "sources": [1, 2], "verdict": "reject" });
    assert_eq!(evaluate("confidence >= 0.8", &result), Ok(false));
    assert_all_true(
        &result,
        &[
            "result.sources.size() < 3 || confidence < 0.5",
            "result.verdict === \"reject\"",
            "result.verdict !== 'accept'",
        ],
    );
}

#[test]
fn all_five_names_can_be_read() {
    assert_all_true(
        &json!({ "n": 1 }),
        &[
            "confidence == 0.75",
            "resultSummary.contains('outdated')",
            "result == {'n': 1}",
            "step.order == 2 && step.type == 'search' && step.attempt == 1",
            "plan.progress == 40 && plan.completed == 2",
            "plan.failed == 1 && plan.pending == 2",
            "step == {'order': 2, 'type': 'search', 'attempt': 1}",
        ],
    );
}

#[test]
fn missing_confidence_and_result_are_null() {
    let empty = Scope {
        confidence: None,
        ..scope(None)
    };
    assert_eq!(
        parse("confidence == null && result == null").evaluate(&empty),
        Ok(true)
    );
    for source in ["confidence >= 0.8", "result.verdict == 'x'"] {
        assert!(matches!(
            parse(source).evaluate(&empty),
            Err(EvaluationError::TypeMismatch { .. })
        ));
    }
}

#[test]
fn keys_of_the_result_can_be_read_directly() {
    let result = json!({ "verdict": "reject", "sources": [{ "url": "a" }] });
    assert_all_true(
        &result,
        &[
            "verdict == 'reject'",
            "sources[0].url == 'a'",
            "has(sources[0].url)",
        ],
    );
    assert_eq!(evaluation_error("other == 1", &result), missing("other"));
    assert_eq!(
        evaluation_error("verdict == 'reject'", &json!(["verdict"])),
        missing("verdict")
    );
}

#[test]
fn a_key_never_shadows_a_built_in_name() {
    let result = json!({
        "confidence": 1, "resultSummary": 2, "result": 3, "step": 4, "plan": 5,
    });
    assert_all_true(
        &result,
        &[
            "confidence == 0.75 && result.confidence == 1",
            "resultSummary != 2 && result.resultSummary == 2",
            "result != 3 && result.result == 3",
            "step.order == 2 && result.step == 4",
            "plan.progress == 40 && result.plan == 5",
        ],
    );
}

#[test]
fn a_key_shadows_a_type_and_a_comprehension_variable_shadows_everything() {
    let result = json!({ "list": [1], "int": 5 });
    assert_all_true(
        &result,
        &[
            "list == [1] && int == 5",
            "type(list) != list && type(true) == bool && type(type(1)) == type",
            "list.all(confidence, confidence == 1) && confidence == 0.75",
            "list.exists(list, list == 1) && list.size() == 1",
        ],
    );
}

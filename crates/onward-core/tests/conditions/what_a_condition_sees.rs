//! What a condition sees: the five names, the keys of the result, and which hides which.

use super::*;

#[test]
fn the_examples_of_the_rules_work() {
    let result = json!({ "sources": [1, 2], "verdict": "reject" });
    assert_eq!(tried("confidence >= 0.8", &result), Ok(false));
    all_true(
        &result,
        &[
            "result.sources.size() < 3 || confidence < 0.5",
            "result.verdict === \"reject\"",
            "result.verdict !== 'accept'",
        ],
    );
}

#[test]
fn all_five_names_are_there() {
    all_true(
        &json!({ "n": 1 }),
        &[
            "confidence == 0.75",
            "resultSummary.contains('doubtful')",
            "result == {'n': 1}",
            "step.order == 2 && step.type == 'search' && step.attempt == 1",
            "plan.progress == 40 && plan.completed == 2",
            "plan.failed == 1 && plan.pending == 2",
            "step == {'order': 2, 'type': 'search', 'attempt': 1}",
        ],
    );
}

#[test]
fn what_is_not_there_is_null() {
    let nothing = Scope {
        confidence: None,
        ..scope(None)
    };
    assert_eq!(
        parsed("confidence == null && result == null").evaluate(&nothing),
        Ok(true)
    );
    let reason = parsed("confidence >= 0.8").evaluate(&nothing).unwrap_err();
    assert_eq!(
        reason.to_string(),
        "`>=` cannot be used between null and a decimal number"
    );
    let reason = parsed("result.verdict == 'x'")
        .evaluate(&nothing)
        .unwrap_err();
    assert_eq!(reason.to_string(), "`result.verdict` is asked of null");
}

#[test]
fn keys_of_the_result_have_bare_names() {
    let result = json!({ "verdict": "reject", "sources": [{ "url": "a" }] });
    all_true(
        &result,
        &[
            "verdict == 'reject'",
            "sources[0].url == 'a'",
            "has(sources[0].url)",
        ],
    );
    assert_eq!(why("other == 1", &result), "`other` is missing");
    assert_eq!(
        why("verdict == 'reject'", &json!(["verdict"])),
        "`verdict` is missing"
    );
}

#[test]
fn a_key_never_hides_one_of_the_five() {
    let result = json!({
        "confidence": 1, "resultSummary": 2, "result": 3, "step": 4, "plan": 5,
    });
    all_true(
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
fn a_key_hides_a_type_and_an_entry_hides_everything() {
    let result = json!({ "list": [1], "int": 5 });
    all_true(
        &result,
        &[
            "list == [1] && int == 5",
            "type(list) != list && type(true) == bool && type(type(1)) == type",
            "list.all(confidence, confidence == 1) && confidence == 0.75",
            "list.exists(list, list == 1) && list.size() == 1",
        ],
    );
}

//! Every bound, just below and just above.

use super::*;

#[test]
fn the_source_has_at_most_two_kibibytes() {
    let fits = format!("true{}", " ".repeat(MAX_SOURCE_BYTES - 4));
    parsed(&fits);
    let error = refused(&format!("{fits} "));
    assert_eq!((error.line, error.column), (1, 2049));
    assert_eq!(
        error.message,
        "the condition has 2049 bytes; expected at most 2048"
    );
    refused(&"é".repeat(MAX_SOURCE_BYTES));
}

#[test]
fn there_are_at_most_256_nodes() {
    let list = |n: usize| format!("[{}]", vec!["1"; n].join(","));
    // The list is a node itself.
    assert!(Condition::parse(&list(MAX_NODES - 1)).is_ok());
    let error = refused(&list(MAX_NODES));
    assert!(error.message.contains("at most 256"), "{error}");
    let chain = |n: usize| vec!["a"; n].join("&&");
    parsed(&chain(MAX_NODES / 2));
    refused(&chain(MAX_NODES / 2 + 1));
}

#[test]
fn nesting_and_height_are_bounded() {
    let nested = |n: u32| format!("{}true{}", "(".repeat(n as usize), ")".repeat(n as usize));
    // The condition itself is the first level.
    all_true(&json!({}), &[&nested(MAX_NESTING - 1)]);
    assert!(
        refused(&nested(MAX_NESTING))
            .message
            .contains("nested too deep")
    );
    let sum = |terms: u32| vec!["1"; terms as usize].join("+") + " > 0";
    // The comparison is one level, the first number another.
    all_true(&json!({}), &[&sum(MAX_HEIGHT - 1)]);
    assert!(
        refused(&sum(MAX_HEIGHT))
            .message
            .contains("wait for one another")
    );
    let dots = |n: u32| "a".to_owned() + &".a".repeat(n as usize);
    parsed(&dots(MAX_HEIGHT - 1));
    refused(&dots(MAX_HEIGHT));
}

/// A result of exactly that many bytes.
fn of_bytes(bytes: usize) -> Json {
    let empty = json!({ "text": "" }).to_string().len();
    let result = json!({ "text": "x".repeat(bytes - empty) });
    assert_eq!(result.to_string().len(), bytes);
    result
}

#[test]
fn a_result_over_64_kibibytes_is_not_searched() {
    assert_eq!(
        tried("text.startsWith('x')", &of_bytes(MAX_SEARCHED_BYTES)),
        Ok(true)
    );
    let over = of_bytes(MAX_SEARCHED_BYTES + 1);
    assert_eq!(
        why("text.startsWith('x')", &over),
        "the result has 65537 bytes and is not searched: the limit is 65536"
    );
    // Even where another part of the condition would have decided.
    assert!(tried("true || has(result.text)", &over).is_err());
    assert!(why("has(result.text)", &of_bytes(5_000_000)).contains("at least 1048576 bytes"));
}

#[test]
fn a_list_or_object_over_a_thousand_entries_is_not_searched() {
    let list = |n: usize| json!({ "deep": [{ "list": vec![1; n] }] });
    assert_eq!(tried("has(result.deep)", &list(MAX_ENTRIES)), Ok(true));
    let entries = MAX_ENTRIES + 1;
    assert_eq!(
        tried("has(result.deep)", &list(entries)),
        Err(Unevaluable::ListTooLong {
            entries,
            limit: MAX_ENTRIES
        })
    );
    let object = |n: usize| -> Json { (0..n).map(|i| (i.to_string(), json!(i))).collect() };
    assert_eq!(
        tried("result.size() == 1000", &object(MAX_ENTRIES)),
        Ok(true)
    );
    let reason = why("result.size() == 1001", &object(entries));
    assert!(
        reason.contains("1001 entries and is not searched: the limit is 1000"),
        "{reason}"
    );
}

#[test]
fn a_result_nested_too_deep_is_not_searched() {
    let nested = |n: usize| (1..n).fold(json!([]), |inner, _| json!([inner]));
    assert_eq!(tried("result == result", &nested(MAX_DEPTH)), Ok(true));
    assert_eq!(
        tried("result == result", &nested(MAX_DEPTH + 1)),
        Err(Unevaluable::ResultTooDeep { limit: MAX_DEPTH })
    );
}

#[test]
fn a_condition_that_does_not_look_at_the_result_is_tried_however_large_it_is() {
    let over = of_bytes(MAX_SEARCHED_BYTES + 1);
    all_true(
        &over,
        &[
            "confidence >= 0.7",
            "step.order == 2 && plan.failed == 1 && resultSummary != ''",
            "[1, 2].exists(text, text == 2)",
        ],
    );
    for source in [
        "confidence >= 0.7 && text != ''",
        "result != null",
        "[1].all(x, y)",
    ] {
        let tried = tried(source, &over);
        assert!(
            matches!(tried, Err(Unevaluable::ResultTooLarge { .. })),
            "{source}"
        );
    }
}

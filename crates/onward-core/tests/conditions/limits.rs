//! Limits, at and just above each.

use super::*;

#[test]
fn limits_the_source_to_2_kib() {
    let fits = format!("true{}", " ".repeat(MAX_SOURCE_BYTES - 4));
    parse(&fits);
    let error = parse_error(&format!("{fits} "));
    assert_eq!((error.line, error.column), (1, 2049));
    assert_golden("source_too_long", [("true…", error)]);
    parse_error(&"é".repeat(MAX_SOURCE_BYTES));
}

#[test]
fn limits_the_number_of_nodes_to_256() {
    let list = |n: usize| format!("[{}]", vec!["1"; n].join(","));
    // The list counts as a node.
    assert!(Condition::parse(&list(MAX_NODES - 1)).is_ok());
    let too_many = list(MAX_NODES);
    assert_golden("too_many_nodes", [("[1,…]", parse_error(&too_many))]);
    let chain = |n: usize| vec!["a"; n].join("&&");
    parse(&chain(MAX_NODES / 2));
    parse_error(&chain(MAX_NODES / 2 + 1));
}

#[test]
fn limits_nesting_and_height() {
    let nested = |n: u32| format!("{}true{}", "(".repeat(n as usize), ")".repeat(n as usize));
    // The condition is the first level.
    assert_all_true(&json!({}), &[&nested(MAX_NESTING - 1)]);
    assert_golden(
        "nested_too_deep",
        [("(…true…)", parse_error(&nested(MAX_NESTING)))],
    );
    let sum = |terms: u32| vec!["1"; terms as usize].join("+") + " > 0";
    // The comparison is one level, the first number another.
    assert_all_true(&json!({}), &[&sum(MAX_HEIGHT - 1)]);
    assert_golden("too_high", [("1+… > 0", parse_error(&sum(MAX_HEIGHT)))]);
    let dots = |n: u32| "a".to_owned() + &".a".repeat(n as usize);
    parse(&dots(MAX_HEIGHT - 1));
    parse_error(&dots(MAX_HEIGHT));
}

/// A result of exactly this size.
fn result_of_bytes(bytes: usize) -> Json {
    let empty = json!({ "text": "" }).to_string().len();
    let result = json!({ "text": "x".repeat(bytes - empty) });
    assert_eq!(result.to_string().len(), bytes);
    result
}

#[test]
fn does_not_evaluate_a_result_over_64_kib() {
    assert_eq!(
        evaluate(
            "text.startsWith('x')",
            &result_of_bytes(MAX_EVALUATED_BYTES)
        ),
        Ok(true)
    );
    let over = result_of_bytes(MAX_EVALUATED_BYTES + 1);
    assert_eq!(
        evaluation_error("text.startsWith('x')", &over),
        EvaluationError::ResultTooLarge {
            bytes: MAX_EVALUATED_BYTES + 1,
            limit: MAX_EVALUATED_BYTES
        }
    );
    // Even if another operand could decide alone.
    assert!(evaluate("true || has(result.text)", &over).is_err());
    // Measuring stops at 1 MiB.
    assert_eq!(
        evaluation_error("has(result.text)", &result_of_bytes(5_000_000)),
        EvaluationError::ResultTooLarge {
            bytes: 1024 * 1024,
            limit: MAX_EVALUATED_BYTES
        }
    );
}

#[test]
fn does_not_evaluate_a_list_or_object_over_1000_entries() {
    let list = |n: usize| json!({ "deep": [{ "list": vec![1; n] }] });
    assert_eq!(evaluate("has(result.deep)", &list(MAX_ENTRIES)), Ok(true));
    let entries = MAX_ENTRIES + 1;
    assert_eq!(
        evaluate("has(result.deep)", &list(entries)),
        Err(EvaluationError::ListTooLong {
            entries,
            limit: MAX_ENTRIES
        })
    );
    let object = |n: usize| -> Json { (0..n).map(|i| (i.to_string(), json!(i))).collect() };
    assert_eq!(
        evaluate("result.size() == 1000", &object(MAX_ENTRIES)),
        Ok(true)
    );
    assert_eq!(
        evaluate("result.size() == 1001", &object(entries)),
        Err(EvaluationError::ListTooLong {
            entries,
            limit: MAX_ENTRIES
        })
    );
}

#[test]
fn does_not_evaluate_a_result_nested_too_deeply() {
    let nested = |n: usize| (1..n).fold(json!([]), |inner, _| json!([inner]));
    assert_eq!(evaluate("result == result", &nested(MAX_DEPTH)), Ok(true));
    assert_eq!(
        evaluate("result == result", &nested(MAX_DEPTH + 1)),
        Err(EvaluationError::ResultTooDeep { limit: MAX_DEPTH })
    );
}

#[test]
fn a_condition_that_does_not_read_the_result_is_evaluated_for_any_result() {
    let over = result_of_bytes(MAX_EVALUATED_BYTES + 1);
    assert_all_true(
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
        let outcome = evaluate(source, &over);
        assert!(
            matches!(outcome, Err(EvaluationError::ResultTooLarge { .. })),
            "{source}"
        );
    }
}

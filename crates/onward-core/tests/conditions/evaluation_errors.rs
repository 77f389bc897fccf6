//! Conditions that cannot be evaluated, and their errors.

use super::*;

#[test]
fn reports_a_missing_path() {
    let result = json!({ "a": { "b": [1] } });
    for (source, path) in [
        ("result.a.c == 1", "result.a.c"),
        ("a.b[1] == 1", "a.b[1]"),
        ("a['x y'] == 1", "a[\"x y\"]"),
    ] {
        assert_eq!(evaluation_error(source, &result), missing(path));
    }
}

#[test]
fn reports_a_type_mismatch() {
    let result = json!({ "n": 1, "t": "x", "l": [1], "o": {} });
    let errors = [
        "n < t",
        "l + n == l",
        "-t == t",
        "!n",
        "n && true",
        "n ? true : false",
        "n in t",
        "t.size == 1",
        "l.length > 0",
        "l['a'] == 1",
        "l.all(x, x.y)",
        "n.size() > 1",
        "l.contains(1)",
        "t.startsWith(n)",
        "n.matches('1')",
        "n.all(x, x)",
        "l.exists(x, x)",
        "int(t) == 1",
        "{1.5: 1} == o",
        "{1: 1, 1u: 2} == o",
    ]
    .map(|source| (source, evaluation_error(source, &result)));
    for (source, error) in &errors {
        assert!(
            matches!(error, EvaluationError::TypeMismatch { .. }),
            "{source}"
        );
    }
    assert_golden("type_mismatches", errors);
}

#[test]
fn reports_the_type_of_a_condition_that_is_not_a_boolean() {
    let result = json!({ "n": 5 });
    let errors =
        ["n", "'true'", "result", "null"].map(|source| (source, evaluation_error(source, &result)));
    for (source, error) in &errors {
        assert!(
            matches!(error, EvaluationError::NotBoolean { .. }),
            "{source}"
        );
    }
    assert_golden("not_boolean", errors);
}

#[test]
fn an_error_is_ignored_if_the_other_operand_decides() {
    let result = json!({ "l": [1, "a", 3] });
    assert_all_true(
        &result,
        &[
            "true || missing",
            "missing || true",
            "!(false && missing)",
            "!(missing && false)",
            "!(missing && 1 && false)",
            "l.exists(x, x > 2)",
            "!l.all(x, x < 2)",
        ],
    );
    assert_eq!(
        evaluation_error("missing || false", &result),
        missing("missing")
    );
    assert_eq!(
        evaluation_error("true && missing && other", &result),
        missing("missing")
    );
    assert!(matches!(
        evaluation_error("l.exists(x, x > 5)", &result),
        EvaluationError::TypeMismatch { .. }
    ));
    assert!(evaluate("l.exists_one(x, x == 1 || x > 5)", &result).is_err());
    assert!(evaluate("l.filter(x, x > 0).size() == 1", &result).is_err());
}

//! Parse errors: positions and messages.

use super::*;

#[test]
fn rejects_an_empty_condition() {
    assert_parse_errors(
        "empty",
        &[("", 1, 1), (" \t", 1, 3), ("\n// comment\n", 3, 1)],
    );
}

#[test]
fn reports_syntax_errors_with_their_position() {
    assert_parse_errors(
        "syntax",
        &[
            ("confidence >=", 1, 14),
            ("confidence >= 0.8 &&\n  result.", 2, 10),
            ("'é' == x y", 1, 10),
            ("a and b", 1, 3),
            ("a = 1", 1, 3),
            ("a => 1", 1, 3),
            ("a & b", 1, 3),
            ("(a", 1, 3),
            ("a)", 1, 2),
            ("[1 2]", 1, 4),
            ("{'a' 1}", 1, 6),
            ("a ? b", 1, 6),
            ("a[1", 1, 4),
            ("'abc", 1, 5),
            ("'a\nb'", 1, 3),
            (r"'\d'", 1, 2),
            (r"'\u12'", 1, 2),
            (r"'\ud800'", 1, 2),
            (r"'\U00110000'", 1, 2),
            ("b'x' == a", 1, 1),
            ("a.?b", 1, 3),
            (".a", 1, 1),
            ("Foo{a: 1}", 1, 4),
            ("a.true", 1, 3),
            ("if", 1, 1),
            ("in", 1, 1),
            ("12abc", 1, 3),
            ("9223372036854775808", 1, 1),
            ("99999999999999999999", 1, 1),
            ("1e999", 1, 1),
            ("a ~ b", 1, 3),
            ("a == “b”", 1, 6),
            ("`a` == 1", 1, 1),
        ],
    );
}

#[test]
fn rejects_unknown_functions_and_invalid_arguments() {
    assert_parse_errors(
        "functions",
        &[
            ("result.sources.includes(1)", 1, 16),
            ("length(a)", 1, 1),
            ("a.some(x, x)", 1, 3),
            ("timestamp(a) > 1", 1, 1),
            ("size(a, b)", 1, 7),
            ("size()", 1, 6),
            ("a.size(1)", 1, 8),
            ("has(a)", 1, 5),
            ("has(a['b'])", 1, 5),
            ("a.all(1, true)", 1, 7),
            ("a.all(x)", 1, 8),
            ("a.all(x, true, true)", 1, 14),
            ("a.all(null, true)", 1, 7),
        ],
    );
}

#[test]
fn rejects_nested_comprehensions() {
    assert_parse_errors(
        "nested_comprehensions",
        &[
            ("a.all(x, x.exists(y, y))", 1, 12),
            ("a.map(x, true, b.filter(y, y))", 1, 18),
        ],
    );
    parse("a.filter(x, x).all(y, y) && b.exists(x, x)");
    parse("(a.all(x, x) ? b : c).exists(y, y)");
}

#[test]
fn rejects_invalid_patterns() {
    // Each pattern is valid alone; together they exceed the memory budget.
    let once = "a.matches('(?:a?){60}(?:b?){60}c')";
    parse(once);
    let too_many = [once; 8].join(" || ");
    assert!(Condition::parse(&too_many).is_err());
    let nested = format!("a.matches('{}{}')", "(".repeat(500), ")".repeat(500));
    assert!(Condition::parse(&nested).is_err());
    assert_parse_errors(
        "patterns",
        &[
            ("a.matches(b)", 1, 11),
            ("a.matches('x' + 'y')", 1, 11),
            ("matches(a, b)", 1, 12),
            ("a.matches('(')", 1, 11),
            ("a.matches('[')", 1, 11),
            ("a.matches('(?=x)')", 1, 11),
            (r"a.matches(r'\1')", 1, 11),
            (r"a.matches(r'\pL')", 1, 11),
            (r"a.matches(r'\b{start}x')", 1, 11),
            ("a.matches('((a{100}){100}){100}')", 1, 11),
            ("a.matches('(?i)[a-\u{10ffff}]')", 1, 11),
            (r"a.matches(r'(?i)[\W]')", 1, 11),
            ("a.matches('(?i)[[:^alpha:]]')", 1, 11),
            (r"a.matches(r'(?i)[\x{100}-\x{10ffff}]')", 1, 11),
        ],
    );
    parse("a.matches('(?i)(insufficient|missing|not enough) (evidence|sources|data)')");
    parse(r"a.matches(r'^[\w.+-]+@[\w-]+\.[a-z]{2,}$') && a.matches(r'^\d{4}-\d{2}-\d{2}')");
}

#[test]
fn rejects_conditions_that_are_never_a_boolean() {
    for source in [
        "1 + 1",
        "'text'",
        "result.summary + 'x'",
        "confidence",
        "resultSummary",
        "result",
        "plan.progress",
        "size(result.sources)",
        "[true]",
        "{'a': true}",
        "null",
        "-confidence",
        "!1",
        "true && 1",
        "1 || 'a'",
        "result.ok ? 1 : 'no'",
        "result.sources.map(s, s.ok)",
    ] {
        let error = Condition::parse_boolean(source).expect_err(source);
        assert_eq!((error.line, error.column), (1, 1), "{source}");
        assert!(Condition::parse(source).is_ok(), "{source}");
    }
    for source in [
        "true",
        "false",
        "result.ok",
        "ok",
        "result['ok']",
        "!ok",
        "ok || 1",
        "confidence > 0.5",
        "has(result.a)",
        "result.sources.all(s, s.ok)",
        "dyn(result.ok)",
        "ok ? true : result.other",
        "1 in result.list",
    ] {
        assert!(Condition::parse_boolean(source).is_ok(), "{source}");
    }
}

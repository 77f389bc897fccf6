//! What cannot be evaluated, and the words for it.

use super::*;

#[test]
fn a_missing_path_is_named() {
    let result = json!({ "a": { "b": [1] } });
    assert_eq!(why("result.a.c == 1", &result), "`result.a.c` is missing");
    assert_eq!(why("a.b[1] == 1", &result), "`a.b[1]` is missing");
    assert_eq!(why("a['x y'] == 1", &result), "`a[\"x y\"]` is missing");
    assert_eq!(
        why("a.b.all(x, x.y)", &result),
        "`x.y` is asked of a whole number"
    );
    assert_eq!(
        tried("result.a.c == 1", &result),
        Err(Unevaluable::Missing {
            path: "result.a.c".to_owned()
        })
    );
}

#[test]
fn a_type_that_does_not_fit_is_named() {
    let result = json!({ "n": 1, "t": "x", "l": [1], "o": {} });
    for (source, reason) in [
        (
            "n < t",
            "`<` cannot be used between a whole number and a text",
        ),
        (
            "l + n == l",
            "`+` cannot be used between a list and a whole number",
        ),
        ("-t == t", "`-` cannot be used on a text"),
        ("!n", "`!` cannot be used on a whole number"),
        ("n && true", "`&&` cannot be used on a whole number"),
        ("n ? true : false", "`?` cannot be used on a whole number"),
        (
            "n in t",
            "`in` cannot be used between a whole number and a text",
        ),
        (
            "t.size == 1",
            "`t.size` is asked of a text; a text has `size()`",
        ),
        (
            "l.length > 0",
            "a list has `size()`, and entries as in `[0]`",
        ),
        ("l['a'] == 1", "`l[\"a\"]` asks a list for a text"),
        (
            "n.size() > 1",
            "`size` needs a text, a list or an object, not a whole number",
        ),
        (
            "l.contains(1)",
            "`contains` needs a text (a list has `in`), not a list",
        ),
        (
            "t.startsWith(n)",
            "`startsWith` needs a text, not a whole number",
        ),
        (
            "n.matches('1')",
            "`matches` needs a text, not a whole number",
        ),
        (
            "n.all(x, x)",
            "`all` needs a list or an object, not a whole number",
        ),
        (
            "l.exists(x, x)",
            "`exists` needs a boolean for each entry, not a whole number",
        ),
        ("int(t) == 1", "`int` cannot be made of this value, a text"),
        (
            "{1.5: 1} == o",
            "a decimal number cannot be a key of an object",
        ),
        (
            "{1: 1, 1u: 2} == o",
            "an object is written with the same key twice",
        ),
    ] {
        let found = why(source, &result);
        assert!(found.contains(reason), "{source}: {found}");
        assert!(
            matches!(tried(source, &result), Err(Unevaluable::Unfit { .. })),
            "{source}"
        );
    }
}

#[test]
fn what_is_not_a_boolean_says_what_it_is() {
    let result = json!({ "n": 5 });
    assert_eq!(
        why("n", &result),
        "the condition is a whole number, not a boolean"
    );
    assert_eq!(
        why("'true'", &result),
        "the condition is a text, not a boolean"
    );
    assert_eq!(
        why("result", &result),
        "the condition is an object, not a boolean"
    );
    assert_eq!(why("null", &result), "the condition is null, not a boolean");
}

#[test]
fn a_failure_is_overruled_by_what_decides_alone() {
    let result = json!({ "l": [1, "a", 3] });
    all_true(
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
    assert_eq!(why("missing || false", &result), "`missing` is missing");
    assert_eq!(
        why("true && missing && other", &result),
        "`missing` is missing"
    );
    assert_eq!(
        why("l.exists(x, x > 5)", &result),
        "`>` cannot be used between a text and a whole number"
    );
    assert!(tried("l.exists_one(x, x == 1 || x > 5)", &result).is_err());
    assert!(tried("l.filter(x, x > 0).size() == 1", &result).is_err());
}

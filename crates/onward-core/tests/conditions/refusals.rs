//! What is refused when a condition is made: where, and what was expected.

use super::*;

#[test]
fn a_blank_condition_is_refused() {
    all_refused(&[
        (
            "",
            1,
            1,
            "expected a name, a literal or `(`, found the end of the condition",
        ),
        (" \t", 1, 3, "found the end"),
        ("\n// nothing\n", 3, 1, "found the end"),
    ]);
}

#[test]
fn the_position_and_what_was_expected_are_said() {
    all_refused(&[
        (
            "confidence >=",
            1,
            14,
            "expected a name, a literal or `(`, found the end",
        ),
        (
            "confidence >= 0.8 &&\n  result.",
            2,
            10,
            "expected a field or a function",
        ),
        (
            "'é' == x y",
            1,
            10,
            "expected an operator or the end of the condition, found `y`",
        ),
        ("a and b", 1, 3, "found `and`; and is written `&&`"),
        ("a = 1", 1, 3, "`=` is not an operator; expected `==`"),
        ("a => 1", 1, 3, "`=>` is not an operator; expected `>=`"),
        ("a & b", 1, 3, "expected `&&`"),
        ("(a", 1, 3, "expected `)` or an operator"),
        ("a)", 1, 2, "found `)`"),
        ("[1 2]", 1, 4, "expected `,` or `]`, found `2`"),
        ("{'a' 1}", 1, 6, "expected `:`"),
        ("a ? b", 1, 6, "expected `:`"),
        ("a[1", 1, 4, "expected `]`"),
        ("'abc", 1, 5, "the text is not closed; expected `'`"),
        ("'a\nb'", 1, 3, "before the end of the line"),
        (r"'\d'", 1, 2, r"`\d` is not an escape; expected `\\d`"),
        (r"'\u12'", 1, 2, "expected 4 hexadecimal digits"),
        (r"'\ud800'", 1, 2, "not a character's code"),
        ("b'x' == a", 1, 1, "bytes"),
        ("a.?b", 1, 3, "use `has(..)`"),
        (".a", 1, 1, "found `.`"),
        ("Foo{a: 1}", 1, 4, "found `{`"),
        ("a.true", 1, 3, "expected `[\"true\"]`"),
        ("if", 1, 1, "reserved word"),
        ("in", 1, 1, "found `in`"),
        ("12abc", 1, 3, "`abc` cannot follow a number"),
        ("9223372036854775808", 1, 1, "expected `u` after it"),
        ("99999999999999999999", 1, 1, "too large"),
        ("1e999", 1, 1, "too large"),
        ("a ~ b", 1, 3, "the character `~` has no meaning"),
        ("a == “b”", 1, 6, "typographic"),
        ("`a` == 1", 1, 1, "names are not quoted"),
    ]);
    assert_eq!(
        refused("a =").to_string(),
        "line 1, column 3: `=` is not an operator; expected `==`"
    );
}

#[test]
fn an_unknown_call_is_refused() {
    all_refused(&[
        (
            "result.sources.includes(1)",
            1,
            16,
            "a text has `contains`, a list `in`",
        ),
        ("length(a)", 1, 1, "it is called `size`"),
        ("a.some(x, x)", 1, 3, "it is called `exists`"),
        (
            "timestamp(a) > 1",
            1,
            1,
            "`timestamp` is not a function here; expected `has`",
        ),
        ("size(a, b)", 1, 7, "`size` takes one argument"),
        ("size()", 1, 6, "found `)`"),
        ("a.size(1)", 1, 8, "`size` takes no argument"),
        ("has(a)", 1, 5, "`has` expects a path"),
        ("has(a['b'])", 1, 5, "`has` expects a path"),
        ("a.all(1, true)", 1, 7, "a name for the entries"),
        ("a.all(x)", 1, 8, "what is asked of each entry"),
        ("a.all(x, true, true)", 1, 14, "expected `)`"),
        ("a.all(null, true)", 1, 7, "a name for the entries"),
    ]);
}

#[test]
fn a_comprehension_inside_another_is_refused() {
    all_refused(&[
        (
            "a.all(x, x.exists(y, y))",
            1,
            12,
            "comprehensions cannot be nested",
        ),
        ("a.map(x, true, b.filter(y, y))", 1, 18, "cannot be nested"),
    ]);
    parsed("a.filter(x, x).all(y, y) && b.exists(x, x)");
    parsed("(a.all(x, x) ? b : c).exists(y, y)");
}

#[test]
fn only_a_literal_pattern_that_compiles_is_taken() {
    all_refused(&[
        ("a.matches(b)", 1, 11, "a pattern cannot be computed"),
        (
            "a.matches('x' + 'y')",
            1,
            11,
            "a pattern cannot be computed",
        ),
        ("matches(a, b)", 1, 12, "a pattern cannot be computed"),
        (
            "a.matches('(')",
            1,
            11,
            "not a valid pattern: unclosed group",
        ),
        ("a.matches('[')", 1, 11, "not a valid pattern"),
        ("a.matches('(?=x)')", 1, 11, "look-ahead"),
        (r"a.matches(r'\1')", 1, 11, "backreferences"),
        (
            r"a.matches(r'\pL')",
            1,
            11,
            "expected the characters themselves",
        ),
        (
            r"a.matches(r'\b{start}x')",
            1,
            11,
            "a word boundary other than",
        ),
        (
            "a.matches('((a{100}){100}){100}')",
            1,
            11,
            "the pattern is too complex",
        ),
        ("a.matches('(?i)[a-\u{10ffff}]')", 1, 11, "outside ASCII"),
        (
            r"a.matches(r'(?i)[\W]')",
            1,
            11,
            "a negated class in a class",
        ),
        ("a.matches('(?i)[[:^alpha:]]')", 1, 11, "a class in a class"),
        (
            r"a.matches(r'(?i)[\x{100}-\x{10ffff}]')",
            1,
            11,
            "a code in a class",
        ),
    ]);
    let nested = format!("a.matches('{}{}')", "(".repeat(500), ")".repeat(500));
    assert!(refused(&nested).message.contains("not a valid pattern"));
    // Each would pass alone; together they draw on one allowance.
    let once = "a.matches('(?:a?){60}(?:b?){60}c')";
    parsed(once);
    assert!(
        refused(&[once; 8].join(" || "))
            .message
            .contains("fewer patterns")
    );
    parsed("a.matches('(?i)(insufficient|missing|not enough) (evidence|sources|data)')");
    parsed(r"a.matches(r'^[\w.+-]+@[\w-]+\.[a-z]{2,}$') && a.matches(r'^\d{4}-\d{2}-\d{2}')");
}

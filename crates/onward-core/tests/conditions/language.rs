//! The language: operators, strings, comprehensions, patterns, and `===`.

use super::*;

#[test]
fn three_equals_signs_mean_two() {
    let result = json!({ "a": "===", "b": "!==" });
    assert_all_true(
        &result,
        &[
            "a === '===' && b === \"!==\"",
            "a !== '==' && a.size() === 3 && b.size()===3",
            "a == r'===' && a == '''===''' // === in a comment",
            "1===1&&1!==2",
            "a.contains('==') // !==\n && true",
        ],
    );
    assert_parse_errors(
        "equals_signs",
        &[
            ("a ==== b", 1, 6),
            ("a === 1 &&& b", 1, 11),
            ("'===' === ", 1, 11),
        ],
    );
}

#[test]
fn operator_precedence_follows_cel() {
    assert_all_true(
        &json!({ "t": true, "f": false }),
        &[
            "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 10 - 3 - 2 == 5 && 8 / 4 / 2 == 1",
            "t || f && f",
            "!f && !!t && - - 1 == 1 && -(1) == -1 && 2 - -1 == 3",
            "f ? f : t ? t : f",
            "1 < 2 == true && 1 in [1] == true",
            "[1, 2,] == [1, 2] && {'a': 1,}.a == 1 && [] == [] && {} == {}",
            "'a' + 'b' == 'ab' && [1] + [2] == [1, 2] && 'a' < 'b' && false < true",
        ],
    );
}

#[test]
fn string_literals_follow_cel() {
    assert_all_true(
        &json!({ "é": 1 }),
        &[
            r#" 'a"b' == "a\"b" && "a'b" == 'a\'b' "#,
            r#" '\x41\u00e9\U0001F600\101' == 'Aé😀A' && '\t\?\`' == "\t?`" "#,
            r#" r'\d' == '\\d' && R"\"=='\\' "#,
            "'''a\r\n'b' ''' == 'a\\n\\'b\\' ' && \"\"\"x\"\"\" == 'x' && '' == \"\"",
            "'é😀'.size() == 2 && result['é'] == 1",
        ],
    );
}

#[test]
fn comprehensions_iterate_over_lists_and_keys() {
    let result = json!({
        "sources": [{ "url": "https://a", "score": 0.9 }, { "url": "http://b", "score": 0.4 }],
        "votes": { "b": 1, "a": 2, "c": 3 },
    });
    assert_all_true(
        &result,
        &[
            "sources.exists(s, s.url.startsWith('https') && s.score > 0.5)",
            "!sources.all(s, s.url.startsWith('https'))",
            "sources.exists_one(s, s.score < 0.5) && sources.existsOne(s, s.score < 0.5)",
            "sources.filter(s, s.score > 0.5).size() == 1",
            "sources.map(s, s.score) == [0.9, 0.4]",
            "sources.map(s, s.score > 0.5, s.url) == ['https://a']",
            "sources.filter(s, s.score > 0.5).all(t, t.url == 'https://a')",
            "votes.map(k, k) == ['a', 'b', 'c'] && votes.all(k, votes[k] > 0)",
            "{'z': 1, 'a': 2}.map(k, k) == ['z', 'a']",
            "[].all(x, false) && ![].exists(x, true) && 'a' in votes && !('z' in votes)",
        ],
    );
}

#[test]
fn patterns_follow_re2() {
    assert_all_true(
        &json!({ "t": "Error 42: größe überschritten\nversion v1.20.3" }),
        &[
            r#"t.matches("^Error \\d+") && t.matches(r'^Error\s\d+:') && matches(t, "42")"#,
            "!t.matches('^version') && t.matches('(?m)^version') && t.matches('(?i)ERROR')",
            r"t.matches(r'\bv\d+\.\d+\.\d+$') && !t.matches(r'\bersion') && t.matches(r'\Bersion')",
            "'&'.matches('^[a&&b]$') && '['.matches('^[[a]$') && '~'.matches('^[~~]$') && 'b'.matches('^[[:alpha:]&&]$')",
            "t.matches('gr..e') && t.matches('[äöü]ber') && t.matches('(?i)GRÖ[ßs]E')",
            r"!'é'.matches(r'\w') && 'é'.matches('^.$') && '٣'.matches(r'^\D$') && !'٣'.matches(r'\d')",
            r"'a-b]'.matches(r'^[\w-]+[]]$') && 'x y'.matches(r'^[^\d]\s[^\s]$')",
            "''.matches('') && 'abc'.matches('b')",
        ],
    );
}

#[test]
fn has_checks_one_key() {
    let result = json!({ "a": { "b": null } });
    assert_all_true(
        &result,
        &["has(result.a) && has(a.b) && !has(a.c) && has(step.order)"],
    );
    assert_eq!(evaluation_error("has(a.c.d)", &result), missing("a.c"));
    assert!(matches!(
        evaluation_error("has(a.b.d)", &result),
        EvaluationError::TypeMismatch { .. }
    ));
}

#[test]
fn keeps_the_source_unchanged() {
    let source = " confidence\t>= 0.8 // comment\n";
    let condition = parse(source);
    assert_eq!(condition.source(), source);
    assert_eq!(condition.clone(), condition);
    assert_ne!(condition, parse("confidence >= 0.8"));
    assert_eq!(format!("{condition:?}"), format!("Condition({source:?})"));
    fn assert_send_sync<T: Send + Sync + 'static>(_: &T) {}
    assert_send_sync(&condition);
}

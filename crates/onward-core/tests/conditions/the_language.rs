//! The language: operators, texts, comprehensions, patterns, and `===`.

use super::*;

#[test]
fn three_equals_signs_are_two() {
    let result = json!({ "a": "===", "b": "!==" });
    all_true(
        &result,
        &[
            "a === '===' && b === \"!==\"",
            "a !== '==' && a.size() === 3 && b.size()===3",
            "a == r'===' && a == '''===''' // === is not looked at",
            "1===1&&1!==2",
            "a.contains('==') // !==\n && true",
        ],
    );
    all_refused(&[
        ("a ==== b", 1, 6, "`=` is not an operator; expected `==`"),
        ("a === 1 &&& b", 1, 11, "expected `&&`"),
        ("'===' === ", 1, 11, "found the end"),
    ]);
}

#[test]
fn operators_bind_as_in_cel() {
    all_true(
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
fn texts_have_all_the_forms_of_cel() {
    all_true(
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
fn comprehensions_go_through_lists_and_keys() {
    let result = json!({
        "sources": [{ "url": "https://a", "score": 0.9 }, { "url": "http://b", "score": 0.4 }],
        "votes": { "b": 1, "a": 2, "c": 3 },
    });
    all_true(
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
fn patterns_are_those_of_re2() {
    all_true(
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
fn has_asks_for_one_key() {
    let result = json!({ "a": { "b": null } });
    all_true(
        &result,
        &["has(result.a) && has(a.b) && !has(a.c) && has(step.order)"],
    );
    assert_eq!(why("has(a.c.d)", &result), "`a.c` is missing");
    assert_eq!(why("has(a.b.d)", &result), "`a.b.d` is asked of null");
}

#[test]
fn the_source_is_kept_as_written() {
    let source = " confidence\t>= 0.8 // sure\n";
    let condition = parsed(source);
    assert_eq!(condition.source(), source);
    assert_eq!(condition.clone(), condition);
    assert_ne!(condition, parsed("confidence >= 0.8"));
    assert_eq!(format!("{condition:?}"), format!("Condition({source:?})"));
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    shared(&condition);
}

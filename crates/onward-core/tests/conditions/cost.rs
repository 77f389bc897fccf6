//! The budget: what ordinary conditions take of it, and what goes over.
//!
//! Nothing here looks at a clock. What a unit of work takes was measured by hand.

use super::*;

/// As much as a result may hold: a long text, a full list, a list of objects.
fn full() -> Json {
    json!({
        "text": "x".repeat(25_000),
        "list": (0..1000).collect::<Vec<u32>>(),
        "sources": (0..700)
            .map(|i| json!({ "url": format!("https://example.org/{i}"), "score": 0.9 }))
            .collect::<Vec<Json>>(),
    })
}

#[test]
fn ordinary_conditions_take_a_fraction_of_the_budget() {
    let result = full();
    assert!(result.to_string().len() > 60_000);
    for source in [
        "result.sources.all(s, s.url.startsWith(\"https\") && s.score > 0.5)",
        "sources.exists(s, s.url.matches('/700$')) || sources.size() > 3",
        "sources.filter(s, s.score > 0.5).map(s, s.url).size() == 700",
        "text.matches('(?i)x.*x') && text.contains('x') && list == list && 999 in list",
        "result == result && confidence < 0.8",
    ] {
        let (answer, spent) = parsed(source).evaluate_metered(&scope(Some(&result)));
        assert_eq!(answer, Ok(true), "{source}");
        assert!(spent.work < MAX_WORK / 10, "{source}: {spent:?}");
        assert!(spent.bytes < MAX_BYTES / 10, "{source}: {spent:?}");
    }
}

/// Conditions that are short and take long, each in its own way.
fn explosions() -> Vec<String> {
    let doubled =
        |source: &str, times: usize| format!("{source}{}", ".map(x, [x, x])".repeat(times));
    vec![
        "list.exists(x, text.contains('y'))".to_owned(),
        "list.exists(x, text.matches('y'))".to_owned(),
        "list.exists(x, text + 'y' == 'y')".to_owned(),
        "list.exists(x, text < text + 'a' && false)".to_owned(),
        "list.all(x, list == list)".to_owned(),
        "list.all(x, !(5000 in list))".to_owned(),
        "list.map(x, list + list).size() == 1000".to_owned(),
        "list.map(x, text + text).size() == 1000".to_owned(),
        "list.map(x, list) == list.map(x, list)".to_owned(),
        "list.all(x, sources.size() == 700 && result == result)".to_owned(),
        format!("({}).size() > 0", vec!["text"; 60].join(" + ")),
        format!("({}).size() > 0", vec!["list"; 60].join(" + ")),
        format!("[{}].all(y, y == y)", doubled("[1]", 40)),
        format!("{}.size() == 1", doubled("list", 50)),
        format!(
            "list.exists(x, [{}].size() < 0)",
            vec!["string(0.1)"; 60].join(", ")
        ),
    ]
}

#[test]
fn what_explodes_is_given_up() {
    let result = full();
    for source in explosions() {
        assert_eq!(
            tried(&source, &result),
            Err(Unevaluable::TooCostly),
            "{source}"
        );
    }
    assert_eq!(
        why("list.exists(x, text.contains('y'))", &result),
        "the condition takes too much work on this result: it was given up"
    );
}

#[test]
fn the_longest_condition_over_the_longest_list_is_tried_to_its_end() {
    let result = full();
    let body = vec!["x < 0"; 63].join(" || ");
    let source = format!("!list.exists(x, {body})");
    let (answer, spent) = parsed(&source).evaluate_metered(&scope(Some(&result)));
    assert_eq!(answer, Ok(true));
    assert!(spent.work > MAX_WORK / 2, "{spent:?}");
}

#[test]
fn a_spent_budget_is_not_overruled() {
    let result = full();
    for source in explosions().iter().take(10) {
        let source = format!("({source}) || true");
        assert_eq!(
            tried(&source, &result),
            Err(Unevaluable::TooCostly),
            "{source}"
        );
    }
}

#[test]
fn a_summary_of_any_length_is_within_the_budget() {
    let summary = "x".repeat(20_000_000);
    let long = Scope {
        result_summary: &summary,
        ..scope(None)
    };
    for source in [
        "resultSummary.contains('y')",
        "resultSummary.size() > resultSummary.size()",
    ] {
        let (answer, spent) = parsed(source).evaluate_metered(&long);
        assert_eq!(answer, Err(Unevaluable::TooCostly), "{source}");
        assert!(spent.work <= MAX_WORK);
    }
    assert_eq!(
        parsed("resultSummary.startsWith('x')").evaluate(&long),
        Ok(true)
    );
}

#[test]
fn a_pattern_that_would_explode_pays_for_every_state() {
    let cost = |source: &str, text: &str| {
        let result = json!({ "text": text });
        let (answer, spent) = parsed(source).evaluate_metered(&scope(Some(&result)));
        (answer, spent.work)
    };
    let gap = "text.matches('error.{0,50}timeout')";
    assert_eq!(cost(gap, "an error, then a timeout").0, Ok(true));
    assert_eq!(
        cost(gap, &format!("error{}timeout", "é".repeat(51))).0,
        Ok(false)
    );
    let (answer, work) = cost(gap, &"x".repeat(1000));
    assert_eq!(answer, Ok(false));
    assert!(work > 1_000_000, "{work}");
    assert_eq!(
        cost(gap, &"x".repeat(10_000)).0,
        Err(Unevaluable::TooCostly)
    );
    // A whole automaton takes one step per byte, until the allowance for them is used up.
    let large = "text.matches('a[ab]{9}c')";
    let (_, once) = cost(large, &"x".repeat(1000));
    let (_, often) = cost(&[large; 8].join(" || "), &"x".repeat(1000));
    assert!(once < 2000 && often > 20 * once, "{once} {often}");
}

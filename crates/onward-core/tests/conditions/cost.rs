//! The work and memory budget: the cost of typical conditions, and conditions that exceed it. Cost
//! is counted in units, not measured in time.

use super::*;

/// A result near the size limit: a long text, a full list, a list of objects.
fn large_result() -> Json {
    json!({
        "text": "x".repeat(25_000),
        "list": (0..1000).collect::<Vec<u32>>(),
        "sources": (0..700)
            .map(|i| json!({ "url": format!("https://example.org/{i}"), "score": 0.9 }))
            .collect::<Vec<Json>>(),
    })
}

#[test]
fn typical_conditions_cost_less_than_a_tenth_of_the_budget() {
    let result = large_result();
    assert!(result.to_string().len() > 60_000);
    for source in [
        "result.sources.all(s, s.url.startsWith(\"https\") && s.score > 0.5)",
        "sources.exists(s, s.url.matches('/700$')) || sources.size() > 3",
        "sources.filter(s, s.score > 0.5).map(s, s.url).size() == 700",
        "text.matches('(?i)x.*x') && text.contains('x') && list == list && 999 in list",
        "result == result && confidence < 0.8",
    ] {
        let (outcome, spent) = parse(source).evaluate_metered(&scope(Some(&result)));
        assert_eq!(outcome, Ok(true), "{source}");
        assert!(spent.work < MAX_WORK / 10, "{source}: {spent:?}");
        assert!(spent.bytes < MAX_BYTES / 10, "{source}: {spent:?}");
    }
}

/// Short conditions with a high cost, each for another reason.
fn costly_conditions() -> Vec<String> {
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
fn stops_a_condition_that_exceeds_the_budget() {
    let result = large_result();
    for source in costly_conditions() {
        assert_eq!(
            evaluate(&source, &result),
            Err(EvaluationError::TooCostly),
            "{source}"
        );
    }
}

#[test]
fn the_longest_condition_over_the_longest_list_stays_within_the_budget() {
    let result = large_result();
    let body = vec!["x < 0"; 63].join(" || ");
    let source = format!("!list.exists(x, {body})");
    let (outcome, spent) = parse(&source).evaluate_metered(&scope(Some(&result)));
    assert_eq!(outcome, Ok(true));
    assert!(spent.work > MAX_WORK / 2, "{spent:?}");
}

#[test]
fn an_exhausted_budget_is_never_overridden() {
    let result = large_result();
    for source in costly_conditions().iter().take(10) {
        let source = format!("({source}) || true");
        assert_eq!(
            evaluate(&source, &result),
            Err(EvaluationError::TooCostly),
            "{source}"
        );
    }
}

#[test]
fn the_cost_of_a_long_summary_is_limited() {
    let summary = "x".repeat(20_000_000);
    let long = Scope {
        result_summary: &summary,
        ..scope(None)
    };
    for source in [
        "resultSummary.contains('y')",
        "resultSummary.size() > resultSummary.size()",
    ] {
        let (outcome, spent) = parse(source).evaluate_metered(&long);
        assert_eq!(outcome, Err(EvaluationError::TooCostly), "{source}");
        assert!(spent.work <= MAX_WORK);
    }
    assert_eq!(
        parse("resultSummary.startsWith('x')").evaluate(&long),
        Ok(true)
    );
}

#[test]
fn a_pattern_without_a_dfa_costs_one_unit_per_state_and_byte() {
    let cost = |source: &str, text: &str| {
        let result = json!({ "text": text });
        let (outcome, spent) = parse(source).evaluate_metered(&scope(Some(&result)));
        (outcome, spent.work)
    };
    let gap = "text.matches('error.{0,50}timeout')";
    assert_eq!(cost(gap, "an error, then a timeout").0, Ok(true));
    assert_eq!(
        cost(gap, &format!("error{}timeout", "é".repeat(51))).0,
        Ok(false)
    );
    let (outcome, work) = cost(gap, &"x".repeat(1000));
    assert_eq!(outcome, Ok(false));
    assert!(work > 1_000_000, "{work}");
    assert_eq!(
        cost(gap, &"x".repeat(10_000)).0,
        Err(EvaluationError::TooCostly)
    );
    // A DFA costs one unit per byte, until the memory budget for automata is used up.
    let large = "text.matches('a[ab]{9}c')";
    let (_, once) = cost(large, &"x".repeat(1000));
    let (_, repeated) = cost(&[large; 8].join(" || "), &"x".repeat(1000));
    assert!(once < 2000 && repeated > 20 * once, "{once} {repeated}");
}

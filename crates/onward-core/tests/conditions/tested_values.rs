//! The values that a condition reads, as they are displayed next to it.

use serde_json::json;

use super::{Condition, Json, scope};

fn values(source: &str, result: &Json) -> Vec<String> {
    let condition = Condition::parse(source).unwrap();
    let values = condition.tested_values(&scope(Some(result)));
    let text =
        |value: &onward_core::condition::TestedValue| format!("{} = {}", value.path, value.value);
    values.iter().map(text).collect()
}

#[test]
fn each_path_is_listed_once_with_its_value() {
    let result =
        json!({ "spread": 64, "verdict": "low", "sources": ["a", "b", "c"], "empty": null });
    let check =
        |source, expected: &[&str]| assert_eq!(values(source, &result), expected, "{source}");
    check("confidence >= 0.95", &["confidence = 0.75"]);
    check(
        "has(result.spread) && result.spread > 25",
        &["result.spread = 64"],
    );
    check("has(result.price)", &["has(result.price) = false"]);
    check("spread > 10 || spread < 2", &["spread = 64"]);
    check(
        "result.verdict == 'low' && !(step.order > 3)",
        &["result.verdict = \"low\"", "step.order = 2"],
    );
    check("result.sources.size() > 2", &["size(result.sources) = 3"]);
    check("result.sources[1] == 'b'", &["result.sources[1] = \"b\""]);
    check(
        "result.sources.exists(source, source == 'b')",
        &["result.sources = 3 items"],
    );
    check("result.price > 3", &["result.price = missing"]);
    check("result.empty == null", &["result.empty = null"]);
    check("type(result.spread) == int", &["result.spread = 64"]);
}

#[test]
fn values_of_the_plan_are_not_listed() {
    assert_eq!(
        values("plan.failed > 0 && confidence > 0.5", &json!({})),
        ["confidence = 0.75"]
    );
}

#[test]
fn long_strings_are_truncated_and_large_results_have_no_values() {
    let long = json!({ "text": "x".repeat(500) });
    assert_eq!(
        values("result.text == ''", &long),
        [format!("result.text = \"{}\"…", "x".repeat(40))]
    );
    let large = json!({ "items": vec![0; 2_000] });
    assert!(values("result.items.size() > 3", &large).is_empty());
    assert_eq!(values("confidence > 0.5", &large), ["confidence = 0.75"]);
}

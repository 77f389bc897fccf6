//! The timeout of a call, from its tool and its input.

use std::time::Duration;

use onward_core::call::{CallPolicy, Limit};
use serde_json::{Value, json};

fn seconds(seconds: u64) -> Limit {
    Limit::After(Duration::from_secs(seconds))
}

#[track_caller]
fn assert_limit(tool: &str, input: Value, limit: Limit) {
    assert_eq!(Limit::for_call("", tool, &input), limit, "{tool} {input}");
}

#[test]
fn zero_negative_and_nan_count_as_unspecified() {
    for number in [0.0, -1.0, -0.0, f64::NAN, f64::NEG_INFINITY, 1e-12] {
        assert_eq!(
            Limit::from_millis(Some(number)),
            Limit::Unspecified,
            "{number}"
        );
    }
    assert_eq!(Limit::from_millis(None), Limit::Unspecified);
    assert_eq!(
        Limit::from_millis(Some(1500.0)),
        Limit::After(Duration::from_millis(1500))
    );
}

#[test]
fn a_timeout_out_of_range_counts_as_unspecified() {
    assert_eq!(Limit::from_millis(Some(f64::INFINITY)), Limit::Unspecified);
    assert_eq!(Limit::from_millis(Some(1e300)), Limit::Unspecified);
}

#[test]
fn reads_the_timeout_of_a_shell_command() {
    assert_limit("Bash", json!({ "timeout": 600_000 }), seconds(600));
    assert_limit("bash", json!({ "timeout_seconds": 600 }), seconds(600));
    assert_limit("shell", json!({ "timeout_ms": 1000 }), seconds(1));
    assert_limit("Bash", json!({ "command": "make" }), Limit::Unspecified);
    assert_limit("Bash", json!({ "timeout": 0 }), Limit::Unspecified);
    assert_limit("Bash", json!({ "timeout": "soon" }), Limit::Unspecified);
}

#[test]
fn ignores_a_number_without_a_known_unit() {
    assert_limit("fetch", json!({ "timeout": 600 }), Limit::Unspecified);
}

#[test]
fn subagents_and_questions_to_the_user_have_no_timeout() {
    for tool in [
        "Task",
        "Agent",
        "AskUserQuestion",
        "ExitPlanMode",
        "ask_question",
    ] {
        assert_limit(tool, json!({ "timeout": 5 }), Limit::Never);
    }
}

#[test]
fn mcp_tools_have_a_timeout_of_more_than_a_day() {
    assert_limit("mcp__server__tool", json!({}), seconds(100_000));
    assert_limit(
        "mcp__server__tool",
        json!({ "timeout_ms": 5000 }),
        seconds(5),
    );
}

#[test]
fn ignores_an_input_that_is_not_an_object() {
    for input in [json!(null), json!("timeout"), json!([1, 2]), json!(7)] {
        assert_limit("Bash", input, Limit::Unspecified);
    }
}

#[test]
fn calls_that_return_together_have_the_longest_timeout() {
    let longest = |limits: &[Limit]| CallPolicy::default().longest(limits.iter().copied());
    assert_eq!(longest(&[seconds(1), seconds(600)]), seconds(600));
    assert_eq!(
        longest(&[seconds(1), Limit::Unspecified]),
        Limit::Unspecified
    );
    assert_eq!(longest(&[Limit::Unspecified, seconds(121)]), seconds(121));
    assert_eq!(longest(&[Limit::Never, seconds(600)]), Limit::Never);
    assert_eq!(longest(&[]), Limit::Unspecified);
}

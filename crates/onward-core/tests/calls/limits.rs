//! How long a call may take, told from its tool and its input.

use std::time::Duration;

use onward_core::call::{CallPolicy, Limit};
use serde_json::{Value, json};

fn seconds(seconds: u64) -> Limit {
    Limit::After(Duration::from_secs(seconds))
}

#[track_caller]
fn says(tool: &str, input: Value, limit: Limit) {
    assert_eq!(Limit::of_call(tool, &input), limit, "{tool} {input}");
}

#[test]
fn a_timeout_of_zero_or_less_counts_as_not_given() {
    for number in [0.0, -1.0, -0.0, f64::NAN, f64::NEG_INFINITY, 1e-12] {
        assert_eq!(Limit::of_seconds(Some(number)), Limit::Unsaid, "{number}");
    }
    assert_eq!(Limit::of_seconds(None), Limit::Unsaid);
    assert_eq!(
        Limit::of_seconds(Some(1.5)),
        Limit::After(Duration::from_millis(1500))
    );
}

#[test]
fn what_is_too_long_to_be_a_time_counts_as_not_given() {
    assert_eq!(Limit::of_seconds(Some(f64::INFINITY)), Limit::Unsaid);
    assert_eq!(Limit::of_seconds(Some(1e300)), Limit::Unsaid);
}

#[test]
fn a_shell_command_says_its_own_timeout() {
    says("Bash", json!({ "timeout": 600_000 }), seconds(600));
    says("bash", json!({ "timeout_seconds": 600 }), seconds(600));
    says("shell", json!({ "timeout_ms": 1000 }), seconds(1));
    says("Bash", json!({ "command": "make" }), Limit::Unsaid);
    says("Bash", json!({ "timeout": 0 }), Limit::Unsaid);
    says("Bash", json!({ "timeout": "soon" }), Limit::Unsaid);
}

#[test]
fn a_number_whose_unit_nobody_knows_counts_for_nothing() {
    says("fetch", json!({ "timeout": 600 }), Limit::Unsaid);
}

#[test]
fn a_subagent_and_a_question_to_the_person_have_no_timeout() {
    for tool in [
        "Task",
        "Agent",
        "AskUserQuestion",
        "ExitPlanMode",
        "ask_question",
    ] {
        says(tool, json!({ "timeout": 5 }), Limit::Never);
    }
}

#[test]
fn a_tool_of_a_server_has_more_than_a_day() {
    says("mcp__sea__tides", json!({}), seconds(100_000));
    says("mcp__sea__tides", json!({ "timeout_ms": 5000 }), seconds(5));
}

#[test]
fn an_input_that_is_no_object_says_nothing() {
    for input in [json!(null), json!("timeout"), json!([1, 2]), json!(7)] {
        says("Bash", input, Limit::Unsaid);
    }
}

#[test]
fn calls_that_are_answered_together_may_take_as_long_as_the_slowest() {
    let longest = |limits: &[Limit]| CallPolicy::default().longest(limits.iter().copied());
    assert_eq!(longest(&[seconds(1), seconds(600)]), seconds(600));
    assert_eq!(longest(&[seconds(1), Limit::Unsaid]), Limit::Unsaid);
    assert_eq!(longest(&[Limit::Unsaid, seconds(121)]), seconds(121));
    assert_eq!(longest(&[Limit::Never, seconds(600)]), Limit::Never);
    assert_eq!(longest(&[]), Limit::Unsaid);
}

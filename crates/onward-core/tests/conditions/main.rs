//! Branch conditions, from outside: what they say, what they refuse, and that nothing which
//! passes goes over its budget.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a small stack needs a thread of its own, and `cel` beside ours a hash map"
)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the functions that tests share fail as tests do"
)]

mod bounds;
mod cost;
mod hostile_sources;
mod numbers;
mod properties;
mod refusals;
mod the_language;
mod what_a_condition_sees;
mod what_counts_as_false;

use onward_core::condition::{
    Condition, InvalidCondition, MAX_BYTES, MAX_DEPTH, MAX_ENTRIES, MAX_HEIGHT, MAX_NESTING,
    MAX_NODES, MAX_SEARCHED_BYTES, MAX_SOURCE_BYTES, MAX_WORK, PlanScope, Scope, StepScope,
    Unevaluable,
};
use serde_json::{Value as Json, json};

fn scope(result: Option<&Json>) -> Scope<'_> {
    Scope {
        confidence: Some(0.75),
        result_summary: "three sources, one of them doubtful",
        result,
        step: StepScope {
            order: 2,
            step_type: "search",
            attempt: 1,
        },
        plan: PlanScope {
            progress: 40,
            completed: 2,
            failed: 1,
            pending: 2,
        },
    }
}

fn parsed(source: &str) -> Condition {
    Condition::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn refused(source: &str) -> InvalidCondition {
    match Condition::parse(source) {
        Ok(_) => panic!("accepted: {source}"),
        Err(error) => error,
    }
}

fn tried(source: &str, result: &Json) -> Result<bool, Unevaluable> {
    let (answer, spent) = parsed(source).evaluate_metered(&scope(Some(result)));
    assert!(
        spent.work <= MAX_WORK && spent.bytes <= MAX_BYTES,
        "{source}: {spent:?}"
    );
    answer
}

fn why(source: &str, result: &Json) -> String {
    match tried(source, result) {
        Ok(answer) => panic!("{source} is {answer}"),
        Err(reason) => reason.to_string(),
    }
}

/// Each source is true of the result.
fn all_true(result: &Json, sources: &[&str]) {
    for source in sources {
        assert_eq!(tried(source, result), Ok(true), "{source}");
    }
}

/// Each source is refused at that line and column, with that in the message.
fn all_refused(table: &[(&str, u32, u32, &str)]) {
    for (source, line, column, message) in table {
        let error = refused(source);
        assert_eq!(
            (error.line, error.column),
            (*line, *column),
            "{source}: {error}"
        );
        assert!(error.message.contains(message), "{source}: {error}");
    }
}

//! Tests of branch conditions: the language, errors, limits and the cost of evaluation.
//!
//! `golden/` contains the expected error messages. `ONWARD_BLESS=1` rewrites them.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "small-stack threads, and hash maps for the `cel` crate"
)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod cost;
mod evaluation_errors;
mod hostile_sources;
mod language;
mod limits;
mod names;
mod numbers;
mod parse_errors;
mod properties;
mod tested_values;

use std::fmt::Display;

use onward_core::condition::{
    Condition, EvaluationError, InvalidCondition, MAX_BYTES, MAX_DEPTH, MAX_ENTRIES,
    MAX_EVALUATED_BYTES, MAX_HEIGHT, MAX_NESTING, MAX_NODES, MAX_SOURCE_BYTES, MAX_WORK, PlanScope,
    Scope, StepScope,
};
use onward_testbed::golden;
use serde_json::{Value as Json, json};

fn scope(result: Option<&Json>) -> Scope<'_> {
    Scope {
        confidence: Some(0.75),
        result_summary: "three sources, one of them outdated",
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

fn parse(source: &str) -> Condition {
    Condition::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn parse_error(source: &str) -> InvalidCondition {
    match Condition::parse(source) {
        Ok(_) => panic!("accepted: {source}"),
        Err(error) => error,
    }
}

fn evaluate(source: &str, result: &Json) -> Result<bool, EvaluationError> {
    let (outcome, spent) = parse(source).evaluate_metered(&scope(Some(result)));
    assert!(
        spent.work <= MAX_WORK && spent.bytes <= MAX_BYTES,
        "{source}: {spent:?}"
    );
    outcome
}

fn evaluation_error(source: &str, result: &Json) -> EvaluationError {
    match evaluate(source, result) {
        Ok(value) => panic!("{source} is {value}"),
        Err(error) => error,
    }
}

fn missing(path: &str) -> EvaluationError {
    EvaluationError::Missing {
        path: path.to_owned(),
    }
}

/// Checks that each condition is true for the result.
fn assert_all_true(result: &Json, sources: &[&str]) {
    for source in sources {
        assert_eq!(evaluate(source, result), Ok(true), "{source}");
    }
}

/// Checks the position of each parse error, and the messages with a golden file.
fn assert_parse_errors(golden: &str, table: &[(&str, u32, u32)]) {
    let errors = table.iter().map(|(source, line, column)| {
        let error = parse_error(source);
        let position = (error.line, error.column);
        assert_eq!(position, (*line, *column), "{source}: {error}");
        (*source, error)
    });
    assert_golden(golden, errors);
}

/// Compares error messages with `golden/NAME.txt`.
fn assert_golden<'s>(name: &str, errors: impl IntoIterator<Item = (&'s str, impl Display)>) {
    let text: String = errors
        .into_iter()
        .map(|(source, error)| format!("{source:?}\n    {error}\n"))
        .collect();
    let path = format!(
        "{}/tests/conditions/golden/{name}.txt",
        env!("CARGO_MANIFEST_DIR")
    );
    golden::assert_matches(path, &text);
}

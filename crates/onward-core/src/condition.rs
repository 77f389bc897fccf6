//! Branch conditions: what `conditionExpression` says, read once and tried against a step's result.
//!
//! The language is CEL, with `===` and `!==` as spellings of `==` and `!=`. Whatever passes
//! [`Condition::parse`] is tried within a fixed budget of work and memory, counted and not timed;
//! what would need more is [`Unevaluable`]. Nothing here panics, on any source and any result.
//!
//! It is an interpreter of our own. The `cel` crate's cannot be bounded from outside: its errors
//! copy both operands whole, `matches` compiles its pattern on every call, and its maps are
//! iterated in random order, so that one condition could answer differently twice. Its parser
//! overflows a 1 MiB stack on five nested brackets in a debug build. What is the same in both is
//! held by tests, which run `cel` beside this.
//!
//! What it refuses to do is in `parse`; what it costs, in `meter`; where it differs from CEL, in
//! `value`.

mod call;
mod comprehend;
mod evaluate;
mod failure;
mod function;
mod grammar;
mod measure;
mod meter;
mod number;
mod parse;
mod pattern;
mod quoted;
mod token;
mod tree;
mod value;

use std::fmt;
use std::sync::Arc;

pub use failure::Unevaluable;
pub use measure::{MAX_DEPTH, MAX_ENTRIES, MAX_RESULT_BYTES};
pub use meter::{MAX_BYTES, MAX_WORK, Spent};
pub use parse::{MAX_HEIGHT, MAX_NESTING, MAX_NODES, MAX_SOURCE_BYTES};

/// A branch's condition: parsed, within its bounds, ready to be tried.
///
/// Cheap to clone. Two are equal where their sources are, letter by letter.
#[derive(Clone)]
pub struct Condition {
    parsed: Arc<Parsed>,
}

struct Parsed {
    source: String,
    root: tree::Node,
    reads_result: bool,
}

impl Condition {
    /// Reads a condition, and holds it to every bound that can be told from its text.
    pub fn parse(source: &str) -> Result<Condition, InvalidCondition> {
        match parse::parse(source) {
            Ok(parse::Outcome { root, reads_result }) => Ok(Condition {
                parsed: Arc::new(Parsed {
                    source: source.to_owned(),
                    root,
                    reads_result,
                }),
            }),
            Err(fault) => Err(InvalidCondition::at(source, fault)),
        }
    }

    /// The condition as its author wrote it.
    pub fn source(&self) -> &str {
        &self.parsed.source
    }

    /// Whether the condition holds for this result.
    ///
    /// A condition that names neither `result` nor anything that could be a key of it does not
    /// look at the result, and is tried however large that is. Any other is not tried at all
    /// against a result past its bounds, even where a part of it could have decided alone:
    /// otherwise the same branch would be taken or not by the order of two operands.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<bool, Unevaluable> {
        self.evaluate_metered(scope).0
    }

    /// As [`Condition::evaluate`], and what that cost; for tests, which hold it to the budget.
    #[doc(hidden)]
    pub fn evaluate_metered(&self, scope: &Scope<'_>) -> (Result<bool, Unevaluable>, Spent) {
        if self.parsed.reads_result
            && let Some(result) = scope.result
            && let Err(refusal) = measure::check(result)
        {
            return (Err(refusal), Spent::default());
        }
        evaluate::evaluate(&self.parsed.root, scope)
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        self.source() == other.source()
    }
}

impl Eq for Condition {}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.source()).finish()
    }
}

/// What a condition sees.
///
/// Beside these five names it sees the top-level keys of `result` by their bare names, except
/// those that would hide one of the five.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// `confidence`: how sure the agent was, or null.
    pub confidence: Option<f64>,
    /// `resultSummary`: the result in words.
    pub result_summary: &'a str,
    /// `result`: the structured result, or null.
    pub result: Option<&'a serde_json::Value>,
    /// `step`: the step that was completed.
    pub step: StepScope<'a>,
    /// `plan`: the plan after that step.
    pub plan: PlanScope,
}

/// What a condition sees as `step`.
#[derive(Clone, Copy, Debug)]
pub struct StepScope<'a> {
    /// `step.order`, from 1.
    pub order: u32,
    /// `step.type`, such as `search`.
    pub step_type: &'a str,
    /// `step.attempt`, from 1.
    pub attempt: u32,
}

/// What a condition sees as `plan`.
#[derive(Clone, Copy, Debug)]
pub struct PlanScope {
    /// `plan.progress`, in percent.
    pub progress: u32,
    /// `plan.completed`: how many steps are.
    pub completed: u32,
    /// `plan.failed`: how many steps are.
    pub failed: u32,
    /// `plan.pending`: how many steps are.
    pub pending: u32,
}

/// A condition that cannot be accepted: where it goes wrong, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct InvalidCondition {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl InvalidCondition {
    fn at(source: &str, fault: parse::Fault) -> InvalidCondition {
        // A fault lies between two characters; `get` rather than an index, so that even one
        // that does not is only shown in the wrong place.
        let before = source.get(..fault.at).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        InvalidCondition {
            line: count(before.matches('\n').count()).saturating_add(1),
            column: count(before[line_start..].chars().count()).saturating_add(1),
            message: fault.message,
        }
    }
}

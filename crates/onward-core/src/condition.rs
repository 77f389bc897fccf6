//! Branch conditions: what `conditionExpression` says, read once and tried against a step's result.
//!
//! The language is CEL, with `===` and `!==` as spellings of `==` and `!=`. Whatever passes
//! [`Condition::parse`] is tried within a fixed budget of work and memory, counted and not timed;
//! what would need more is [`Unevaluable`]. Nothing here panics, on any source and any result.
//!
//! ```
//! use onward_core::condition::Condition;
//!
//! assert!(Condition::parse("confidence >= 0.8 && result.sources.size() > 2").is_ok());
//! assert!(Condition::parse(r#"result.verdict === "reject""#).is_ok());
//!
//! let wrong = Condition::parse("confidence >= ").unwrap_err();
//! assert_eq!((wrong.line, wrong.column), (1, 15));
//! ```
//!
//! # What can be written
//!
//! | | |
//! |---|---|
//! | names | `confidence`, `resultSummary`, `result`, `step`, `plan`, and the top-level keys of `result`: see [`Scope`] |
//! | operators | `==` `!=` `<` `<=` `>` `>=` `in` `&&` `\|\|` `!` `+` `-` `*` `/` `%` `? :` `.` `[]` |
//! | functions | `size` `contains` `startsWith` `endsWith` `matches` `has` `int` `uint` `double` `string` `bool` `dyn` `type` |
//! | over lists and keys | `all` `exists` `exists_one` `filter` `map`, one of them inside no other |
//!
//! # What is refused, and what counts as false
//!
//! Refused when it is made, with its position: what is longer than [`MAX_SOURCE_BYTES`], has more than
//! [`MAX_NODES`] nodes, is nested deeper than [`MAX_NESTING`] or [`MAX_HEIGHT`]; one comprehension
//! inside another; `matches` without a literal pattern, or with one too complex; a function that is not
//! in the table. Counts as false when it is tried: a path that is missing, a type that does not fit, a
//! result over [`MAX_SEARCHED_BYTES`] or with more than [`MAX_ENTRIES`] entries in one list or object
//! (not searched, unless the condition does not look at it), and whatever would take more than
//! [`MAX_WORK`] or [`MAX_BYTES`]. [`Unevaluable`] says why.
//!
//! # Where it differs from CEL
//!
//! Whole and decimal numbers may be added and are compared exactly; division is CEL's (`5 / 2` is 2).
//! The keys of an object are gone through in alphabetical order. `\d`, `\w`, `\s` and `\b` are ASCII.
//! Bytes, timestamps, durations, message literals and `.?` are left out.
//!
//! It is an interpreter of our own: the `cel` crate's cannot be bounded from outside. Why stands in
//! `docs/decisions/0003`; that both answer the same is held by tests, which run `cel` beside this.

mod call;
mod comprehend;
mod evaluate;
mod failure;
mod fault;
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
pub use measure::{MAX_DEPTH, MAX_ENTRIES, MAX_SEARCHED_BYTES};
pub use meter::{MAX_BYTES, MAX_WORK, MAX_WORK_PER_STEP, Spent};
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
    pattern_bytes: usize,
}

impl Condition {
    /// Reads a condition, and holds it to every bound that can be told from its text.
    pub fn parse(source: &str) -> Result<Condition, InvalidCondition> {
        match parse::parse(source) {
            Ok(parsed) => Ok(Condition {
                parsed: Arc::new(Parsed {
                    source: source.to_owned(),
                    root: parsed.root,
                    reads_result: parsed.reads_result,
                    pattern_bytes: parsed.pattern_bytes,
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
        let mut trials = Trials::of(scope);
        let answer = trials.try_one(self);
        (answer, trials.spent)
    }

    /// What its patterns took of the memory that patterns may take.
    pub(crate) fn pattern_bytes(&self) -> usize {
        self.parsed.pattern_bytes
    }
}

/// The trials of several conditions on one result: it is measured once, and all draw on one budget of
/// work, so that a hundred of them cannot take a hundred times as long as one may.
pub(crate) struct Trials<'a> {
    scope: &'a Scope<'a>,
    measured: Option<Result<(), Unevaluable>>,
    spent: Spent,
}

impl<'a> Trials<'a> {
    pub(crate) fn of(scope: &'a Scope<'a>) -> Self {
        Self {
            scope,
            measured: None,
            spent: Spent::default(),
        }
    }

    pub(crate) fn try_one(&mut self, condition: &Condition) -> Result<bool, Unevaluable> {
        if self.spent.work >= MAX_WORK_PER_STEP {
            return Err(Unevaluable::NotReached);
        }
        if condition.parsed.reads_result
            && let Some(result) = self.scope.result
        {
            let measured = self.measured.get_or_insert_with(|| measure::check(result));
            measured.clone()?;
        }
        let (answer, spent) = evaluate::evaluate(&condition.parsed.root, self.scope);
        self.spent.work = self.spent.work.saturating_add(spent.work);
        self.spent.bytes = self.spent.bytes.saturating_add(spent.bytes);
        answer
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
    fn at(source: &str, fault: fault::Fault) -> InvalidCondition {
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

//! Branch conditions: parses `conditionExpression` and evaluates it against a step's result.
//!
//! The language is CEL, with `===` and `!==` as aliases of `==` and `!=`. A parsed condition is
//! evaluated within a fixed budget of work and memory, counted and not timed; a condition that
//! exceeds it fails with an [`EvaluationError`]. No source and no result causes a panic.
//!
//! ```
//! use onward_core::condition::Condition;
//!
//! assert!(Condition::parse("confidence >= 0.8 && result.sources.size() > 2").is_ok());
//! assert!(Condition::parse(r#"result.verdict === "reject""#).is_ok());
//!
//! let error = Condition::parse("confidence >= ").unwrap_err();
//! assert_eq!((error.line, error.column), (1, 15));
//! ```
//!
//! # Language
//!
//! | | |
//! |---|---|
//! | names | `confidence`, `resultSummary`, `result`, `step`, `plan`, and the top-level keys of `result`: see [`Scope`] |
//! | operators | `==` `!=` `<` `<=` `>` `>=` `in` `&&` `\|\|` `!` `+` `-` `*` `/` `%` `? :` `.` `[]` |
//! | functions | `size` `contains` `startsWith` `endsWith` `matches` `has` `int` `uint` `double` `string` `bool` `dyn` `type` |
//! | comprehensions over lists and keys | `all` `exists` `exists_one` `filter` `map`, not nested |
//!
//! # Rejected conditions and conditions that count as false
//!
//! [`Condition::parse`] rejects, with the position: a source longer than [`MAX_SOURCE_BYTES`], more
//! than [`MAX_NODES`] nodes, nesting deeper than [`MAX_NESTING`] or [`MAX_HEIGHT`], nested
//! comprehensions, `matches` with a pattern that is not a literal or too complex, and unknown
//! functions.
//!
//! [`Condition::parse_boolean`] also rejects a condition that is never a boolean.
//!
//! A condition counts as false, with an [`EvaluationError`], for: a missing path, a type mismatch,
//! a result over [`MAX_EVALUATED_BYTES`] or with more than [`MAX_ENTRIES`] entries in one list or
//! object (unless the condition does not read the result), and more than [`MAX_WORK`] or
//! [`MAX_BYTES`].
//!
//! # Differences from CEL
//!
//! Integers and doubles can be mixed in arithmetic and are compared exactly; integer division is
//! CEL's (`5 / 2` is 2). Object keys are iterated in alphabetical order. `\d`, `\w`, `\s` and `\b`
//! are ASCII. Bytes, timestamps, durations, message literals and `.?` are not supported.
//!
//! The interpreter is our own because the resources of the `cel` crate cannot be limited from
//! outside; see `docs/decisions/0003`. Tests compare the results with the `cel` crate.

mod call;
mod comprehension;
mod evaluate;
mod failure;
mod function;
mod grammar;
mod kind;
mod measure;
mod meter;
mod number;
mod parse;
mod parse_error;
mod pattern;
mod scope;
mod short_circuit;
mod static_type;
mod string_literal;
mod tested;
mod token;
mod tree;
mod value;

use std::fmt;
use std::sync::Arc;

pub use failure::EvaluationError;
pub use measure::{MAX_DEPTH, MAX_ENTRIES, MAX_EVALUATED_BYTES};
pub use meter::{Cost, MAX_BYTES, MAX_WORK, MAX_WORK_PER_STEP};
pub use parse::{MAX_HEIGHT, MAX_NESTING, MAX_NODES, MAX_SOURCE_BYTES};
pub use scope::{PlanScope, Scope, StepScope};
pub use tested::TestedValue;

/// A parsed branch condition within all limits.
///
/// Cheap to clone. Two conditions are equal if their sources are identical.
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
    /// Parses a condition and checks every limit that depends only on its source.
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
            Err(error) => Err(InvalidCondition::at(source, error)),
        }
    }

    /// As [`Condition::parse`], and rejects a condition that is never a boolean, such as `1 + 1`,
    /// and therefore never true.
    pub fn parse_boolean(source: &str) -> Result<Condition, InvalidCondition> {
        let condition = Self::parse(source)?;
        match static_type::never_boolean(&condition.parsed.root) {
            None => Ok(condition),
            Some(kind) => {
                let message = format!("expected a boolean, found {kind}; use a comparison");
                let error = parse_error::ParseError { at: 0, message };
                Err(InvalidCondition::at(source, error))
            }
        }
    }

    /// The source.
    pub fn source(&self) -> &str {
        &self.parsed.source
    }

    /// Whether the condition is true for this result.
    ///
    /// A condition that references neither `result` nor a possible key of it does not read the
    /// result and is evaluated for results of any size. Any other condition is not evaluated if the
    /// result exceeds the limits, even if one operand would determine the outcome. Otherwise the
    /// outcome would depend on the order of operands.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<bool, EvaluationError> {
        self.evaluate_metered(scope).0
    }

    /// As [`Condition::evaluate`], with the cost, for tests of the budget.
    #[doc(hidden)]
    pub fn evaluate_metered(&self, scope: &Scope<'_>) -> (Result<bool, EvaluationError>, Cost) {
        let mut evaluator = Evaluator::new(scope);
        let outcome = evaluator.evaluate(self);
        (outcome, evaluator.spent)
    }

    /// The values that the condition reads, for display; none for a result over the limits. Values
    /// of `plan` are not included: they change after the evaluation.
    pub fn tested_values(&self, scope: &Scope<'_>) -> Vec<TestedValue> {
        let is_too_large = scope
            .result
            .is_some_and(|result| measure::check(result).is_err());
        if self.parsed.reads_result && is_too_large {
            return Vec::new();
        }
        tested::tested_values(&self.parsed.root, scope)
    }

    /// The memory that the compiled patterns count towards the limit.
    pub(crate) fn pattern_bytes(&self) -> usize {
        self.parsed.pattern_bytes
    }
}

/// Evaluates several conditions against one result. The result is measured once, and all conditions
/// share one work budget.
pub(crate) struct Evaluator<'a> {
    scope: &'a Scope<'a>,
    measured: Option<Result<(), EvaluationError>>,
    spent: Cost,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(scope: &'a Scope<'a>) -> Self {
        Self {
            scope,
            measured: None,
            spent: Cost::default(),
        }
    }

    pub(crate) fn evaluate(&mut self, condition: &Condition) -> Result<bool, EvaluationError> {
        if self.spent.work >= MAX_WORK_PER_STEP {
            return Err(EvaluationError::BudgetSpent);
        }
        if condition.parsed.reads_result
            && let Some(result) = self.scope.result
        {
            let measured = self.measured.get_or_insert_with(|| measure::check(result));
            measured.clone()?;
        }
        let (outcome, spent) = evaluate::evaluate(&condition.parsed.root, self.scope);
        self.spent.work = self.spent.work.saturating_add(spent.work);
        self.spent.bytes = self.spent.bytes.saturating_add(spent.bytes);
        outcome
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

/// A condition that cannot be parsed or exceeds a limit, with the position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct InvalidCondition {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The problem and the expected input.
    pub message: String,
}

impl InvalidCondition {
    fn at(source: &str, error: parse_error::ParseError) -> InvalidCondition {
        // The offset is a character boundary. `get` avoids a panic if it is not; then only the
        // position is wrong.
        let before = source.get(..error.at).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        InvalidCondition {
            line: count(before.matches('\n').count()).saturating_add(1),
            column: count(before[line_start..].chars().count()).saturating_add(1),
            message: error.message,
        }
    }
}

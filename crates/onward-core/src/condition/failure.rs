//! Evaluation errors.
//!
//! Inside the interpreter a [`Failure`] is small and points into the tree, because
//! `list.exists(..)` may discard a failure for every entry. The message is built once, from the
//! final failure.

use super::kind::Kind;
use super::tree::Node;

/// Measuring stops at this size; the error then reports "at least".
pub(super) const COUNTED_BYTES: usize = 1024 * 1024;

/// Why a condition could not be evaluated. The branch counts as false.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// A name, key or index does not exist.
    #[error("`{path}` is missing")]
    Missing {
        /// The path as written in the condition.
        path: String,
    },
    /// An operator, function or path does not support the type of its operand.
    #[error("{reason}")]
    TypeMismatch {
        /// The operation and the type.
        reason: String,
    },
    /// An arithmetic error: overflow or division by zero.
    #[error("{reason}")]
    Arithmetic {
        /// The operation.
        reason: String,
    },
    /// The value of the condition is not a boolean.
    #[error("the condition evaluates to {found}, not to a boolean")]
    NotBoolean {
        /// The type of the value.
        found: &'static str,
    },
    /// The result is too large.
    #[error("the result has {} bytes, at most {limit} are evaluated", format_size(*bytes))]
    ResultTooLarge {
        /// The size as compact JSON, counted up to 1 MiB.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A list or object in the result has too many entries.
    #[error(
        "the result contains a list or object with {entries} entries, at most {limit} are evaluated"
    )]
    ListTooLong {
        /// The number of entries.
        entries: usize,
        /// The limit.
        limit: usize,
    },
    /// Earlier conditions of the same step used the whole work budget.
    #[error("not evaluated: earlier branches used the work budget of the step")]
    BudgetSpent,
    /// The result is nested too deeply.
    #[error("the result is nested too deeply: at most {limit} levels are evaluated")]
    ResultTooDeep {
        /// The limit.
        limit: usize,
    },
    /// The condition exceeds its budget of work or memory.
    #[error("the condition exceeds its work budget on this result")]
    TooCostly,
}

fn format_size(bytes: usize) -> String {
    if bytes >= COUNTED_BYTES {
        format!("at least {COUNTED_BYTES}")
    } else {
        bytes.to_string()
    }
}

/// A failure that may still be overridden.
#[derive(Clone, Copy)]
pub(super) enum Failure<'a> {
    /// The path of this node does not exist.
    Missing(&'a Node),
    /// The last part of this node's path was applied to a value without fields or entries.
    NoParts(&'a Node, Kind),
    /// The key or index has an unsupported type.
    BadIndex(&'a Node, Kind, Kind),
    /// The operator does not support this operand.
    Operand(&'static str, Kind),
    /// The operator does not support these operands.
    Operands(&'static str, Kind, Kind),
    /// The comprehension or function requires another type.
    Argument(&'static str, &'static str, Kind),
    /// The value cannot be converted to this type.
    Conversion(&'static str, Kind),
    Overflow(&'static str),
    DivisionByZero(&'static str),
    /// The type cannot be a key of an object literal.
    Key(Kind),
    RepeatedKey,
    /// The budget is exhausted. Never overridden.
    Exhausted,
}

impl Failure<'_> {
    pub(super) fn explain(self) -> EvaluationError {
        let reason = match self {
            Failure::Missing(node) => return EvaluationError::Missing { path: node.path() },
            Failure::Exhausted => return EvaluationError::TooCostly,
            Failure::Overflow(sign) => {
                let reason = format!("integer overflow in `{sign}`");
                return EvaluationError::Arithmetic { reason };
            }
            Failure::DivisionByZero(sign) => {
                let reason = format!("division by zero in `{sign}`");
                return EvaluationError::Arithmetic { reason };
            }
            Failure::NoParts(node, kind) => {
                let hint = match kind {
                    Kind::List => "; use `size()` or an index such as `[0]` on a list",
                    Kind::Text => "; use `size()` on a string",
                    Kind::Null
                    | Kind::Bool
                    | Kind::Int
                    | Kind::Uint
                    | Kind::Double
                    | Kind::Object
                    | Kind::Type => "",
                };
                format!(
                    "cannot read `{}`: the parent is {}{hint}",
                    node.path(),
                    kind.describe()
                )
            }
            Failure::BadIndex(node, of, by) => {
                format!(
                    "cannot read `{}`: {} cannot be indexed by {}",
                    node.path(),
                    of.describe(),
                    by.describe()
                )
            }
            Failure::Operand(sign, kind) => {
                format!("`{sign}` does not support {}", kind.describe())
            }
            Failure::Operands(sign, left, right) => format!(
                "`{sign}` does not support {} and {}",
                left.describe(),
                right.describe()
            ),
            Failure::Argument(name, needed, found) => {
                format!("`{name}` requires {needed}, not {}", found.describe())
            }
            Failure::Conversion(name, from) => {
                format!(
                    "cannot convert this value to `{name}`: it is {}",
                    from.describe()
                )
            }
            Failure::Key(kind) => format!("{} cannot be a key of an object", kind.describe()),
            Failure::RepeatedKey => "duplicate key in an object literal".to_owned(),
        };
        EvaluationError::TypeMismatch { reason }
    }
}

//! Why a condition could not be tried, and how that is told.
//!
//! Inside the interpreter a failure is small and points into the tree: in `list.exists(..)` every
//! entry may fail before one decides, and none of that is worth a text. The words are made once,
//! at the end, from the failure that is left.

use super::tree::Node;
use super::value::Kind;

/// Past so many bytes of a result nobody counts on: the refusal says "at least".
pub(super) const COUNTED_BYTES: usize = 1024 * 1024;

/// Why a condition could not be evaluated; the branch counts as false.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unevaluable {
    /// A name, a key or an index that is not there.
    #[error("`{path}` is missing")]
    Missing {
        /// The path, as the condition writes it.
        path: String,
    },
    /// A value of a type that an operator, a function or a path cannot be asked of.
    #[error("{reason}")]
    Unfit {
        /// What was asked of what.
        reason: String,
    },
    /// A number that cannot be computed: an overflow, a division by zero.
    #[error("{reason}")]
    Uncomputable {
        /// What was computed.
        reason: String,
    },
    /// The condition has a value, but it is neither true nor false.
    #[error("the condition is {found}, not a boolean")]
    NotBoolean {
        /// What it is instead.
        found: &'static str,
    },
    /// The result is too large to be searched.
    #[error("the result has {} bytes and is not searched: the limit is {limit}", counted(*bytes))]
    ResultTooLarge {
        /// Its size as compact JSON; counted up to 1 MiB.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A list or an object of the result is too long for the result to be searched.
    #[error(
        "the result holds a list or an object of {entries} entries and is not searched: the limit \
         is {limit}"
    )]
    ListTooLong {
        /// How many entries it has.
        entries: usize,
        /// The limit.
        limit: usize,
    },
    /// The conditions that were tried before it on the same result took all the work there is.
    #[error("not tried: the branches before it took all the work that those of one step may take")]
    NotReached,
    /// The result is nested too deep to be searched.
    #[error("the result is nested deeper than {limit} levels and is not searched")]
    ResultTooDeep {
        /// The limit.
        limit: usize,
    },
    /// The condition would take more work or memory than it may.
    #[error("the condition takes too much work on this result: it was given up")]
    TooCostly,
}

fn counted(bytes: usize) -> String {
    if bytes >= COUNTED_BYTES {
        format!("at least {COUNTED_BYTES}")
    } else {
        bytes.to_string()
    }
}

/// As [`Unevaluable`], while it may still be overruled.
#[derive(Clone, Copy)]
pub(super) enum Failure<'a> {
    /// The path to this node leads nowhere.
    Missing(&'a Node),
    /// The last part of this node's path was asked of something that has no parts.
    NoParts(&'a Node, Kind),
    /// A key or an index of a kind that the list or object has none of.
    BadIndex(&'a Node, Kind, Kind),
    /// The operator has no meaning for this operand.
    Operand(&'static str, Kind),
    /// The operator has no meaning for these operands.
    Operands(&'static str, Kind, Kind),
    /// The comprehension or function needs something else.
    Argument(&'static str, &'static str, Kind),
    /// The conversion to this is not possible for that value.
    Conversion(&'static str, Kind),
    Overflow(&'static str),
    DivisionByZero(&'static str),
    /// A key of an object literal that cannot be one.
    Key(Kind),
    RepeatedKey,
    /// The budget is spent. Nothing overrules this.
    Exhausted,
}

impl Failure<'_> {
    pub(super) fn explain(self) -> Unevaluable {
        let reason = match self {
            Failure::Missing(node) => return Unevaluable::Missing { path: node.path() },
            Failure::Exhausted => return Unevaluable::TooCostly,
            Failure::Overflow(sign) => {
                let reason = format!("the result of `{sign}` is too large a number");
                return Unevaluable::Uncomputable { reason };
            }
            Failure::DivisionByZero(sign) => {
                let reason = format!("`{sign}` by zero");
                return Unevaluable::Uncomputable { reason };
            }
            Failure::NoParts(node, kind) => {
                let hint = match kind {
                    Kind::List => "; a list has `size()`, and entries as in `[0]`",
                    Kind::Text => "; a text has `size()`",
                    Kind::Null
                    | Kind::Bool
                    | Kind::Int
                    | Kind::Uint
                    | Kind::Double
                    | Kind::Object
                    | Kind::Type => "",
                };
                format!("`{}` is asked of {}{hint}", node.path(), kind.words())
            }
            Failure::BadIndex(node, of, by) => {
                format!("`{}` asks {} for {}", node.path(), of.words(), by.words())
            }
            Failure::Operand(sign, kind) => format!("`{sign}` cannot be used on {}", kind.words()),
            Failure::Operands(sign, left, right) => format!(
                "`{sign}` cannot be used between {} and {}",
                left.words(),
                right.words()
            ),
            Failure::Argument(name, needed, found) => {
                format!("`{name}` needs {needed}, not {}", found.words())
            }
            Failure::Conversion(name, from) => {
                format!("`{name}` cannot be made of this value, {}", from.words())
            }
            Failure::Key(kind) => format!("{} cannot be a key of an object", kind.words()),
            Failure::RepeatedKey => "an object is written with the same key twice".to_owned(),
        };
        Unevaluable::Unfit { reason }
    }
}

//! The values that a condition reads, for display: each path of its source with its value.
//!
//! Does not decide anything. Values are short texts: a list is its number of items, and a long string
//! is truncated.

use super::evaluate::Evaluation;
use super::failure::Failure;
use super::kind::Kind;
use super::number::Number;
use super::scope::Scope;
use super::tree::{Expr, Function, Node};
use super::value::Value;

/// Maximum number of values.
const MAX_VALUES: usize = 8;
/// Maximum number of characters of a string.
const MAX_CHARS: usize = 40;

/// A path of a condition with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestedValue {
    /// The path as written, such as `result.spread` or `size(result.sources)`.
    pub path: String,
    /// The value as text, such as `64`, `"low"` or `3 items`; `missing` if it does not exist.
    pub value: String,
}

/// A value that a condition reads.
struct Read<'n> {
    path: String,
    /// How it is displayed, if not as its path.
    label: Option<String>,
    node: &'n Node,
}

/// The values of the paths in this tree, without repetitions.
pub(super) fn tested_values(root: &Node, scope: &Scope<'_>) -> Vec<TestedValue> {
    let mut reads = Vec::new();
    collect(root, &mut reads);
    // The value of a path is more than whether it exists.
    reads.sort_by_key(|read| matches!(read.node.expr, Expr::Has(..)));
    let mut known: Vec<(String, bool)> = Vec::new();
    let mut values = Vec::new();
    for Read { path, label, node } in reads {
        let key = (path, matches!(node.expr, Expr::Call(..)));
        if values.len() == MAX_VALUES || known.contains(&key) {
            continue;
        }
        let value = describe(Evaluation::new(scope).value(node));
        let path = label.unwrap_or_else(|| key.0.clone());
        values.extend(value.map(|value| TestedValue { path, value }));
        known.push(key);
    }
    values
}

/// Collects the longest paths of a tree: names, fields and indexes, and their sizes.
fn collect<'n>(node: &'n Node, reads: &mut Vec<Read<'n>>) {
    let mut add = |of: &Node, label| {
        let path = of.path();
        let label = match label {
            "" => None,
            function => Some(format!("{function}({path})")),
        };
        reads.push(Read { path, label, node });
    };
    match &node.expr {
        Expr::Null
        | Expr::Bool(_)
        | Expr::Int(_)
        | Expr::Uint(_)
        | Expr::Double(_)
        | Expr::Text(_)
        | Expr::Entry(_) => {}
        Expr::Name(_) | Expr::Field(..) | Expr::Index(_) => {
            if is_path(node) {
                add(node, "");
            }
        }
        Expr::Has(of, _) => {
            if is_path(of) {
                add(node, "has");
            }
        }
        Expr::Call(Function::Size, arguments) => match arguments.as_slice() {
            [of] if is_path(of) => add(of, "size"),
            arguments => arguments.iter().for_each(|of| collect(of, reads)),
        },
        Expr::Not(of) | Expr::Negate(of) | Expr::Matches(of, _) => collect(of, reads),
        Expr::And(nodes) | Expr::Or(nodes) | Expr::List(nodes) | Expr::Call(_, nodes) => {
            nodes.iter().for_each(|of| collect(of, reads));
        }
        Expr::Choice(nodes) | Expr::MapWhere(nodes) => {
            nodes.iter().for_each(|of| collect(of, reads));
        }
        Expr::Binary(_, nodes) | Expr::Comprehension(_, nodes) => {
            nodes.iter().for_each(|of| collect(of, reads));
        }
        Expr::Object(entries) => entries.iter().flatten().for_each(|of| collect(of, reads)),
    }
}

/// Whether a node is a name of the scope with fields and literal indexes. `plan` is not: its values
/// have changed since the evaluation. The entry of a comprehension has many values.
fn is_path(node: &Node) -> bool {
    if let Expr::Name(name) = &node.expr {
        &**name != "plan" && Kind::named(name).is_none()
    } else if let Expr::Field(of, _) = &node.expr {
        is_path(of)
    } else if let Expr::Index(of_at) = &node.expr {
        let [of, at] = of_at.as_ref();
        is_path(of) && matches!(at.expr, Expr::Int(_) | Expr::Uint(_) | Expr::Text(_))
    } else {
        false
    }
}

/// A value as text; none if the budget is exhausted.
fn describe(outcome: Result<Value<'_>, Failure<'_>>) -> Option<String> {
    let value = match outcome {
        Ok(value) => value,
        Err(Failure::Missing(_) | Failure::NoParts(..)) => return Some("missing".to_owned()),
        Err(_) => return None,
    };
    if let Some(text) = value.text() {
        let mut chars = text.chars();
        let start: String = chars.by_ref().take(MAX_CHARS).collect();
        let more = if chars.next().is_some() { "…" } else { "" };
        return Some(format!("{start:?}{more}"));
    }
    let entries = |name: &str| match value.entries() {
        Some(1) => format!("1 {name}"),
        Some(many) => format!("{many} {name}s"),
        None => String::new(),
    };
    Some(match &value {
        Value::Bool(truth) => truth.to_string(),
        Value::Number(Number::Int(number)) => number.to_string(),
        Value::Number(Number::Uint(number)) => number.to_string(),
        Value::Number(Number::Double(number)) => number.to_string(),
        Value::Array(_) | Value::List(_) => entries("item"),
        Value::Object(_) | Value::Entries(_) => entries("field"),
        Value::Null | Value::Text(_) | Value::Built(_) | Value::Type(_) => {
            value.kind().describe().to_owned()
        }
    })
}

//! The static type of a condition, as far as its source determines it.
//!
//! Most types depend on the result. A new condition is rejected only if it is never a boolean: then
//! it is never true for any result.

use super::tree::{Binary, Comprehension, Expr, Function, Node};

const NUMBER: &str = "a number";
const TEXT: &str = "a text";
const LIST: &str = "a list";
const OBJECT: &str = "an object";

/// The type of a node that is never a boolean. `None` if it may be a boolean.
pub(super) fn never_boolean(node: &Node) -> Option<&'static str> {
    match &node.expr {
        Expr::Null => Some("null"),
        Expr::Int(_) | Expr::Uint(_) | Expr::Double(_) | Expr::Negate(_) => Some(NUMBER),
        Expr::Text(_) => Some(TEXT),
        Expr::List(_) | Expr::MapWhere(_) => Some(LIST),
        Expr::Object(_) => Some(OBJECT),
        Expr::Name(name) => never_boolean_name(name),
        Expr::Field(of, _) => never_boolean_field(of),
        Expr::Binary(operator, operands) => never_boolean_operation(*operator, operands.as_ref()),
        Expr::Call(function, arguments) => never_boolean_call(*function, arguments),
        Expr::Comprehension(Comprehension::Filter | Comprehension::Map, _) => Some(LIST),
        // Every operand must be true.
        Expr::And(operands) => operands.iter().find_map(never_boolean),
        // One operand is enough.
        Expr::Or(operands) => {
            let mut kinds = operands.iter().map(never_boolean);
            let first = kinds.next()?;
            kinds.fold(first, |known, kind| known.and(kind))
        }
        Expr::Not(operand) => never_boolean(operand),
        Expr::Choice(parts) => {
            let [test, then, otherwise] = parts.as_ref();
            let either = || never_boolean(then).and(never_boolean(otherwise));
            never_boolean(test).or_else(either)
        }
        Expr::Bool(_)
        | Expr::Entry(_)
        | Expr::Has(..)
        | Expr::Index(_)
        | Expr::Matches(..)
        | Expr::Comprehension(
            Comprehension::All | Comprehension::Exists | Comprehension::ExistsOne,
            _,
        ) => None,
    }
}

/// Other names are keys of the result.
fn never_boolean_name(name: &str) -> Option<&'static str> {
    match name {
        "confidence" => Some("a number or null"),
        "resultSummary" => Some(TEXT),
        "result" | "step" | "plan" => Some(OBJECT),
        _ => None,
    }
}

/// `step` and `plan` have only numbers and texts; `confidence` and `resultSummary` have no fields.
fn never_boolean_field(of: &Node) -> Option<&'static str> {
    let Expr::Name(name) = &of.expr else {
        return None;
    };
    match &**name {
        "step" | "plan" => Some("a number or a text"),
        "confidence" | "resultSummary" => Some("a missing field"),
        _ => None,
    }
}

fn never_boolean_operation(operator: Binary, operands: &[Node]) -> Option<&'static str> {
    match operator {
        Binary::Equal
        | Binary::NotEqual
        | Binary::Less
        | Binary::LessOrEqual
        | Binary::Greater
        | Binary::GreaterOrEqual
        | Binary::In => None,
        Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder => Some(NUMBER),
        Binary::Add => {
            let is_text = |node: &Node| never_boolean(node) == Some(TEXT);
            let is_list = |node: &Node| never_boolean(node) == Some(LIST);
            if operands.iter().any(is_text) {
                Some(TEXT)
            } else if operands.iter().any(is_list) {
                Some(LIST)
            } else {
                Some("a sum")
            }
        }
    }
}

fn never_boolean_call(function: Function, arguments: &[Node]) -> Option<&'static str> {
    match function {
        Function::Size | Function::Int | Function::Uint | Function::Double => Some(NUMBER),
        Function::String => Some(TEXT),
        Function::Type => Some("a type"),
        Function::Dyn => arguments.first().and_then(never_boolean),
        Function::Contains | Function::StartsWith | Function::EndsWith | Function::Bool => None,
    }
}

//! The syntax tree of a checked condition.
//!
//! Patterns are compiled, functions are resolved, and the entry of a comprehension is distinguished
//! from other names, so that evaluation can fail only because of its data. `&&` and `||` hold all
//! their operands: a long chain is wide and not high, and the height determines the recursion
//! depth.

use super::pattern::Pattern;

/// A node with the height of its subtree.
pub(super) struct Node {
    pub(super) height: u32,
    pub(super) expr: Expr,
}

pub(super) enum Expr {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    /// A free name: one of the five in the scope, a key of the result or a type.
    Name(Box<str>),
    /// The entry of the enclosing comprehension, with its name.
    Entry(Box<str>),
    Field(Box<Node>, Box<str>),
    Has(Box<Node>, Box<str>),
    Index(Box<[Node; 2]>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    /// `test ? then : otherwise`.
    Choice(Box<[Node; 3]>),
    Binary(Binary, Box<[Node; 2]>),
    List(Vec<Node>),
    Object(Vec<[Node; 2]>),
    Call(Function, Vec<Node>),
    Matches(Box<Node>, Box<Pattern>),
    Comprehension(Comprehension, Box<[Node; 2]>),
    /// `list.map(x, test, value)`: the list, the test and the value.
    MapWhere(Box<[Node; 3]>),
}

/// The binary operators without short-circuit evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    /// The operator's symbol.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Binary::Equal => "==",
            Binary::NotEqual => "!=",
            Binary::Less => "<",
            Binary::LessOrEqual => "<=",
            Binary::Greater => ">",
            Binary::GreaterOrEqual => ">=",
            Binary::In => "in",
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Remainder => "%",
        }
    }
}

/// The functions except `matches`, whose pattern is part of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    Int,
    Uint,
    Double,
    String,
    Bool,
    Dyn,
    Type,
}

/// The comprehensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comprehension {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

impl Expr {
    /// The height of the highest child, or 0.
    pub(super) fn height_below(&self) -> u32 {
        fn highest(nodes: &[Node]) -> u32 {
            nodes.iter().map(|node| node.height).max().unwrap_or(0)
        }
        match self {
            Expr::Null
            | Expr::Bool(_)
            | Expr::Int(_)
            | Expr::Uint(_)
            | Expr::Double(_)
            | Expr::Text(_)
            | Expr::Name(_)
            | Expr::Entry(_) => 0,
            Expr::Field(of, _) | Expr::Has(of, _) => of.height,
            Expr::Not(of) | Expr::Negate(of) | Expr::Matches(of, _) => of.height,
            Expr::Index(two) | Expr::Binary(_, two) | Expr::Comprehension(_, two) => {
                highest(two.as_slice())
            }
            Expr::Choice(three) | Expr::MapWhere(three) => highest(three.as_slice()),
            Expr::And(nodes) | Expr::Or(nodes) | Expr::List(nodes) | Expr::Call(_, nodes) => {
                highest(nodes)
            }
            Expr::Object(entries) => entries.iter().map(|e| highest(e)).max().unwrap_or(0),
        }
    }
}

impl Node {
    /// The node as a path, such as `result.sources[0].url`.
    ///
    /// Other expressions are written as `(…)`; the reader has the source.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        self.write_path(&mut path);
        path
    }

    fn write_path(&self, path: &mut String) {
        match &self.expr {
            Expr::Name(name) | Expr::Entry(name) => path.push_str(name),
            Expr::Field(of, name) | Expr::Has(of, name) => {
                of.write_path(path);
                path.push('.');
                path.push_str(name);
            }
            Expr::Index(of_at) => {
                let [of, at] = of_at.as_ref();
                of.write_path(path);
                path.push('[');
                at.write_path(path);
                path.push(']');
            }
            Expr::Int(value) => path.push_str(&value.to_string()),
            Expr::Uint(value) => path.push_str(&value.to_string()),
            Expr::Text(text) => path.push_str(&format!("{text:?}")),
            Expr::Null
            | Expr::Bool(_)
            | Expr::Double(_)
            | Expr::Not(_)
            | Expr::Negate(_)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Choice(_)
            | Expr::Binary(..)
            | Expr::List(_)
            | Expr::Object(_)
            | Expr::Call(..)
            | Expr::Matches(..)
            | Expr::Comprehension(..)
            | Expr::MapWhere(_) => path.push_str("(…)"),
        }
    }
}

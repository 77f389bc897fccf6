//! The tree that a condition is read into: what is left of the source once it has been checked.
//!
//! Patterns are compiled, functions known, and the entry that a comprehension looks at is told
//! apart from every other name, so that trying a condition can go wrong in its data only.
//! `&&` and `||` hold all their operands at once: a long chain of them is wide and not high, and
//! the height is what recursion pays for.

use super::pattern::Pattern;

/// One node, with how high the tree below it is.
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
    /// A name from outside: one of the five, a key of the result, or a type.
    Name(Box<str>),
    /// The entry that the comprehension around it looks at, by the name it has there.
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
    /// `list.map(x, test, value)`: the list, the test, the value.
    MapWhere(Box<[Node; 3]>),
}

/// The operators with two operands that are always both looked at.
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
    /// As it is written.
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

/// The functions, without `matches`, whose pattern is a part of the tree.
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

/// What is asked of the entries of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comprehension {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

impl Expr {
    /// The height of the highest node below this one, 0 where there is none.
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
    /// The node as an author would point at it: `result.sources[0].url`.
    ///
    /// What is not a path is shown as `(…)`: the reader has the source beside it.
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

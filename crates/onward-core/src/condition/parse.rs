//! Reading a condition, and every bound that its text alone can break.
//!
//! It refuses a source that is blank or over 2 KiB, more than 256 nodes, brackets nested too
//! deep, a tree too high to be walked on a small stack, a comprehension inside the body of
//! another, a function nobody knows, and a pattern that is not a literal or too complex.
//! One comprehension after another (`a.filter(..).all(..)`) is not nesting.
//! The rules of the language are in `grammar` and `call`.

use super::fault::Fault;
use super::pattern::Allowance;
use super::token::{self, Kind, Token, shown};
use super::tree::{Expr, Node};

/// The longest source, in bytes.
pub const MAX_SOURCE_BYTES: usize = 2048;
/// How many names, literals, operators, calls, lists and objects a condition may hold.
pub const MAX_NODES: usize = 256;
/// How deep brackets, calls and choices may be nested.
pub const MAX_NESTING: u32 = 32;
/// How high the tree may be: the longest chain of operations that wait for one another.
pub const MAX_HEIGHT: u32 = 64;

/// A condition that passed.
pub(super) struct Outcome {
    pub(super) root: Node,
    /// Whether it names `result`, or anything that could be a key of it.
    pub(super) reads_result: bool,
    /// What its patterns took.
    pub(super) pattern_bytes: usize,
}

pub(super) fn parse(source: &str) -> Result<Outcome, Fault> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(Fault::new(
            source.floor_char_boundary(MAX_SOURCE_BYTES),
            format!(
                "the condition has {} bytes; expected at most {MAX_SOURCE_BYTES}",
                source.len()
            ),
        ));
    }
    let mut parser = Parser {
        tokens: token::tokens(source)?,
        next: 0,
        nesting: 0,
        nodes: 0,
        entry: None,
        reads_result: false,
        patterns: Allowance::default(),
    };
    let root = parser.expression()?;
    match parser.peek().kind {
        Kind::End => Ok(Outcome {
            root,
            reads_result: parser.reads_result,
            pattern_bytes: parser.patterns.taken(),
        }),
        Kind::Name
        | Kind::Text(_)
        | Kind::Int(_)
        | Kind::Uint(_)
        | Kind::Double(_)
        | Kind::Mark(_) => Err(parser.unexpected("an operator or the end of the condition")),
    }
}

pub(super) struct Parser<'s> {
    pub(super) tokens: Vec<Token<'s>>,
    pub(super) next: usize,
    pub(super) nesting: u32,
    nodes: usize,
    /// What the comprehension around this place calls its entries.
    pub(super) entry: Option<&'s str>,
    pub(super) reads_result: bool,
    pub(super) patterns: Allowance,
}

impl<'s> Parser<'s> {
    /// The next token; past the end it stays the end.
    pub(super) fn peek(&self) -> &Token<'s> {
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    pub(super) fn at(&self) -> usize {
        self.peek().at
    }

    /// Takes the mark if it is the next token.
    pub(super) fn take(&mut self, mark: &'static str) -> bool {
        let found = self.peek().kind == Kind::Mark(mark);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, mark: &'static str, expected: &str) -> Result<(), Fault> {
        if self.take(mark) {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    /// Takes the next token if it is a name, or a word that may not be one.
    pub(super) fn take_name(&mut self) -> Option<&'s str> {
        let token = self.peek();
        let name = (token.kind == Kind::Name).then_some(token.source);
        self.next += usize::from(name.is_some());
        name
    }

    /// That the next token is not what the grammar asks for.
    pub(super) fn unexpected(&self, expected: &str) -> Fault {
        let token = self.peek();
        let found = match token.kind {
            Kind::End => "the end of the condition".to_owned(),
            Kind::Text(_) => "a text".to_owned(),
            Kind::Name | Kind::Int(_) | Kind::Uint(_) | Kind::Double(_) | Kind::Mark(_) => {
                format!("`{}`", shown(token.source))
            }
        };
        let before = self
            .next
            .checked_sub(1)
            .map(|last| self.tokens[last].source);
        let instead = match token.source {
            "and" | "AND" => "; and is written `&&`",
            "or" | "OR" => "; or is written `||`",
            "not" | "NOT" => "; not is written `!`",
            _ if before == Some("not") => "; not is written `!`",
            "?" if expected.starts_with("a field") => {
                "; use `has(..)` for a field that may be missing"
            }
            _ => "",
        };
        Fault::new(
            token.at,
            format!("expected {expected}, found {found}{instead}"),
        )
    }

    /// Makes a node, within the bounds on their number and height.
    pub(super) fn node(&mut self, at: usize, expr: Expr) -> Result<Node, Fault> {
        let height = expr.height_below() + 1;
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Fault::new(
                at,
                format!(
                    "the condition is too long: expected at most {MAX_NODES} names, literals \
                     and operators"
                ),
            ));
        }
        if height > MAX_HEIGHT {
            return Err(Fault::new(
                at,
                format!(
                    "too many operations wait for one another: expected at most {MAX_HEIGHT}, \
                     one inside the other"
                ),
            ));
        }
        Ok(Node { height, expr })
    }
}

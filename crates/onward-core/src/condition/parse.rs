//! Parses a condition and checks every limit that depends only on its source.
//!
//! Rejects a source that is blank or over 2 KiB, more than 256 nodes, deep brackets, a tree too
//! high for a small stack, a comprehension inside the body of another, an unknown function, and a
//! pattern that is not a literal or too complex. Chained comprehensions (`a.filter(..).all(..)`)
//! are not nested. The language rules are in `grammar` and `call`.

use super::parse_error::ParseError;
use super::pattern::PatternBudget;
use super::token::{self, Kind, Token, excerpt};
use super::tree::{Expr, Node};

/// The maximum length of the source, in bytes.
pub const MAX_SOURCE_BYTES: usize = 2048;
/// The maximum number of names, literals, operators, calls, lists and objects.
pub const MAX_NODES: usize = 256;
/// The maximum nesting depth of brackets, calls and conditionals.
pub const MAX_NESTING: u32 = 32;
/// The maximum height of the tree.
pub const MAX_HEIGHT: u32 = 64;

/// A parsed condition.
pub(super) struct Outcome {
    pub(super) root: Node,
    /// Whether it references `result` or a possible key of it.
    pub(super) reads_result: bool,
    /// The memory of its compiled patterns.
    pub(super) pattern_bytes: usize,
}

pub(super) fn parse(source: &str) -> Result<Outcome, ParseError> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(ParseError::new(
            source.floor_char_boundary(MAX_SOURCE_BYTES),
            format!(
                "the condition has {} bytes, at most {MAX_SOURCE_BYTES} are allowed",
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
        patterns: PatternBudget::default(),
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
        | Kind::Symbol(_) => Err(parser.unexpected("an operator or the end of the condition")),
    }
}

pub(super) struct Parser<'s> {
    pub(super) tokens: Vec<Token<'s>>,
    pub(super) next: usize,
    pub(super) nesting: u32,
    nodes: usize,
    /// The name of the entry in the enclosing comprehension.
    pub(super) entry: Option<&'s str>,
    pub(super) reads_result: bool,
    pub(super) patterns: PatternBudget,
}

impl<'s> Parser<'s> {
    /// The next token. After the last token, always `End`.
    pub(super) fn peek(&self) -> &Token<'s> {
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    pub(super) fn at(&self) -> usize {
        self.peek().at
    }

    /// Consumes the symbol if it is the next token.
    pub(super) fn take(&mut self, symbol: &'static str) -> bool {
        let found = self.peek().kind == Kind::Symbol(symbol);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect(
        &mut self,
        symbol: &'static str,
        expected: &str,
    ) -> Result<(), ParseError> {
        if self.take(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    /// Consumes the next token if it is a name or a reserved word.
    pub(super) fn take_name(&mut self) -> Option<&'s str> {
        let token = self.peek();
        let name = (token.kind == Kind::Name).then_some(token.source);
        self.next += usize::from(name.is_some());
        name
    }

    /// The error for an unexpected token.
    pub(super) fn unexpected(&self, expected: &str) -> ParseError {
        let token = self.peek();
        let found = match token.kind {
            Kind::End => "the end of the condition".to_owned(),
            Kind::Text(_) => "a string".to_owned(),
            Kind::Name | Kind::Int(_) | Kind::Uint(_) | Kind::Double(_) | Kind::Symbol(_) => {
                format!("`{}`", excerpt(token.source))
            }
        };
        let before = self
            .next
            .checked_sub(1)
            .map(|last| self.tokens[last].source);
        let suggestion = match token.source {
            "and" | "AND" => "; use `&&`",
            "or" | "OR" => "; use `||`",
            "not" | "NOT" => "; use `!`",
            _ if before == Some("not") => "; use `!`",
            "?" if expected.starts_with("a field") => {
                "; use `has(..)` for a field that may be missing"
            }
            _ => "",
        };
        ParseError::new(
            token.at,
            format!("expected {expected}, found {found}{suggestion}"),
        )
    }

    /// Creates a node, after checking the limits on number and height.
    pub(super) fn node(&mut self, at: usize, expr: Expr) -> Result<Node, ParseError> {
        let height = expr.height_below() + 1;
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(ParseError::new(
                at,
                format!(
                    "the condition is too long: at most {MAX_NODES} names, literals and operators \
                     are allowed"
                ),
            ));
        }
        if height > MAX_HEIGHT {
            return Err(ParseError::new(
                at,
                format!(
                    "the expression is nested too deeply: at most {MAX_HEIGHT} levels are allowed"
                ),
            ));
        }
        Ok(Node { height, expr })
    }
}

//! Parses calls: functions with their arguments, and comprehensions.
//!
//! Unknown functions and wrong numbers of arguments are rejected at creation: during evaluation
//! they would silently count as false. Comprehensions bind a name, so they are parsed here and not
//! as functions.

use super::parse::Parser;
use super::parse_error::ParseError;
use super::pattern::Pattern;
use super::tree::{Comprehension, Expr, Function, Node};

const GLOBAL: &str = "`has`, `size`, `matches`, `int`, `uint`, `double`, `string`, `bool`, `type` \
                      or `dyn`";
const MEMBER: &str = "`size`, `contains`, `startsWith`, `endsWith`, `matches`, `all`, `exists`, \
                      `exists_one`, `filter` or `map`";

impl<'s> Parser<'s> {
    /// `name(..)`, after the opening bracket.
    pub(super) fn global_call(&mut self, at: usize, name: &'s str) -> Result<Node, ParseError> {
        let function = match name {
            "has" => return self.has(at),
            "matches" => {
                let text = self.expression()?;
                self.expect(",", "`,` and a pattern")?;
                return self.matches(at, text);
            }
            "size" => Function::Size,
            "int" => Function::Int,
            "uint" => Function::Uint,
            "double" => Function::Double,
            "string" => Function::String,
            "bool" => Function::Bool,
            "dyn" => Function::Dyn,
            "type" => Function::Type,
            _ => return Err(unknown_function(at, name, GLOBAL)),
        };
        let argument = self.expression()?;
        self.close(name, "one argument")?;
        self.node(at, Expr::Call(function, vec![argument]))
    }

    /// `of.name(..)`, after the opening bracket.
    pub(super) fn member_call(
        &mut self,
        at: usize,
        name: &'s str,
        of: Node,
    ) -> Result<Node, ParseError> {
        let function = match name {
            "all" => return self.comprehension(at, Comprehension::All, of),
            "exists" => return self.comprehension(at, Comprehension::Exists, of),
            "exists_one" | "existsOne" => {
                return self.comprehension(at, Comprehension::ExistsOne, of);
            }
            "filter" => return self.comprehension(at, Comprehension::Filter, of),
            "map" => return self.comprehension(at, Comprehension::Map, of),
            "matches" => return self.matches(at, of),
            "size" => {
                self.close(name, "no argument")?;
                return self.node(at, Expr::Call(Function::Size, vec![of]));
            }
            "contains" => Function::Contains,
            "startsWith" => Function::StartsWith,
            "endsWith" => Function::EndsWith,
            _ => return Err(unknown_function(at, name, MEMBER)),
        };
        let argument = self.expression()?;
        self.close(name, "one argument")?;
        self.node(at, Expr::Call(function, vec![of, argument]))
    }

    fn close(&mut self, name: &str, arguments: &str) -> Result<(), ParseError> {
        self.expect(")", &format!("`)`: `{name}` takes {arguments}"))
    }

    fn has(&mut self, at: usize) -> Result<Node, ParseError> {
        let argument_at = self.at();
        let argument = self.expression()?;
        self.close("has", "one path")?;
        let Expr::Field(of, name) = argument.expr else {
            return Err(ParseError::new(
                argument_at,
                "`has` takes a path, as in `has(result.verdict)`",
            ));
        };
        self.node(at, Expr::Has(of, name))
    }

    /// The pattern argument of `matches` and the closing bracket.
    fn matches(&mut self, at: usize, text: Node) -> Result<Node, ParseError> {
        let pattern_at = self.at();
        let pattern = self.expression()?;
        self.close("matches", "one pattern")?;
        let Expr::Text(pattern) = pattern.expr else {
            return Err(ParseError::new(
                pattern_at,
                "the pattern must be a string literal, as in `matches(\"^a+$\")`",
            ));
        };
        let pattern = Pattern::compile(&pattern, &mut self.patterns)
            .map_err(|message| ParseError::new(pattern_at, message))?;
        self.node(at, Expr::Matches(Box::new(text), Box::new(pattern)))
    }

    fn comprehension(
        &mut self,
        at: usize,
        comprehension: Comprehension,
        of: Node,
    ) -> Result<Node, ParseError> {
        if let Some(outer) = self.entry {
            return Err(ParseError::new(
                at,
                format!(
                    "comprehensions cannot be nested: this one is inside the one over `{outer}`"
                ),
            ));
        }
        const NAME: &str = "a name for the entries, as in `list.all(x, x > 0)`";
        let name_at = self.at();
        let Some(name) = self.take_name() else {
            return Err(self.unexpected(NAME));
        };
        if matches!(name, "in" | "true" | "false" | "null") {
            return Err(ParseError::new(
                name_at,
                format!("expected {NAME}, found `{name}`"),
            ));
        }
        self.expect(",", "`,` and an expression for each entry")?;
        self.entry = Some(name);
        let body = self.expression()?;
        let value = match comprehension {
            Comprehension::Map if self.take(",") => Some(self.expression()?),
            Comprehension::Map
            | Comprehension::All
            | Comprehension::Exists
            | Comprehension::ExistsOne
            | Comprehension::Filter => None,
        };
        self.expect(")", "`)` or an operator")?;
        self.entry = None;
        let expr = match value {
            Some(value) => Expr::MapWhere(Box::new([of, body, value])),
            None => Expr::Comprehension(comprehension, Box::new([of, body])),
        };
        self.node(at, expr)
    }
}

fn unknown_function(at: usize, name: &str, known: &str) -> ParseError {
    let suggestion = match name {
        "includes" | "indexOf" => "; use `contains` for strings and `in` for lists",
        "length" | "len" | "count" => "; use `size`",
        "test" | "match" => "; use `matches`",
        "some" | "any" => "; use `exists`",
        "every" => "; use `all`",
        _ => "",
    };
    ParseError::new(
        at,
        format!(
            "unknown function `{}`; expected {known}{suggestion}",
            super::token::excerpt(name)
        ),
    )
}

//! The CEL grammar, by recursive descent: conditionals, operators, members, literals.
//!
//! Each level of nesting uses a few small stack frames, so that the deepest condition needs only a
//! fraction of a thread's stack. Message literals (`Type{..}`), optional fields (`a.?b`) and names
//! with a leading dot are not supported: they have no meaning here.

use super::parse::{MAX_NESTING, Parser};
use super::parse_error::ParseError;
use super::token::Kind;
use super::tree::{Binary, Expr, Node};

/// Reserved words of CEL. They are valid as field names.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

impl<'s> Parser<'s> {
    /// A complete expression: the condition, or the content of brackets.
    pub(super) fn expression(&mut self) -> Result<Node, ParseError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(ParseError::new(
                self.at(),
                format!("nested too deeply: at most {MAX_NESTING} levels are allowed"),
            ));
        }
        let test = self.binary(0)?;
        let at = self.at();
        let whole = if self.take("?") {
            let then = self.binary(0)?;
            self.expect(":", "`:` and an alternative")?;
            let otherwise = self.expression()?;
            self.node(at, Expr::Choice(Box::new([test, then, otherwise])))?
        } else {
            test
        };
        self.nesting -= 1;
        Ok(whole)
    }

    /// Operands joined by operators with a precedence of at least `min`.
    fn binary(&mut self, min: u8) -> Result<Node, ParseError> {
        let mut left = self.unary()?;
        while let Some((operator, precedence)) = self.operator() {
            if precedence < min {
                break;
            }
            let at = self.at();
            self.next += 1;
            let right = self.binary(precedence + 1)?;
            let expr = match operator {
                Operator::And => Expr::And(match left {
                    Node {
                        expr: Expr::And(nodes),
                        ..
                    } => joined(nodes, right),
                    first => vec![first, right],
                }),
                Operator::Or => Expr::Or(match left {
                    Node {
                        expr: Expr::Or(nodes),
                        ..
                    } => joined(nodes, right),
                    first => vec![first, right],
                }),
                Operator::Binary(binary) => Expr::Binary(binary, Box::new([left, right])),
            };
            left = self.node(at, expr)?;
        }
        Ok(left)
    }

    /// The next operator and its precedence.
    fn operator(&self) -> Option<(Operator, u8)> {
        let token = self.peek();
        let sign = match token.kind {
            Kind::Symbol(mark) => mark,
            Kind::Name if token.source == "in" => "in",
            Kind::Name
            | Kind::Text(_)
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Double(_)
            | Kind::End => return None,
        };
        let (operator, precedence) = match sign {
            "||" => return Some((Operator::Or, 0)),
            "&&" => return Some((Operator::And, 1)),
            "==" => (Binary::Equal, 2),
            "!=" => (Binary::NotEqual, 2),
            "<" => (Binary::Less, 2),
            "<=" => (Binary::LessOrEqual, 2),
            ">" => (Binary::Greater, 2),
            ">=" => (Binary::GreaterOrEqual, 2),
            "in" => (Binary::In, 2),
            "+" => (Binary::Add, 3),
            "-" => (Binary::Subtract, 3),
            "*" => (Binary::Multiply, 4),
            "/" => (Binary::Divide, 4),
            "%" => (Binary::Remainder, 4),
            _ => return None,
        };
        Some((Operator::Binary(operator), precedence))
    }

    /// Any number of `!` and `-` before one operand.
    fn unary(&mut self) -> Result<Node, ParseError> {
        let mut signs = Vec::new();
        loop {
            let at = self.at();
            if self.take("!") {
                signs.push((at, true));
            } else if self.take("-") {
                signs.push((at, false));
            } else {
                break;
            }
        }
        // A minus directly before a number is part of the literal, as required for the minimum
        // integer.
        let negative = match (&self.peek().kind, signs.last()) {
            (Kind::Int(_) | Kind::Double(_), Some((_, false))) => signs.pop().is_some(),
            _ => false,
        };
        let mut node = self.member(negative)?;
        while let Some((at, not)) = signs.pop() {
            let operand = Box::new(node);
            let expr = if not {
                Expr::Not(operand)
            } else {
                Expr::Negate(operand)
            };
            node = self.node(at, expr)?;
        }
        Ok(node)
    }

    /// An operand with field accesses, indexes and calls.
    fn member(&mut self, negative: bool) -> Result<Node, ParseError> {
        let mut node = self.primary(negative)?;
        loop {
            let at = self.at();
            if self.take(".") {
                let name_at = self.at();
                let Some(name) = self.take_name() else {
                    return Err(self.unexpected("a field or a function"));
                };
                if matches!(name, "in" | "true" | "false" | "null") {
                    return Err(ParseError::new(
                        name_at,
                        format!("`{name}` cannot follow a dot; use `[\"{name}\"]`"),
                    ));
                }
                node = if self.take("(") {
                    self.member_call(name_at, name, node)?
                } else {
                    self.node(name_at, Expr::Field(Box::new(node), name.into()))?
                };
            } else if self.take("[") {
                let index = self.expression()?;
                self.expect("]", "`]` after the index")?;
                node = self.node(at, Expr::Index(Box::new([node, index])))?;
            } else {
                return Ok(node);
            }
        }
    }

    fn primary(&mut self, negative: bool) -> Result<Node, ParseError> {
        let at = self.at();
        if self.take("(") {
            let inner = self.expression()?;
            self.expect(")", "`)` or an operator")?;
            return Ok(inner);
        }
        if self.take("[") {
            return self.list(at);
        }
        if self.take("{") {
            return self.object(at);
        }
        if let Some(name) = self.take_name() {
            return self.name(at, name);
        }
        let expr = match &mut self.tokens[self.next].kind {
            Kind::Text(text) => Expr::Text(std::mem::take(text).into()),
            Kind::Uint(value) => Expr::Uint(*value),
            Kind::Double(value) => Expr::Double(if negative { -*value } else { *value }),
            Kind::Int(value) => {
                let signed = if negative {
                    0i64.checked_sub_unsigned(*value)
                } else {
                    i64::try_from(*value).ok()
                };
                Expr::Int(signed.ok_or_else(|| {
                    ParseError::new(
                        at,
                        "the integer is too large; use an unsigned literal with the suffix `u`",
                    )
                })?)
            }
            Kind::Name | Kind::Symbol(_) | Kind::End => {
                return Err(self.unexpected("a name, a literal or `(`"));
            }
        };
        self.next += 1;
        self.node(at, expr)
    }

    /// A name or a call.
    fn name(&mut self, at: usize, name: &'s str) -> Result<Node, ParseError> {
        let expr = match name {
            "true" => Expr::Bool(true),
            "false" => Expr::Bool(false),
            "null" => Expr::Null,
            "in" => {
                self.next -= 1;
                return Err(self.unexpected("a name, a literal or `(`"));
            }
            reserved if RESERVED.contains(&reserved) => {
                return Err(ParseError::new(
                    at,
                    format!("`{name}` is a reserved word; use `result.{name}` for the key"),
                ));
            }
            _ if self.take("(") => return self.global_call(at, name),
            _ if self.entry == Some(name) => Expr::Entry(name.into()),
            _ => {
                self.reads_result |=
                    !matches!(name, "confidence" | "resultSummary" | "step" | "plan");
                Expr::Name(name.into())
            }
        };
        self.node(at, expr)
    }

    fn list(&mut self, at: usize) -> Result<Node, ParseError> {
        let mut nodes = Vec::new();
        while !self.take("]") {
            nodes.push(self.expression()?);
            if !self.take(",") {
                self.expect("]", "`,` or `]`")?;
                break;
            }
        }
        self.node(at, Expr::List(nodes))
    }

    fn object(&mut self, at: usize) -> Result<Node, ParseError> {
        let mut entries = Vec::new();
        while !self.take("}") {
            let key = self.expression()?;
            self.expect(":", "`:` and a value")?;
            entries.push([key, self.expression()?]);
            if !self.take(",") {
                self.expect("}", "`,` or `}`")?;
                break;
            }
        }
        self.node(at, Expr::Object(entries))
    }
}

enum Operator {
    And,
    Or,
    Binary(Binary),
}

/// Appends an operand to an `&&` or `||`.
fn joined(mut nodes: Vec<Node>, last: Node) -> Vec<Node> {
    nodes.push(last);
    nodes
}

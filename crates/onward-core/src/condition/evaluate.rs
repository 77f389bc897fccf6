//! Evaluates a condition: walks its tree once and charges every step to the budget.
//!
//! Failures follow CEL. A deciding operand overrides a failure (`false && failure` is false;
//! likewise for `||`, `all` and `exists`); everywhere else the failure is the result. An exhausted
//! budget is never overridden.

use std::cmp::Ordering;
use std::rc::Rc;

use super::failure::{EvaluationError, Failure};
use super::kind::Kind;
use super::meter::{Cost, Meter, NODE};
use super::number::{ArithmeticError, Number};
use super::scope::Scope;
use super::short_circuit::ShortCircuit;
use super::tree::{Binary, Expr, Node};
use super::value::{Outcome, Value};

/// The value of the condition, and the cost.
pub(super) fn evaluate(root: &Node, scope: &Scope<'_>) -> (Result<bool, EvaluationError>, Cost) {
    let mut evaluation = Evaluation::new(scope);
    let outcome = match evaluation.value(root) {
        Ok(value) => value.truth().ok_or(EvaluationError::NotBoolean {
            found: value.kind().describe(),
        }),
        Err(failure) => Err(failure.explain()),
    };
    (outcome, evaluation.meter.spent())
}

pub(super) struct Evaluation<'a> {
    scope: &'a Scope<'a>,
    pub(super) meter: Meter,
    /// The current entry of the enclosing comprehension. There is at most one.
    pub(super) entry: Option<Value<'a>>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(scope: &'a Scope<'a>) -> Self {
        Self {
            scope,
            meter: Meter::default(),
            entry: None,
        }
    }

    pub(super) fn value(&mut self, node: &'a Node) -> Outcome<'a> {
        self.meter.work(NODE)?;
        match &node.expr {
            Expr::Null => Ok(Value::Null),
            Expr::Bool(value) => Ok(Value::Bool(*value)),
            Expr::Int(value) => Ok(Value::Number(Number::Int(*value))),
            Expr::Uint(value) => Ok(Value::Number(Number::Uint(*value))),
            Expr::Double(value) => Ok(Value::Number(Number::Double(*value))),
            Expr::Text(text) => Ok(Value::Text(text)),
            Expr::Name(name) => self.name(name, node),
            Expr::Entry(_) => self.entry.clone().ok_or(Failure::Missing(node)),
            Expr::Field(of, name) => self.field(node, of, name)?.ok_or(Failure::Missing(node)),
            Expr::Has(of, name) => Ok(Value::Bool(self.field(node, of, name)?.is_some())),
            Expr::Index(of_at) => self.index(node, of_at),
            Expr::Not(of) => Ok(Value::Bool(!self.truth("!", of)?)),
            Expr::Negate(of) => self.negate(of),
            Expr::And(operands) => self.any("&&", operands, false),
            Expr::Or(operands) => self.any("||", operands, true),
            Expr::Choice(three) => self.choice(three),
            Expr::Binary(operator, two) => self.binary(*operator, two),
            Expr::List(nodes) => self.list(nodes),
            Expr::Object(entries) => self.object(entries),
            Expr::Call(function, arguments) => self.call(*function, arguments),
            Expr::Matches(of, pattern) => {
                let value = self.value(of)?;
                let text = value.require_text("matches")?;
                self.meter.work(pattern.work(text.len()))?;
                Ok(Value::Bool(pattern.occurs_in(text)))
            }
            Expr::Comprehension(comprehension, of_body) => {
                self.comprehension(*comprehension, of_body)
            }
            Expr::MapWhere(three) => self.map_where(three),
        }
    }

    /// The value of a boolean operand of the operator `sign`.
    fn truth(&mut self, sign: &'static str, node: &'a Node) -> Result<bool, Failure<'a>> {
        let value = self.value(node)?;
        value.truth().ok_or(Failure::Operand(sign, value.kind()))
    }

    fn name(&mut self, name: &'a str, node: &'a Node) -> Outcome<'a> {
        let scope = self.scope;
        match name {
            "confidence" => Ok(scope
                .confidence
                .map_or(Value::Null, |value| Value::Number(Number::Double(value)))),
            "resultSummary" => Ok(Value::Text(scope.result_summary)),
            "result" => Ok(scope.result.map_or(Value::Null, Value::from_json)),
            "step" => self.record([
                ("order", count(scope.step.order)),
                ("type", Value::Text(scope.step.step_type)),
                ("attempt", count(scope.step.attempt)),
            ]),
            "plan" => self.record([
                ("progress", count(scope.plan.progress)),
                ("completed", count(scope.plan.completed)),
                ("failed", count(scope.plan.failed)),
                ("pending", count(scope.plan.pending)),
            ]),
            _ => {
                self.meter.look_up(name)?;
                let key = scope
                    .result
                    .and_then(|result| result.as_object()?.get(name));
                let kind = || Kind::named(name).map(Value::Type);
                key.map(Value::from_json)
                    .or_else(kind)
                    .ok_or(Failure::Missing(node))
            }
        }
    }

    fn record<const N: usize>(&mut self, fields: [(&'static str, Value<'a>); N]) -> Outcome<'a> {
        self.meter.allocate(N * 2 * size_of::<Value<'_>>())?;
        let entries = fields.map(|(name, value)| (Value::Text(name), value));
        Ok(Value::Entries(Rc::new(entries)))
    }

    /// The field `name` of `of`, if it exists. Fails if `of` is not an object.
    fn field(
        &mut self,
        node: &'a Node,
        of: &'a Node,
        name: &'a str,
    ) -> Result<Option<Value<'a>>, Failure<'a>> {
        let of = self.value(of)?;
        match of.kind() {
            Kind::Object => of.lookup(&Value::Text(name), &mut self.meter),
            kind @ (Kind::Null
            | Kind::Bool
            | Kind::Int
            | Kind::Uint
            | Kind::Double
            | Kind::Text
            | Kind::List
            | Kind::Type) => Err(Failure::NoParts(node, kind)),
        }
    }

    fn index(&mut self, node: &'a Node, of_at: &'a [Node; 2]) -> Outcome<'a> {
        let [of, at] = of_at;
        let (of, at) = (self.value(of)?, self.value(at)?);
        let found = match (of.kind(), &at) {
            (Kind::List, Value::Number(index)) => index
                .as_whole()
                .and_then(|index| of.item(usize::try_from(index).ok()?)),
            (
                Kind::Object,
                Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Built(_),
            ) => of.lookup(&at, &mut self.meter)?,
            (Kind::List | Kind::Object, _) => {
                return Err(Failure::BadIndex(node, of.kind(), at.kind()));
            }
            (kind, _) => return Err(Failure::NoParts(node, kind)),
        };
        found.ok_or(Failure::Missing(node))
    }

    fn negate(&mut self, of: &'a Node) -> Outcome<'a> {
        let value = self.value(of)?;
        let Value::Number(number) = value else {
            return Err(Failure::Operand("-", value.kind()));
        };
        number
            .negate()
            .map(Value::Number)
            .map_err(|_| Failure::Overflow("-"))
    }

    /// `||`, or `&&` if `decisive` is false: whether any operand is `decisive`.
    fn any(&mut self, sign: &'static str, operands: &'a [Node], decisive: bool) -> Outcome<'a> {
        let mut result = ShortCircuit::new(decisive);
        for operand in operands {
            let truth = self.truth(sign, operand);
            if result.add(truth)? {
                break;
            }
        }
        result.finish()
    }

    fn choice(&mut self, three: &'a [Node; 3]) -> Outcome<'a> {
        let [test, then, otherwise] = three;
        if self.truth("?", test)? {
            self.value(then)
        } else {
            self.value(otherwise)
        }
    }

    fn binary(&mut self, operator: Binary, two: &'a [Node; 2]) -> Outcome<'a> {
        let [left, right] = two;
        let (left, right) = (self.value(left)?, self.value(right)?);
        let sign = operator.sign();
        match operator {
            Binary::Equal => Ok(Value::Bool(left.equals(&right, &mut self.meter)?)),
            Binary::NotEqual => Ok(Value::Bool(!left.equals(&right, &mut self.meter)?)),
            Binary::Less => self.ordered(sign, left, right, Ordering::is_lt),
            Binary::LessOrEqual => self.ordered(sign, left, right, Ordering::is_le),
            Binary::Greater => self.ordered(sign, left, right, Ordering::is_gt),
            Binary::GreaterOrEqual => self.ordered(sign, left, right, Ordering::is_ge),
            Binary::In => self.contained(left, right),
            Binary::Add
            | Binary::Subtract
            | Binary::Multiply
            | Binary::Divide
            | Binary::Remainder => self.arithmetic(operator, left, right),
        }
    }

    fn ordered(
        &mut self,
        sign: &'static str,
        left: Value<'a>,
        right: Value<'a>,
        holds: fn(Ordering) -> bool,
    ) -> Outcome<'a> {
        let ordering = match (&left, &right) {
            (Value::Number(left), Value::Number(right)) => left.compare(*right),
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            _ => match (left.text(), right.text()) {
                (Some(left), Some(right)) => {
                    self.meter.compare(left.len().min(right.len()))?;
                    Some(left.cmp(right))
                }
                _ => return Err(Failure::Operands(sign, left.kind(), right.kind())),
            },
        };
        Ok(Value::Bool(ordering.is_some_and(holds)))
    }

    fn contained(&mut self, value: Value<'a>, of: Value<'a>) -> Outcome<'a> {
        match (of.kind(), value.kind()) {
            (Kind::List, _) => {
                let mut index = 0;
                while let Some(item) = of.item(index) {
                    if item.equals(&value, &mut self.meter)? {
                        return Ok(Value::Bool(true));
                    }
                    index += 1;
                }
                Ok(Value::Bool(false))
            }
            (Kind::Object, Kind::Bool | Kind::Int | Kind::Uint | Kind::Double | Kind::Text) => {
                let found = of.lookup(&value, &mut self.meter)?;
                Ok(Value::Bool(found.is_some()))
            }
            (found, kind) => Err(Failure::Operands("in", kind, found)),
        }
    }

    fn arithmetic(&mut self, operator: Binary, left: Value<'a>, right: Value<'a>) -> Outcome<'a> {
        let sign = operator.sign();
        let unsupported = Failure::Operands(sign, left.kind(), right.kind());
        if let (Value::Number(left), Value::Number(right)) = (&left, &right) {
            let number = left
                .compute(operator, *right)
                .map_err(|error| match error {
                    ArithmeticError::Overflow => Failure::Overflow(sign),
                    ArithmeticError::DivisionByZero => Failure::DivisionByZero(sign),
                    ArithmeticError::Decimal => unsupported,
                })?;
            return Ok(Value::Number(number));
        }
        if operator != Binary::Add {
            return Err(unsupported);
        }
        if let (Some(left), Some(right)) = (left.text(), right.text()) {
            self.meter.allocate(left.len() + right.len())?;
            return Ok(Value::Built([left, right].concat().into()));
        }
        if (left.kind(), right.kind()) != (Kind::List, Kind::List) {
            return Err(unsupported);
        }
        let entries = left.entries().unwrap_or(0) + right.entries().unwrap_or(0);
        self.meter.work(entries as u64 * 2)?;
        self.meter.allocate(entries * size_of::<Value<'_>>())?;
        let mut joined = Vec::with_capacity(entries);
        for side in [left, right] {
            joined.extend((0..).map_while(|index| side.item(index)));
        }
        Ok(Value::List(joined.into()))
    }

    fn list(&mut self, nodes: &'a [Node]) -> Outcome<'a> {
        self.meter.allocate(size_of_val(nodes))?;
        let values: Result<Rc<[Value<'a>]>, _> =
            nodes.iter().map(|node| self.value(node)).collect();
        values.map(Value::List)
    }

    fn object(&mut self, nodes: &'a [[Node; 2]]) -> Outcome<'a> {
        self.meter.allocate(size_of_val(nodes))?;
        let mut entries: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(nodes.len());
        for [key, value] in nodes {
            let key = self.value(key)?;
            match key.kind() {
                Kind::Bool | Kind::Int | Kind::Uint | Kind::Text => {}
                kind @ (Kind::Null | Kind::Double | Kind::List | Kind::Object | Kind::Type) => {
                    return Err(Failure::Key(kind));
                }
            }
            for (earlier, _) in &entries {
                if earlier.equals(&key, &mut self.meter)? {
                    return Err(Failure::RepeatedKey);
                }
            }
            let value = self.value(value)?;
            entries.push((key, value));
        }
        Ok(Value::Entries(entries.into()))
    }
}

fn count<'a>(value: u32) -> Value<'a> {
    Value::Number(Number::Int(value.into()))
}

//! Evaluates functions: sizes, string tests, conversions.
//!
//! Conversions follow CEL: `int` truncates a double towards zero and parses a string of digits,
//! `string` formats numbers and booleans, `bool` parses the spellings that CEL defines. An
//! impossible conversion fails. Bytes, timestamps and durations are not supported.

use super::evaluate::Evaluation;
use super::failure::Failure;
use super::number::Number;
use super::tree::{Function, Node};
use super::value::{Outcome, Value};

impl<'a> Evaluation<'a> {
    pub(super) fn call(&mut self, function: Function, arguments: &'a [Node]) -> Outcome<'a> {
        let Some((first, rest)) = arguments.split_first() else {
            return Ok(Value::Null);
        };
        let first = self.value(first)?;
        match function {
            Function::Size => self.size(&first),
            Function::Contains => {
                self.part("contains", &first, rest, |text, part| text.contains(part))
            }
            Function::StartsWith => self.part("startsWith", &first, rest, |text, part| {
                text.starts_with(part)
            }),
            Function::EndsWith => {
                self.part("endsWith", &first, rest, |text, part| text.ends_with(part))
            }
            Function::Int => self.whole("int", &first, |whole| {
                i64::try_from(whole).ok().map(Number::Int)
            }),
            Function::Uint => self.whole("uint", &first, |whole| {
                u64::try_from(whole).ok().map(Number::Uint)
            }),
            Function::Double => self.double(&first),
            Function::String => self.string(first),
            Function::Bool => boolean(&first),
            Function::Dyn => Ok(first),
            Function::Type => Ok(Value::Type(first.kind())),
        }
    }

    fn size(&mut self, value: &Value<'a>) -> Outcome<'a> {
        let size = match (value.entries(), value.text()) {
            (Some(entries), _) => entries,
            (None, Some(text)) => {
                self.meter.compare(text.len())?;
                text.chars().count()
            }
            (None, None) => {
                let needed = "a string, a list or an object";
                return Err(Failure::Argument("size", needed, value.kind()));
            }
        };
        let size = i64::try_from(size).map_err(|_| Failure::Overflow("size"))?;
        Ok(Value::Number(Number::Int(size)))
    }

    fn part(
        &mut self,
        name: &'static str,
        text: &Value<'a>,
        part: &'a [Node],
        holds: fn(&str, &str) -> bool,
    ) -> Outcome<'a> {
        let text = text.require_text(name)?;
        let part = match part.first() {
            Some(part) => self.value(part)?,
            None => Value::Null,
        };
        let part = part.require_text(name)?;
        self.meter.search(part.len())?;
        if name == "contains" {
            self.meter.search(text.len())?;
        }
        Ok(Value::Bool(holds(text, part)))
    }

    fn whole(
        &mut self,
        name: &'static str,
        value: &Value<'a>,
        fit: fn(i128) -> Option<Number>,
    ) -> Outcome<'a> {
        let whole = match (value, value.text()) {
            (Value::Number(Number::Double(value)), _) => Number::Double(value.trunc()).as_whole(),
            (Value::Number(number), _) => number.as_whole(),
            (_, Some(text)) => {
                self.meter.search(text.len())?;
                text.parse().ok()
            }
            _ => None,
        };
        whole
            .and_then(fit)
            .map(Value::Number)
            .ok_or(Failure::Conversion(name, value.kind()))
    }

    fn double(&mut self, value: &Value<'a>) -> Outcome<'a> {
        let double = match (value, value.text()) {
            (Value::Number(number), _) => Some(number.decimal()),
            (_, Some(text)) => {
                self.meter.search(text.len())?;
                text.parse().ok()
            }
            _ => None,
        };
        double
            .map(|double| Value::Number(Number::Double(double)))
            .ok_or(Failure::Conversion("double", value.kind()))
    }

    fn string(&mut self, value: Value<'a>) -> Outcome<'a> {
        /// The maximum length of a formatted number. Doubles are formatted without an exponent.
        const MAX_LENGTH: usize = 400;
        let string = match &value {
            Value::Text(_) | Value::Built(_) => return Ok(value),
            Value::Bool(true) => return Ok(Value::Text("true")),
            Value::Bool(false) => return Ok(Value::Text("false")),
            Value::Number(number) => {
                self.meter.allocate(MAX_LENGTH)?;
                match number {
                    Number::Int(value) => value.to_string(),
                    Number::Uint(value) => value.to_string(),
                    Number::Double(value) => value.to_string(),
                }
            }
            Value::Null
            | Value::Array(_)
            | Value::List(_)
            | Value::Object(_)
            | Value::Entries(_)
            | Value::Type(_) => return Err(Failure::Conversion("string", value.kind())),
        };
        Ok(Value::Built(string.into()))
    }
}

fn boolean<'a>(value: &Value<'a>) -> Outcome<'a> {
    if let Some(truth) = value.truth() {
        return Ok(Value::Bool(truth));
    }
    match value.text() {
        Some("1" | "t" | "true" | "TRUE" | "True") => Ok(Value::Bool(true)),
        Some("0" | "f" | "false" | "FALSE" | "False") => Ok(Value::Bool(false)),
        Some(_) | None => Err(Failure::Conversion("bool", value.kind())),
    }
}

//! The values of conditions: the result's JSON by reference, and computed values.
//!
//! Nothing of a result is copied. Computed lists and strings are reference-counted.
//!
//! Differences from CEL: numbers (see `number`); object keys are iterated in alphabetical order,
//! those of a literal in source order; NaN is neither less nor greater than any number.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::failure::Failure;
use super::kind::Kind;
use super::meter::{Meter, NODE};
use super::number::Number;

/// The value of an expression, or why it has none.
pub(super) type Outcome<'a> = Result<Value<'a>, Failure<'a>>;

#[derive(Clone)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Number(Number),
    /// A string from the scope or the condition.
    Text(&'a str),
    /// A computed string.
    Built(Rc<str>),
    Array(&'a [Json]),
    List(Rc<[Value<'a>]>),
    Object(&'a Map<String, Json>),
    /// An object literal, `step` or `plan`: few entries, searched linearly.
    Entries(Rc<[(Value<'a>, Value<'a>)]>),
    Type(Kind),
}

impl<'a> Value<'a> {
    pub(super) fn from_json(json: &'a Json) -> Value<'a> {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => {
                let int = number.as_i64().map(Number::Int);
                let whole = int.or_else(|| number.as_u64().map(Number::Uint));
                let any = whole.or_else(|| number.as_f64().map(Number::Double));
                any.map_or(Value::Null, Value::Number)
            }
            Json::String(text) => Value::Text(text),
            Json::Array(entries) => Value::Array(entries),
            Json::Object(entries) => Value::Object(entries),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Number(Number::Int(_)) => Kind::Int,
            Value::Number(Number::Uint(_)) => Kind::Uint,
            Value::Number(Number::Double(_)) => Kind::Double,
            Value::Text(_) | Value::Built(_) => Kind::Text,
            Value::Array(_) | Value::List(_) => Kind::List,
            Value::Object(_) | Value::Entries(_) => Kind::Object,
            Value::Type(_) => Kind::Type,
        }
    }

    pub(super) fn truth(&self) -> Option<bool> {
        if let Value::Bool(truth) = self {
            Some(*truth)
        } else {
            None
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Built(text) => Some(text),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::List(_)
            | Value::Object(_)
            | Value::Entries(_)
            | Value::Type(_) => None,
        }
    }

    /// The string operand of the string function `name`.
    pub(super) fn require_text<'n>(&self, name: &'static str) -> Result<&str, Failure<'n>> {
        self.text().ok_or_else(|| {
            let needed = match self.kind() {
                Kind::List => "a string (use `in` for lists)",
                Kind::Null
                | Kind::Bool
                | Kind::Int
                | Kind::Uint
                | Kind::Double
                | Kind::Text
                | Kind::Object
                | Kind::Type => "a string",
            };
            Failure::Argument(name, needed, self.kind())
        })
    }

    /// The number of entries of a list or an object.
    pub(super) fn entries(&self) -> Option<usize> {
        match self {
            Value::Array(entries) => Some(entries.len()),
            Value::List(entries) => Some(entries.len()),
            Value::Object(entries) => Some(entries.len()),
            Value::Entries(entries) => Some(entries.len()),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Built(_)
            | Value::Type(_) => None,
        }
    }

    /// The list entry at this index.
    pub(super) fn item(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Value::Array(entries) => entries.get(index).map(Value::from_json),
            Value::List(entries) => entries.get(index).cloned(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Built(_)
            | Value::Object(_)
            | Value::Entries(_)
            | Value::Type(_) => None,
        }
    }

    /// The value of an object's key.
    pub(super) fn lookup<'n>(
        &self,
        key: &Value<'a>,
        meter: &mut Meter,
    ) -> Result<Option<Value<'a>>, Failure<'n>> {
        match (self, key.text()) {
            (Value::Object(entries), Some(text)) => {
                meter.look_up(text)?;
                Ok(entries.get(text).map(Value::from_json))
            }
            (Value::Entries(entries), _) => {
                for (candidate, value) in entries.iter() {
                    if candidate.equals(key, meter)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// The items of a comprehension: the entries of a list or the keys of an object.
    pub(super) fn parts<'n>(&self, meter: &mut Meter) -> Result<Option<Parts<'a>>, Failure<'n>> {
        Ok(Some(match self {
            Value::Array(entries) => Parts::Array(entries),
            Value::List(entries) => Parts::List(Rc::clone(entries)),
            Value::Object(entries) => {
                // Sort the keys, so that the outcome does not depend on their order in the
                // document.
                meter.allocate(entries.len() * size_of::<Value<'_>>())?;
                meter.work(entries.len() as u64 * 4 * NODE)?;
                let mut keys: Vec<&'a str> = entries.keys().map(String::as_str).collect();
                keys.sort_unstable();
                Parts::List(keys.into_iter().map(Value::Text).collect())
            }
            Value::Entries(entries) => {
                meter.allocate(entries.len() * size_of::<Value<'_>>())?;
                Parts::List(entries.iter().map(|(key, _)| key.clone()).collect())
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Built(_)
            | Value::Type(_) => return Ok(None),
        }))
    }

    /// Whether two values are equal. Values of different types are not, except numbers.
    pub(super) fn equals<'n>(
        &self,
        other: &Value<'a>,
        meter: &mut Meter,
    ) -> Result<bool, Failure<'n>> {
        meter.work(NODE)?;
        if let (Some(left), Some(right)) = (self.text(), other.text()) {
            if left.len() != right.len() {
                return Ok(false);
            }
            meter.compare(left.len())?;
            return Ok(left == right);
        }
        match (self, other) {
            (Value::Null, Value::Null) => Ok(true),
            (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
            (Value::Number(left), Value::Number(right)) => {
                Ok(left.compare(*right) == Some(Ordering::Equal))
            }
            (Value::Type(left), Value::Type(right)) => Ok(left == right),
            _ => match (self.kind(), other.kind()) {
                (Kind::List, Kind::List) => self.same_items(other, meter),
                (Kind::Object, Kind::Object) => self.same_entries(other, meter),
                _ => Ok(false),
            },
        }
    }

    fn same_items<'n>(&self, other: &Value<'a>, meter: &mut Meter) -> Result<bool, Failure<'n>> {
        if self.entries() != other.entries() {
            return Ok(false);
        }
        let mut index = 0;
        while let (Some(left), Some(right)) = (self.item(index), other.item(index)) {
            if !left.equals(&right, meter)? {
                return Ok(false);
            }
            index += 1;
        }
        Ok(true)
    }

    fn same_entries<'n>(&self, other: &Value<'a>, meter: &mut Meter) -> Result<bool, Failure<'n>> {
        if self.entries() != other.entries() {
            return Ok(false);
        }
        let mut same = |key: &Value<'a>, value: &Value<'a>| {
            let found = other.lookup(key, meter)?;
            found.map_or(Ok(false), |found| value.equals(&found, meter))
        };
        match self {
            Value::Object(entries) => {
                for (key, value) in *entries {
                    if !same(&Value::Text(key), &Value::from_json(value))? {
                        return Ok(false);
                    }
                }
            }
            Value::Entries(entries) => {
                for (key, value) in entries.iter() {
                    if !same(key, value)? {
                        return Ok(false);
                    }
                }
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Built(_)
            | Value::Array(_)
            | Value::List(_)
            | Value::Type(_) => return Ok(false),
        }
        Ok(true)
    }
}

/// The items of a comprehension.
pub(super) enum Parts<'a> {
    Array(&'a [Json]),
    List(Rc<[Value<'a>]>),
}

impl<'a> Parts<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Parts::Array(entries) => entries.len(),
            Parts::List(entries) => entries.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Parts::Array(entries) => entries.get(index).map(Value::from_json),
            Parts::List(entries) => entries.get(index).cloned(),
        }
    }
}

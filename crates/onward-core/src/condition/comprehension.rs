//! Evaluates comprehensions over the entries of a list or the keys of an object.
//!
//! `all` and `exists` are `&&` and `||` over the entries, including failures: one deciding entry
//! overrides every failure before and after it. The others require a value for every entry.

use super::evaluate::Evaluation;
use super::failure::Failure;
use super::meter::NODE;
use super::short_circuit::ShortCircuit;
use super::tree::{Comprehension, Node};
use super::value::{Outcome, Parts, Value};

impl<'a> Evaluation<'a> {
    pub(super) fn comprehension(
        &mut self,
        comprehension: Comprehension,
        of_body: &'a [Node; 2],
    ) -> Outcome<'a> {
        let [of, body] = of_body;
        let name = match comprehension {
            Comprehension::All => "all",
            Comprehension::Exists => "exists",
            Comprehension::ExistsOne => "exists_one",
            Comprehension::Filter => "filter",
            Comprehension::Map => "map",
        };
        let parts = self.parts(name, of)?;
        let outcome = match comprehension {
            Comprehension::All => self.any_entry(name, &parts, body, false),
            Comprehension::Exists => self.any_entry(name, &parts, body, true),
            Comprehension::ExistsOne => self
                .kept(name, &parts, body, None)
                .map(|kept| Value::Bool(kept.len() == 1)),
            Comprehension::Filter => self
                .kept(name, &parts, body, None)
                .map(|kept| Value::List(kept.into())),
            Comprehension::Map => self.mapped(&parts, body),
        };
        self.entry = None;
        outcome
    }

    /// `list.map(x, test, value)`.
    pub(super) fn map_where(&mut self, three: &'a [Node; 3]) -> Outcome<'a> {
        let [of, test, value] = three;
        let parts = self.parts("map", of)?;
        let outcome = self.kept("map", &parts, test, Some(value));
        self.entry = None;
        outcome.map(|kept| Value::List(kept.into()))
    }

    fn parts(&mut self, name: &'static str, of: &'a Node) -> Result<Parts<'a>, Failure<'a>> {
        let of = self.value(of)?;
        let parts = of.parts(&mut self.meter)?;
        parts.ok_or_else(|| Failure::Argument(name, "a list or an object", of.kind()))
    }

    /// Whether `body` evaluates to `decisive` for any entry.
    fn any_entry(
        &mut self,
        name: &'static str,
        parts: &Parts<'a>,
        body: &'a Node,
        decisive: bool,
    ) -> Outcome<'a> {
        let mut result = ShortCircuit::new(decisive);
        for index in 0..parts.len() {
            self.entry = parts.get(index);
            let outcome = self.outcome(name, body);
            if result.add(outcome)? {
                break;
            }
        }
        result.finish()
    }

    /// The entries for which `test` is true, mapped by `value` if it is given.
    fn kept(
        &mut self,
        name: &'static str,
        parts: &Parts<'a>,
        test: &'a Node,
        value: Option<&'a Node>,
    ) -> Result<Vec<Value<'a>>, Failure<'a>> {
        self.meter.allocate(parts.len() * size_of::<Value<'_>>())?;
        let mut kept = Vec::with_capacity(parts.len());
        for index in 0..parts.len() {
            self.entry = parts.get(index);
            if self.outcome(name, test)? {
                match value {
                    Some(value) => kept.push(self.value(value)?),
                    None => kept.extend(self.entry.take()),
                }
            }
        }
        Ok(kept)
    }

    fn mapped(&mut self, parts: &Parts<'a>, value: &'a Node) -> Outcome<'a> {
        self.meter.allocate(parts.len() * size_of::<Value<'_>>())?;
        let mut mapped = Vec::with_capacity(parts.len());
        for index in 0..parts.len() {
            self.entry = parts.get(index);
            mapped.push(self.value(value)?);
        }
        Ok(Value::List(mapped.into()))
    }

    /// The boolean value of the body for the current entry.
    fn outcome(&mut self, name: &'static str, body: &'a Node) -> Result<bool, Failure<'a>> {
        self.meter.work(NODE)?;
        let value = self.value(body)?;
        let needed = "a boolean for each entry";
        value
            .truth()
            .ok_or(Failure::Argument(name, needed, value.kind()))
    }
}

//! The comprehensions: what is asked of every entry of a list, or every key of an object.
//!
//! `all` and `exists` are `&&` and `||` over the entries, failures included: one entry that
//! decides overrules every failure before and after it. The others need every entry to answer.

use super::evaluate::{Outcome, Trial};
use super::failure::Failure;
use super::meter::NODE;
use super::tree::{Comprehension, Node};
use super::value::{Parts, Value};

impl<'a> Trial<'a> {
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
        let answer = match comprehension {
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
        answer
    }

    /// `list.map(x, test, value)`.
    pub(super) fn map_where(&mut self, three: &'a [Node; 3]) -> Outcome<'a> {
        let [of, test, value] = three;
        let parts = self.parts("map", of)?;
        let answer = self.kept("map", &parts, test, Some(value));
        self.entry = None;
        answer.map(|kept| Value::List(kept.into()))
    }

    fn parts(&mut self, name: &'static str, of: &'a Node) -> Result<Parts<'a>, Failure<'a>> {
        let of = self.value(of)?;
        let parts = of.parts(&mut self.meter)?;
        parts.ok_or_else(|| Failure::Argument(name, "a list or an object", of.kind()))
    }

    /// Whether `body` is `decisive` for any entry.
    fn any_entry(
        &mut self,
        name: &'static str,
        parts: &Parts<'a>,
        body: &'a Node,
        decisive: bool,
    ) -> Outcome<'a> {
        let mut verdict = Verdict::new(decisive);
        for index in 0..parts.len() {
            self.entry = parts.get(index);
            let answer = self.answer(name, body);
            if verdict.hear(answer)? {
                break;
            }
        }
        verdict.reach()
    }

    /// The entries for which `test` is true, or what `value` makes of them.
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
            if self.answer(name, test)? {
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

    /// What the body says of the entry at hand.
    fn answer(&mut self, name: &'static str, body: &'a Node) -> Result<bool, Failure<'a>> {
        self.meter.work(NODE)?;
        let value = self.value(body)?;
        let needed = "a boolean for each entry";
        value
            .truth()
            .ok_or(Failure::Argument(name, needed, value.kind()))
    }
}

/// `||` over whatever comes, or `&&` with `decisive` false.
pub(super) struct Verdict<'a> {
    decisive: bool,
    decided: bool,
    failure: Option<Failure<'a>>,
}

impl<'a> Verdict<'a> {
    pub(super) fn new(decisive: bool) -> Verdict<'a> {
        Verdict {
            decisive,
            decided: false,
            failure: None,
        }
    }

    /// Takes one more operand; true when no other can change the verdict.
    pub(super) fn hear(&mut self, operand: Result<bool, Failure<'a>>) -> Result<bool, Failure<'a>> {
        match operand {
            Ok(truth) => self.decided = truth == self.decisive,
            Err(Failure::Exhausted) => return Err(Failure::Exhausted),
            Err(failure) => {
                self.failure.get_or_insert(failure);
            }
        }
        Ok(self.decided)
    }

    pub(super) fn reach(self) -> Outcome<'a> {
        match self.failure {
            Some(failure) if !self.decided => Err(failure),
            Some(_) | None => Ok(Value::Bool(self.decided == self.decisive)),
        }
    }
}

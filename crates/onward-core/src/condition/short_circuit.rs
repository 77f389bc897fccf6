//! `&&` and `||` over any number of operands, including failures: one deciding operand overrides every
//! failure before and after it, except an exhausted budget.

use super::failure::Failure;
use super::value::{Outcome, Value};

/// The `||` of several operands, or the `&&` if `decisive` is false.
pub(super) struct ShortCircuit<'a> {
    decisive: bool,
    decided: bool,
    failure: Option<Failure<'a>>,
}

impl<'a> ShortCircuit<'a> {
    pub(super) fn new(decisive: bool) -> ShortCircuit<'a> {
        ShortCircuit {
            decisive,
            decided: false,
            failure: None,
        }
    }

    /// Adds an operand. Returns true if no further operand can change the result.
    pub(super) fn add(&mut self, operand: Result<bool, Failure<'a>>) -> Result<bool, Failure<'a>> {
        match operand {
            Ok(truth) => self.decided = truth == self.decisive,
            Err(Failure::Exhausted) => return Err(Failure::Exhausted),
            Err(failure) => {
                self.failure.get_or_insert(failure);
            }
        }
        Ok(self.decided)
    }

    pub(super) fn finish(self) -> Outcome<'a> {
        match self.failure {
            Some(failure) if !self.decided => Err(failure),
            Some(_) | None => Ok(Value::Bool(self.decided == self.decisive)),
        }
    }
}

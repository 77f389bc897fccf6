//! A turn that is still being read: its steps so far, and which call an answer belongs to.
//!
//! Answers are matched by the id of the call, wherever in the turn it was made. The first answer
//! counts; one without a call, or a second one, is passed over.

use std::collections::HashMap;

use serde_json::Value;

use super::{Call, Step};

/// The steps of a turn so far.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) steps: Vec<Step>,
    /// Unanswered calls by id: which step, which call of it.
    open: HashMap<String, (usize, usize)>,
}

impl Draft {
    /// Begins a step, and says which one it is.
    pub(super) fn begin_step(&mut self) -> usize {
        self.steps.push(Step::default());
        self.steps.len() - 1
    }

    /// Adds a call to a step.
    pub(super) fn call(&mut self, step: usize, id: Option<&str>, tool: &str, input: Value) {
        let Some(calls) = self.steps.get_mut(step).map(|step| &mut step.calls) else {
            return;
        };
        if let Some(id) = id {
            self.open.insert(id.to_owned(), (step, calls.len()));
        }
        calls.push(Call {
            tool: tool.to_owned(),
            input,
            ok: None,
            output: String::new(),
        });
    }

    /// Gives a call its answer, and says in which step that was.
    pub(super) fn answer(&mut self, id: &str, ok: Option<bool>, output: String) -> Option<usize> {
        let (step, call) = self.open.remove(id)?;
        let call = self.steps.get_mut(step)?.calls.get_mut(call)?;
        call.ok = ok;
        call.output = output;
        Some(step)
    }
}

//! Builds a turn while it is read: its steps, and the open calls.
//!
//! A result is matched to a call of the turn by id. The first result counts; a second one, and one
//! without a call, are ignored.

use std::collections::HashMap;

use serde_json::Value;

use super::{Call, Step};

/// The steps of a turn so far.
#[derive(Default)]
pub(super) struct TurnBuilder {
    pub(super) steps: Vec<Step>,
    /// Calls without a result, by id: the step and the index in it.
    open_calls: HashMap<String, (usize, usize)>,
    /// Whether a result was added after the last step began.
    has_results: bool,
}

impl TurnBuilder {
    /// Starts a step and returns its index.
    pub(super) fn begin_step(&mut self) -> usize {
        self.has_results = false;
        self.steps.push(Step::default());
        self.steps.len() - 1
    }

    /// The step of an item of the model, in formats that do not mark steps: a result ends the step
    /// before it.
    pub(super) fn current_step(&mut self) -> usize {
        if self.steps.is_empty() || self.has_results {
            return self.begin_step();
        }
        self.steps.len() - 1
    }

    /// The last step.
    pub(super) fn last_step(&mut self) -> usize {
        match self.steps.len() {
            0 => self.begin_step(),
            steps => steps - 1,
        }
    }

    /// Adds text to a step.
    pub(super) fn add_text(&mut self, step: usize, text: &str) {
        if let Some(step) = self.steps.get_mut(step) {
            if !step.text.is_empty() {
                step.text.push('\n');
            }
            step.text.push_str(text);
        }
    }

    /// Adds a call to a step.
    pub(super) fn add_call(&mut self, step: usize, id: Option<&str>, tool: &str, input: Value) {
        let Some(calls) = self.steps.get_mut(step).map(|step| &mut step.calls) else {
            return;
        };
        if let Some(id) = id {
            self.open_calls.insert(id.to_owned(), (step, calls.len()));
        }
        calls.push(Call {
            tool: tool.to_owned(),
            input,
            ok: None,
            output: String::new(),
        });
    }

    /// Sets the result of a call and returns the index of its step.
    pub(super) fn add_result(
        &mut self,
        id: &str,
        ok: Option<bool>,
        output: String,
    ) -> Option<usize> {
        self.has_results = true;
        let (step, call) = self.open_calls.remove(id)?;
        let call = self.steps.get_mut(step)?.calls.get_mut(call)?;
        call.ok = ok;
        call.output = output;
        Some(step)
    }
}

//! External changes of a step, derived from a log.
//!
//! Only certain results count: a successful edit is a change, a failed edit is not, and a command
//! that only reads is not (`turn::command_effect` in the core). The effect of any other command is
//! unknown. Live agents have a better signal, the fingerprint of the working tree.

use std::borrow::Cow;

use onward_core::turn::{ExternalChange, certainly_changes, command_effect};
use serde_json::Value;

use super::{Call, Step};

/// The tools of an agent by their effect. The effect of any other tool is unknown.
pub(super) struct AgentTools {
    /// Tools that write a file.
    pub(super) edit: &'static [&'static str],
    /// Tools that change nothing outside the agent.
    pub(super) read: &'static [&'static str],
    /// Tools that run a command.
    pub(super) shell: &'static [&'static str],
}

impl AgentTools {
    /// Sets the effect of each step of a turn.
    pub(super) fn set_effects(&self, steps: &mut [Step]) {
        let mut edits = EditTracker::default();
        for step in steps {
            let calls = step.calls.iter();
            step.external_change = combine(calls.map(|call| self.effect(call, &mut edits)));
        }
    }

    /// The effect of a call on external state.
    fn effect(&self, call: &Call, edits: &mut EditTracker) -> ExternalChange {
        let Some(ok) = call.ok else {
            return ExternalChange::Unknown;
        };
        let tool = call.tool.as_str();
        if self.edit.contains(&tool) {
            return if ok {
                edits.record_edit(call)
            } else {
                ExternalChange::Unchanged
            };
        }
        if self.read.contains(&tool) {
            return ExternalChange::Unchanged;
        }
        // The effect of a running command is unknown.
        let in_background = ["run_in_background", "is_background"]
            .iter()
            .any(|key| call.input[*key] == true);
        if !self.shell.contains(&tool) || in_background {
            return ExternalChange::Unknown;
        }
        let command = command(&call.input);
        if ok && certainly_changes(&command) {
            return edits.record_edit(call);
        }
        command_effect(&command)
    }
}

/// The command of a call. A list of arguments is a command for a shell, or a program with its
/// arguments.
fn command(input: &Value) -> Cow<'_, str> {
    let command = input.get("command").unwrap_or(&input["cmd"]);
    if let Some(command) = command.as_str() {
        return command.into();
    }
    let words = command.as_array().into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    match words.as_slice() {
        [_, "-c" | "-lc", script] => (*script).into(),
        words => words.join(" ").into(),
    }
}

/// Combines the effects of calls. Precedence: `Changed`, `Unknown`, `TimedOut`, `Unchanged`.
fn combine(calls: impl Iterator<Item = ExternalChange>) -> ExternalChange {
    let mut combined = None;
    for call in calls {
        combined = Some(match (combined, call) {
            (Some(ExternalChange::Changed), _) | (_, ExternalChange::Changed) => {
                ExternalChange::Changed
            }
            (Some(ExternalChange::Unknown), _) | (_, ExternalChange::Unknown) => {
                ExternalChange::Unknown
            }
            (Some(ExternalChange::TimedOut), _) | (_, ExternalChange::TimedOut) => {
                ExternalChange::TimedOut
            }
            (None | Some(ExternalChange::Unchanged), ExternalChange::Unchanged) => {
                ExternalChange::Unchanged
            }
        });
    }
    combined.unwrap_or_default()
}

/// The edits of a turn. An edit that repeats the previous one with the same result changes nothing.
#[derive(Default)]
struct EditTracker {
    last: Option<(Value, String)>,
}

impl EditTracker {
    /// Records a successful edit and returns its effect.
    fn record_edit(&mut self, edit: &Call) -> ExternalChange {
        let repeats = self
            .last
            .as_ref()
            .is_some_and(|(input, output)| *input == edit.input && *output == edit.output);
        self.last = Some((edit.input.clone(), edit.output.clone()));
        if repeats {
            ExternalChange::Unchanged
        } else {
            ExternalChange::Changed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combines_the_effects_of_all_calls() {
        use ExternalChange::{Changed, Unchanged, Unknown};
        for (calls, combined) in [
            (&[Unchanged, Unknown, Changed] as &[ExternalChange], Changed),
            (&[Unchanged, Unknown], Unknown),
            (&[Unchanged, Unchanged], Unchanged),
            (&[], Unknown),
        ] {
            assert_eq!(combine(calls.iter().copied()), combined, "{calls:?}");
        }
    }
}

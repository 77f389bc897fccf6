//! External changes of a step, derived from a log.
//!
//! Only certain results count: a successful edit is a change, a failed edit is not, and a command
//! that only reads is not (`turn::command_effect` in the core). The effect of any other command is
//! unknown. Live agents have a better signal, the fingerprint of the working tree.

use onward_core::turn::ExternalChange;
use serde_json::Value;

use super::Call;

/// Combines the effects of calls. Precedence: `Changed`, `Unknown`, `TimedOut`, `Unchanged`.
pub(super) fn combine(calls: impl Iterator<Item = ExternalChange>) -> ExternalChange {
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
pub(super) struct EditTracker {
    last: Option<(Value, String)>,
}

impl EditTracker {
    /// Records a successful edit and returns its effect.
    pub(super) fn record_edit(&mut self, edit: &Call) -> ExternalChange {
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

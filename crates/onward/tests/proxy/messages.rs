//! The texts that the proxy injects, computed by the core.

use onward_core::turn::ExternalChange;
use onward_core::turn::escalation::{self, EscalationState, TextOnlyReason};

/// The nudge after a number of idle steps.
pub(crate) fn nudge(idle_steps: u32) -> String {
    let state = EscalationState {
        idle_steps,
        ..EscalationState::default()
    };
    escalation::nudge(&state, ExternalChange::Unknown)
}

/// Whether a text is the reminder after a number of idle steps, regardless of the calls it lists.
pub(crate) fn is_reminder(text: &str, idle_steps: u32) -> bool {
    let plain = escalation::reminder(&stalled(idle_steps), ExternalChange::Unknown, &[]);
    let (fact, instruction) = plain.split_once('.').expect("two sentences");
    text.starts_with(fact) && text.ends_with(instruction)
}

/// The reminder after the maximum number of steps.
pub(crate) fn max_steps_reminder(steps: u32) -> String {
    let state = EscalationState {
        steps,
        text_only: Some(TextOnlyReason::MaxSteps),
        ..EscalationState::default()
    };
    escalation::reminder(&state, ExternalChange::Unknown, &[])
}

/// The final message of a turn that is ended by the proxy.
pub(crate) fn final_message(idle_steps: u32) -> String {
    escalation::final_message(&stalled(idle_steps))
}

/// The warning for the user about a stalled turn.
pub(crate) fn user_warning(idle_steps: u32) -> String {
    escalation::for_user(&stalled(idle_steps))
}

fn stalled(idle_steps: u32) -> EscalationState {
    EscalationState {
        idle_steps,
        text_only: Some(TextOnlyReason::Stalled),
        ..EscalationState::default()
    }
}

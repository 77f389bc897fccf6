//! Records that the session that holds a step has ended. The step stays in progress: a result of its
//! agent is still accepted, and another session can take over the step without waiting for its stall
//! threshold. A step under review stays there, and can be taken over after a decision that asks for
//! changes. Ignored if the session does not hold the step.

use super::claim::is_holder;
use super::facts::StepFacts;
use crate::command::OrphanStep;
use crate::event::Event;

/// Decides the command.
pub fn decide(facts: &StepFacts, command: &OrphanStep) -> Vec<Event> {
    let StepFacts { head, step, .. } = facts;
    let work = step.claimed_work();
    let is_claimed = work.is_some_and(|work| work.orphaned_at.is_none());
    let is_held = is_holder(step, command.token.as_ref(), Some(&command.session));
    if head.status().is_terminal() || !is_claimed || !is_held {
        return Vec::new();
    }
    vec![Event::StepOrphaned {
        step: command.step,
        session: Some(command.session.clone()),
    }]
}

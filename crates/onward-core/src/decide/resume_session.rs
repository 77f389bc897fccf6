//! Records that a session continues a plan that another session worked on. Recorded once per
//! session, and not for a terminal plan.

use crate::apply::Plan;
use crate::command::ResumeSession;
use crate::event::Event;
use crate::id::SessionId;
use crate::plan::PlanHead;

/// The required facts.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The plan.
    pub head: PlanHead,
    /// Whether this session is already recorded.
    pub recorded: bool,
}

impl Facts {
    /// The facts of a plan in memory.
    pub fn from_plan(plan: &Plan, session: &SessionId) -> Self {
        Self {
            head: plan.head().clone(),
            recorded: plan.has_resumed(session),
        }
    }
}

/// Decides the command.
pub fn decide(facts: &Facts, command: &ResumeSession) -> Vec<Event> {
    let is_last_session = facts.head.last_session.as_ref() == Some(&command.session);
    if facts.recorded || is_last_session || facts.head.status().is_terminal() {
        return Vec::new();
    }
    vec![Event::SessionResumed {
        session: command.session.clone(),
    }]
}

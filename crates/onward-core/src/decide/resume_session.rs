//! Records that a session continues a plan that another session worked on. Recorded once per
//! session, and not for a terminal plan.

use crate::command::ResumeSession;
use crate::event::Event;
use crate::plan::PlanHead;

/// The required facts.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a PlanHead,
    /// Whether this session is already recorded.
    pub recorded: bool,
}

/// Decides the command.
pub fn decide(facts: &Facts<'_>, command: &ResumeSession) -> Vec<Event> {
    let is_last_session = facts.plan.last_session.as_ref() == Some(&command.session);
    if facts.recorded || is_last_session || facts.plan.status().is_terminal() {
        return Vec::new();
    }
    vec![Event::SessionResumed {
        session: command.session.clone(),
    }]
}

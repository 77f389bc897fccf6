//! A session takes a plan up that another one worked on. Noted once per session, and not on a plan
//! that is over: there is nothing to take up.

use crate::command::ResumeSession;
use crate::event::Event;
use crate::plan::PlanHead;

/// What must be known.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a PlanHead,
    /// Whether this was noted of the session before.
    pub seen: bool,
}

/// Decides whether it is noted.
pub fn decide(facts: &Facts<'_>, command: &ResumeSession) -> Vec<Event> {
    let at_work = facts.plan.last_session.as_ref() == Some(&command.session);
    if facts.seen || at_work || facts.plan.status().is_terminal() {
        return Vec::new();
    }
    vec![Event::SessionResumed {
        session: command.session.clone(),
    }]
}

//! Compares the tokens of a plan's sessions with its budget. The count itself is not an event: only an
//! exhausted limit is recorded.

use super::draft::Draft;
use crate::budget::{Exhausted, Limit};
use crate::command::CountTokens;
use crate::event::Event;
use crate::plan::PlanHead;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// Decides the command. Returns no events unless the limit is reached for the first time.
pub fn decide(
    plan: &PlanHead,
    command: &CountTokens,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let open = plan.budget.filter(|_| !plan.status().is_terminal());
    // Tokens are counted only while a session holds a step.
    let open = open.filter(|budget| budget.exhausted.is_none() && budget.used.attempts > 0);
    let max = open.and_then(|budget| budget.limits.max_tokens);
    let Some(max) = max.filter(|max| command.total >= *max) else {
        return Ok(Vec::new());
    };
    let mut draft = Draft::new(plan, now);
    draft.push(Event::BudgetExhausted {
        exhausted: Exhausted {
            limit: Limit::Tokens,
            max,
            used: command.total,
        },
    })?;
    draft.finish()
}

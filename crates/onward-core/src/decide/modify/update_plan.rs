//! Changes the project, the labels or the priority of the plan.

use super::super::check::Check;
use super::super::create::normalized;
use super::facts::Facts;
use crate::command::PlanUpdate;
use crate::event::{Change, Event};
use crate::refusal::Refusal;

pub(super) fn decide(
    facts: &Facts,
    update: &PlanUpdate,
) -> Result<(Change, Option<Event>), Refusal> {
    let mut routing = facts.head.routing.clone();
    if let Some(key) = &update.project_key {
        routing.project_key = Some(key.clone()).filter(|key| !key.trim().is_empty());
    }
    if let Some(labels) = &update.labels {
        routing.labels.clone_from(labels);
    }
    if let Some(priority) = update.priority {
        routing.priority = priority;
    }
    let mut check = Check::default();
    check.routing(&routing);
    check.finish()?;
    let routing = normalized(&routing);
    Ok((Change::PlanUpdated { routing }, None))
}

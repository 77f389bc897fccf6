//! The audit trail: `{planId, events: [{seq, at, eventType, stepId?, actor, details}]}`, oldest first.

use onward_core::PlanId;
use onward_core::id::SessionId;
use onward_engine::trail::Shown;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Audit {
    plan_id: String,
    events: Vec<Event>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Event {
    seq: u64,
    at: String,
    event_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_id: Option<String>,
    actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    details: Value,
}

impl Audit {
    pub(crate) fn of(plan: PlanId, trail: Vec<Shown>) -> Self {
        Self {
            plan_id: plan.to_string(),
            events: trail.into_iter().map(Event::of).collect(),
        }
    }
}

impl Event {
    fn of(shown: Shown) -> Self {
        let Shown {
            entry,
            name,
            details,
        } = shown;
        Self {
            seq: entry.seq,
            at: super::at(entry.at),
            event_type: name,
            step_id: entry.event.step().map(|step| step.to_string()),
            actor: entry.author.name,
            session_id: entry.author.session.as_ref().map(SessionId::to_string),
            details,
        }
    }
}

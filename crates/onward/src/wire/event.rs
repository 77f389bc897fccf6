//! The audit trail: `{planId, events: [{seq, at, eventType, stepId?, actor, details}]}`, oldest
//! first.

use onward_core::id::SessionId;
use onward_core::{Json, PlanId};
use onward_engine::audit::AuditEntry;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Audit {
    plan_id: String,
    events: Vec<Event>,
    /// Whether events after the last one are missing
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
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
    #[schemars(with = "Value")]
    details: Json,
}

impl Audit {
    pub(crate) fn new(plan: PlanId, events: Vec<AuditEntry>) -> Self {
        Self {
            plan_id: plan.to_string(),
            events: events.into_iter().map(Event::new).collect(),
            truncated: false,
        }
    }

    pub(crate) fn truncated(self, truncated: bool) -> Self {
        Self { truncated, ..self }
    }
}

/// Events of several plans: `{events: [{planId, seq, …}]}`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Events {
    events: Vec<PlanEvent>,
    /// Whether events after the last one are missing
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlanEvent {
    plan_id: String,
    #[serde(flatten)]
    event: Event,
}

impl Events {
    pub(crate) fn new(events: Vec<(PlanId, AuditEntry)>) -> Self {
        let event = |(plan, entry): (PlanId, AuditEntry)| PlanEvent {
            plan_id: plan.to_string(),
            event: Event::new(entry),
        };
        Self {
            events: events.into_iter().map(event).collect(),
            truncated: false,
        }
    }

    pub(crate) fn truncated(self, truncated: bool) -> Self {
        Self { truncated, ..self }
    }
}

impl Event {
    fn new(entry: AuditEntry) -> Self {
        let AuditEntry {
            entry,
            name,
            details,
        } = entry;
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

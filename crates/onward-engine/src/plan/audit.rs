//! Queries on a plan's audit trail, without claim tokens.

use onward_core::PlanId;
use onward_core::role::Permission;
use onward_store::{AuditTrail, Contexts, Entry, Plans, Recent, codec};
use serde_json::Value;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// An entry of the audit trail.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// The stored entry.
    pub entry: Entry,
    /// The event's name.
    pub name: &'static str,
    /// The event's details as a JSON object, without claim tokens.
    pub details: Value,
}

impl Engine {
    /// Entries after a sequence number, oldest first.
    pub async fn audit_trail(
        &self,
        caller: &Caller,
        plan: PlanId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, Error> {
        caller.allow(Permission::Read)?;
        let entries = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = Plans(tx).sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<_, Error>(AuditTrail(tx).trail(plan, after, limit).await?)
            })
        });
        Ok(entries.await?.into_iter().map(audit_entry).collect())
    }

    /// The most recent events, newest first, without long details.
    pub async fn recent_events(
        &self,
        caller: &Caller,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<Recent>, Error> {
        caller.allow(Permission::Read)?;
        let recent = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = Plans(tx).sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<_, Error>(Contexts(tx).recent(plan, limit).await?)
            })
        });
        recent.await
    }

    /// Entries up to and including a sequence number, newest first, optionally of one event type.
    pub async fn audit_trail_backwards(
        &self,
        caller: &Caller,
        plan: PlanId,
        from: Option<u64>,
        name: Option<String>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, Error> {
        caller.allow(Permission::Read)?;
        let entries = self.store.read(&caller.tenant, move |tx| {
            let name = name.clone();
            Box::pin(async move {
                let found = Plans(tx).sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let from = from.unwrap_or(u64::MAX);
                let mut trail = AuditTrail(tx);
                let entries = trail.trail_back(plan, from, name.as_deref(), limit);
                Ok::<_, Error>(entries.await?)
            })
        });
        Ok(entries.await?.into_iter().map(audit_entry).collect())
    }
}

fn audit_entry(entry: Entry) -> AuditEntry {
    let encoded = codec::encode(&entry.event);
    AuditEntry {
        name: encoded.name,
        details: codec::shown(&encoded.details),
        entry,
    }
}

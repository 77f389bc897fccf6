//! Queries on a plan's audit trail, without claim tokens.

use std::ops::Range;

use onward_core::role::Permission;
use onward_core::{Json, PlanId, Timestamp};
pub use onward_store::ALL_TIMES;
use onward_store::{AuditTrail, Contexts, Entry, Plans, Recent, TrailCursor, codec};

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
    pub details: Json,
}

/// Bytes of details in a page, unless its first entry alone is larger.
const MAX_PAGE_BYTES: u64 = 1024 * 1024;

impl Engine {
    /// Entries after a sequence number, oldest first. A page with long details is shorter than
    /// `limit`; only a page after the last entry is empty.
    pub async fn audit_trail(
        &self,
        caller: &Caller,
        plan: PlanId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, Error> {
        self.audit_page(caller, plan, ALL_TIMES, after, limit, MAX_PAGE_BYTES)
            .await
    }

    /// Like [`audit_trail`](Self::audit_trail), only entries of these times, with another size of a
    /// page.
    pub async fn audit_page(
        &self,
        caller: &Caller,
        plan: PlanId,
        times: Range<Timestamp>,
        after: u64,
        limit: u32,
        max_bytes: u64,
    ) -> Result<Vec<AuditEntry>, Error> {
        caller.allow(Permission::Read)?;
        let entries = self.store.read(&caller.tenant, move |tx| {
            let times = times.clone();
            Box::pin(async move {
                let found = Plans(tx).sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<_, Error>(
                    AuditTrail(tx)
                        .trail_page_of(plan, times, after, limit, max_bytes)
                        .await?,
                )
            })
        });
        Ok(entries.await?.into_iter().map(audit_entry).collect())
    }

    /// Entries of all plans of these times, oldest first, after an entry of one plan. A page with long
    /// details is shorter than `limit`; only a page after the last entry is empty.
    pub async fn audit_between(
        &self,
        caller: &Caller,
        times: Range<Timestamp>,
        after: Option<(PlanId, u64)>,
        limit: u32,
        max_bytes: Option<u64>,
    ) -> Result<Vec<(PlanId, AuditEntry)>, Error> {
        caller.allow(Permission::Read)?;
        let max_bytes = max_bytes.unwrap_or(MAX_PAGE_BYTES);
        let entries = self.store.read(&caller.tenant, move |tx| {
            let times = times.clone();
            Box::pin(async move {
                let mut trail = AuditTrail(tx);
                let mut cursor = None;
                if let Some((plan, seq)) = after {
                    let last = trail.trail(plan, seq.saturating_sub(1), 1).await?.pop();
                    let last = last.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                    let at = last.at;
                    cursor = Some(TrailCursor { at, plan, seq });
                }
                let page = trail.trail_between(times, cursor, limit, max_bytes);
                Ok::<_, Error>(page.await?)
            })
        });
        let entries = entries.await?.into_iter();
        Ok(entries
            .map(|(plan, entry)| (plan, audit_entry(entry)))
            .collect())
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

    /// Entries up to and including a sequence number, newest first, optionally of one event type,
    /// and the sequence number of the next older one. A page with long details is shorter than
    /// `limit`.
    pub async fn audit_trail_backwards(
        &self,
        caller: &Caller,
        plan: PlanId,
        from: Option<u64>,
        name: Option<String>,
        limit: u32,
        max_bytes: u64,
    ) -> Result<(Vec<AuditEntry>, Option<u64>), Error> {
        caller.allow(Permission::Read)?;
        let page = self.store.read(&caller.tenant, move |tx| {
            let name = name.clone();
            Box::pin(async move {
                let found = Plans(tx).sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let (from, name) = (from.unwrap_or(u64::MAX), name.as_deref());
                let mut trail = AuditTrail(tx);
                let entries = trail.trail_back(plan, from, name, limit, max_bytes).await?;
                let older = entries.last().and_then(|last| last.seq.checked_sub(1));
                let next = match older {
                    Some(older) => trail.trail_back(plan, older, name, 1, 1).await?,
                    None => Vec::new(),
                };
                Ok::<_, Error>((entries, next.first().map(|entry| entry.seq)))
            })
        });
        let (entries, next) = page.await?;
        Ok((entries.into_iter().map(audit_entry).collect(), next))
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

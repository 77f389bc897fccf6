//! The audit trail of a plan, as it is shown: without the tokens that its claims were given.

use onward_core::PlanId;
use onward_core::role::Permission;
use onward_store::{Entry, Recent, codec};
use serde_json::Value;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// An entry as a reader sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The entry.
    pub entry: Entry,
    /// Its name.
    pub name: &'static str,
    /// What exactly happened, as a JSON object without claim tokens.
    pub details: Value,
}

impl Engine {
    /// Entries behind a number, oldest first.
    pub async fn trail(
        &self,
        caller: &Caller,
        plan: PlanId,
        behind: u64,
        limit: u32,
    ) -> Result<Vec<Shown>, Error> {
        caller.allow(Permission::Read)?;
        let entries = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = tx.sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<_, Error>(tx.trail(plan, behind, limit).await?)
            })
        });
        Ok(entries.await?.into_iter().map(shown).collect())
    }

    /// What happened last, newest first, without details that are long.
    pub async fn recent(
        &self,
        caller: &Caller,
        plan: PlanId,
        limit: u32,
    ) -> Result<Vec<Recent>, Error> {
        caller.allow(Permission::Read)?;
        let recent = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = tx.sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                Ok::<_, Error>(tx.recent(plan, limit).await?)
            })
        });
        recent.await
    }

    /// Entries from a number down, newest first; of one name alone, where one is given.
    pub async fn trail_back(
        &self,
        caller: &Caller,
        plan: PlanId,
        from: Option<u64>,
        name: Option<String>,
        limit: u32,
    ) -> Result<Vec<Shown>, Error> {
        caller.allow(Permission::Read)?;
        let entries = self.store.read(&caller.tenant, move |tx| {
            let name = name.clone();
            Box::pin(async move {
                let found = tx.sheet(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let from = from.unwrap_or(u64::MAX);
                let entries = tx.trail_back(plan, from, name.as_deref(), limit);
                Ok::<_, Error>(entries.await?)
            })
        });
        Ok(entries.await?.into_iter().map(shown).collect())
    }
}

fn shown(entry: Entry) -> Shown {
    let encoded = codec::encode(&entry.event);
    Shown {
        name: encoded.name,
        details: codec::shown(&encoded.details),
        entry,
    }
}

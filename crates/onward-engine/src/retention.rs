//! Forgetting what nobody wants to keep. Off unless somebody asks for it; it says what it did.
//!
//! Several servers may do it at once: what another one has forgotten meanwhile is gone, and that is all.

use std::sync::Arc;
use std::time::Duration;

use onward_core::{PlanId, Timestamp};
use tokio::sync::watch;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// How many plans are looked up at once.
const PIECE: u32 = 100;

/// How often a server forgets.
const OFTEN: Duration = Duration::from_secs(3600);

/// How long things are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Plans that are over; for ever where nothing is said.
    pub finished_plans: Option<Duration>,
    /// The log of tool calls, and what was extracted out of texts that came with one; for ever where
    /// nothing is said.
    pub tool_calls: Option<Duration>,
    /// Sessions of agents, from when they were last heard of; for ever where nothing is said.
    pub sessions: Option<Duration>,
}

/// What was forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Plans, each with its trail.
    pub plans: Vec<PlanId>,
    /// Calls in the log.
    pub tool_calls: u64,
    /// Extractions out of texts that came with their call.
    pub extractions: u64,
    /// Sessions of agents, each with its turns.
    pub sessions: u64,
}

impl Engine {
    /// Forgets at once and then every hour, of every tenant, until the end is told. What came of it
    /// is told for each tenant.
    pub async fn keep_forgetting(
        &self,
        retention: Retention,
        mut stop: watch::Receiver<bool>,
        mut tell: impl FnMut(&str, Result<Forgotten, Error>),
    ) {
        if retention == Retention::default() {
            return;
        }
        loop {
            match self.tenants().await {
                Ok(tenants) => {
                    for tenant in tenants {
                        tell(&tenant.name, self.forget(&tenant.name, retention).await);
                    }
                }
                Err(why) => tell("", Err(why)),
            }
            tokio::select! {
                () = tokio::time::sleep(OFTEN) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Forgets what is older than it may be, of one tenant.
    pub async fn forget(
        &self,
        tenant: &Arc<str>,
        retention: Retention,
    ) -> Result<Forgotten, Error> {
        let caller = Caller::onward(Arc::clone(tenant), "retention");
        let mut forgotten = Forgotten::default();
        if let Some(before) = retention.finished_plans.map(|kept| self.before(kept)) {
            loop {
                let old = self.store.read(tenant, move |tx| {
                    Box::pin(async move { tx.plans_ended_before(before, PIECE).await })
                });
                let old = old.await?;
                if old.is_empty() {
                    break;
                }
                for plan in old {
                    match self.delete(&caller, plan, "plan_forgotten").await {
                        Ok(_) => forgotten.plans.push(plan),
                        Err(Error::PlanNotFound(_)) => {}
                        Err(why) => return Err(why),
                    }
                }
            }
        }
        if let Some(before) = retention.tool_calls.map(|kept| self.before(kept)) {
            let calls = self.store.write(tenant, move |tx| {
                Box::pin(async move {
                    let calls = tx.forget_calls(before).await?;
                    let extractions = tx.forget_extractions(before).await?;
                    Ok::<_, onward_store::Error>((calls, extractions))
                })
            });
            (forgotten.tool_calls, forgotten.extractions) = calls.await?;
        }
        if let Some(before) = retention.sessions.map(|kept| self.before(kept)) {
            let sessions = self.store.write(tenant, move |tx| {
                Box::pin(async move { tx.forget_sessions(before).await })
            });
            forgotten.sessions = sessions.await?;
        }
        Ok(forgotten)
    }

    fn before(&self, kept: Duration) -> Timestamp {
        let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.now().as_millis().saturating_sub(kept))
    }
}

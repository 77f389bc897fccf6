//! Deletes old data. Off by default; every run reports what it deleted.
//!
//! Several servers may run it concurrently; data that another server has already deleted is
//! skipped.

use std::sync::Arc;
use std::time::Duration;

use onward_core::{PlanId, Timestamp};
use onward_store::{Cutoffs, Extractions, PlanLists, RequestLog, Sessions, Tasks, Totals};
use tokio::sync::watch;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// Number of plans per query.
const BATCH_SIZE: u32 = 100;

/// Number of log entries per transaction: on SQLite, other writers wait for it.
const CALL_BATCH_SIZE: u32 = 5_000;

/// Interval between runs.
const INTERVAL: Duration = Duration::from_secs(3600);

/// Retention periods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Finished plans; `None` keeps them forever.
    pub finished_plans: Option<Duration>,
    /// The request log, extractions from texts that were part of a request, and tasks without a
    /// plan; `None` keeps them forever.
    pub tool_calls: Option<Duration>,
    /// Agent sessions, counted from their last activity; `None` keeps them forever.
    pub sessions: Option<Duration>,
}

/// Result of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionReport {
    /// Plans, with their audit trails.
    pub plans: Vec<PlanId>,
    /// Entries of the request log.
    pub tool_calls: u64,
    /// Extractions from texts that were part of a request.
    pub extractions: u64,
    /// Agent sessions, with their turns.
    pub sessions: u64,
}

impl Engine {
    /// Runs immediately and then every hour, for all tenants, until stopped. Calls `on_result` with
    /// the result for each tenant.
    pub async fn run_retention(
        &self,
        retention: Retention,
        mut stop: watch::Receiver<bool>,
        mut on_result: impl FnMut(&str, Result<RetentionReport, Error>),
    ) {
        if retention == Retention::default() {
            return;
        }
        loop {
            match self.tenants_with_expired_data(retention).await {
                Ok(tenants) => {
                    for tenant in tenants {
                        on_result(&tenant, self.apply_retention(&tenant, retention).await);
                    }
                }
                Err(error) => on_result("", Err(error)),
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// The tenants with data that has exceeded its retention period, in one question to the database.
    pub async fn tenants_with_expired_data(
        &self,
        retention: Retention,
    ) -> Result<Vec<Arc<str>>, Error> {
        let cutoff =
            |period: Option<Duration>| period.map_or(Timestamp::MIN, |period| self.cutoff(period));
        let before = Cutoffs {
            plans: cutoff(retention.finished_plans),
            tool_calls: cutoff(retention.tool_calls),
            sessions: cutoff(retention.sessions),
        };
        let no_tenant = Arc::from("");
        let tenants = self.store.read(&no_tenant, move |tx| {
            Box::pin(async move { Totals(tx).tenants_expired(before).await })
        });
        Ok(tenants.await?)
    }

    /// Deletes a tenant's data that has exceeded its retention period.
    pub async fn apply_retention(
        &self,
        tenant: &Arc<str>,
        retention: Retention,
    ) -> Result<RetentionReport, Error> {
        let caller = Caller::internal(Arc::clone(tenant), "retention");
        let mut forgotten = RetentionReport::default();
        if let Some(cutoff) = retention.finished_plans.map(|period| self.cutoff(period)) {
            loop {
                let old = self.store.read(tenant, move |tx| {
                    Box::pin(
                        async move { PlanLists(tx).plans_ended_before(cutoff, BATCH_SIZE).await },
                    )
                });
                let old = old.await?;
                if old.is_empty() {
                    break;
                }
                for plan in old {
                    match self.delete(&caller, plan, "plan_forgotten").await {
                        Ok(_) => forgotten.plans.push(plan),
                        Err(Error::PlanNotFound(_)) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        if let Some(cutoff) = retention.tool_calls.map(|period| self.cutoff(period)) {
            loop {
                let calls = self.store.write(tenant, move |tx| {
                    Box::pin(
                        async move { RequestLog(tx).forget_calls(cutoff, CALL_BATCH_SIZE).await },
                    )
                });
                let calls = calls.await?;
                forgotten.tool_calls += calls;
                if calls < u64::from(CALL_BATCH_SIZE) {
                    break;
                }
            }
            let extractions = self.store.write(tenant, move |tx| {
                Box::pin(async move { Extractions(tx).forget_extractions(cutoff).await })
            });
            forgotten.extractions = extractions.await?;
            let tasks = self.store.write(tenant, move |tx| {
                Box::pin(async move {
                    Tasks(tx).forget_tasks(cutoff);
                    Ok::<(), Error>(())
                })
            });
            tasks.await?;
        }
        if let Some(cutoff) = retention.sessions.map(|period| self.cutoff(period)) {
            let sessions = self.store.write(tenant, move |tx| {
                Box::pin(async move { Sessions(tx).forget_sessions(cutoff).await })
            });
            forgotten.sessions = sessions.await?;
        }
        Ok(forgotten)
    }

    fn cutoff(&self, period: Duration) -> Timestamp {
        self.now().saturating_sub(period)
    }
}

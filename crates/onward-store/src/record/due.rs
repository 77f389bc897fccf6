//! Due times of all tenants: when the sweep must check each plan.

use std::sync::Arc;

use onward_core::{PlanId, Timestamp};

use crate::error::Error;
use crate::query::Query;
use crate::row::plan::VersionTag;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{first, params};

/// A plan that the sweep must check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePlan {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The plan id.
    pub plan: PlanId,
    /// Due time.
    pub at: Timestamp,
}

/// Due times of all tenants.
pub struct DueChecks<'t>(pub &'t mut Tx);

impl DueChecks<'_> {
    /// Next due time of the sweep, over all tenants.
    pub async fn first_due(&mut self) -> Result<Option<Timestamp>, Error> {
        let question = Statement::without_tenant(Query::DueFirst, params![]);
        let rows = self.0.query(vec![question]).await?.pop();
        Ok(first(rows, |row| row.cells("due").maybe_at("at"))?.flatten())
    }

    /// Makes plans and tool calls due whose next check would be too late, because a wrong clock has
    /// planned it. A time after `latest` was written by such a clock.
    pub async fn reschedule(&mut self, now: Timestamp, latest: Timestamp) -> Result<(), Error> {
        let params = params![now, latest, VersionTag::random().0];
        let statements = vec![
            Statement::without_tenant(Query::DueReschedule, params),
            Statement::without_tenant(Query::DueCallsReschedule, params![now]),
        ];
        self.0.query(statements).await?;
        Ok(())
    }

    /// Plans of all tenants that are due by this instant, longest due first.
    pub async fn due_until(&mut self, at: Timestamp, limit: u32) -> Result<Vec<DuePlan>, Error> {
        let question = Statement::without_tenant(Query::DueUntil, params![at, limit]);
        let rows = self
            .0
            .query(vec![question])
            .await?
            .pop()
            .unwrap_or_default();
        rows.into_iter()
            .map(|row| {
                let mut cells = row.cells("due");
                Ok(DuePlan {
                    tenant: cells.text("tenant_id")?,
                    plan: PlanId::new(cells.id("plan_id")?),
                    at: cells.at("at")?,
                })
            })
            .collect()
    }
}

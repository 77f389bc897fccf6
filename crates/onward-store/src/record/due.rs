//! Due times of all tenants: when the sweep must check each plan.

use std::sync::Arc;

use onward_core::{PlanId, Timestamp};

use crate::error::Error;
use crate::query::Query;
use crate::row::plan::VersionTag;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Value, first, params};

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

    /// Plans of all tenants whose next check would be too late, because a wrong clock has planned it.
    /// A time after `latest` was written by such a clock.
    pub async fn late(&mut self, now: Timestamp, latest: Timestamp) -> Result<Vec<DuePlan>, Error> {
        self.plans(Query::DueLate, params![now, latest]).await
    }

    /// Advances the next check of a plan. Servers cache the due time with the version of the plan,
    /// so the version changes too.
    pub fn advance(&mut self, plan: PlanId, at: Timestamp) {
        let tag = params![plan.as_uuid(), VersionTag::random().0];
        self.0.queue(Statement::new(Query::PlanTag, tag));
        let at = params![plan.as_uuid(), at];
        self.0.queue(Statement::new(Query::DueAdvance, at));
    }

    /// Plans of all tenants that became due after `after`, and by `until`: first one plan of each
    /// tenant, then a second one of each, and so on, the longest due first.
    pub async fn due_between(
        &mut self,
        after: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<DuePlan>, Error> {
        let params = params![after, until, limit];
        self.plans(Query::DueBetween, params).await
    }

    async fn plans(&mut self, query: Query, params: Vec<Value>) -> Result<Vec<DuePlan>, Error> {
        let question = Statement::without_tenant(query, params);
        let rows = self.0.query(vec![question]).await?.pop();
        let rows = rows.unwrap_or_default().into_iter();
        rows.map(|row| {
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

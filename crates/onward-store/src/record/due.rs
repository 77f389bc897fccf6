//! Due times of all tenants: when the sweep must check each plan.

use std::sync::Arc;

use onward_core::{PlanId, Timestamp};

use crate::error::Error;
use crate::query::Query;
use crate::row::plan::VersionTag;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Value, first, params};

/// Factors of the due times by which plans are sorted.
const OLDEST_FIRST: i64 = 1;
const NEWEST_FIRST: i64 = -1;

/// A plan that the sweep must check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePlan {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The plan id.
    pub plan: PlanId,
    /// Due time.
    pub at: Timestamp,
    /// When the node of the tenant responded again, if it has not for a time: until then, no agent of
    /// the tenant could report progress.
    pub reachable_since: Option<Timestamp>,
}

/// Due times of all tenants.
pub struct DueChecks<'t>(pub &'t mut Tx);

impl DueChecks<'_> {
    /// Next due time of the sweep, over all tenants.
    pub async fn first_due(&mut self) -> Result<Option<Timestamp>, Error> {
        let node = self.0.node();
        let question = Statement::without_tenant(Query::DueFirst, params![node]);
        let rows = self.0.query(vec![question]).await?.pop();
        Ok(first(rows, |row| row.cells("due").maybe_at("at"))?.flatten())
    }

    /// Plans of all tenants whose next check would be too late, because a wrong clock has planned it.
    /// A time after `latest` was written by such a clock.
    pub async fn late(&mut self, now: Timestamp, latest: Timestamp) -> Result<Vec<DuePlan>, Error> {
        let params = params![now, latest, self.0.node()];
        self.plans(Query::DueLate, params).await
    }

    /// Advances the next check of a plan. Servers cache the due time with the version of the plan,
    /// so the version changes too.
    pub fn advance(&mut self, plan: PlanId, at: Timestamp) {
        let tag = params![plan.as_uuid(), VersionTag::random().0];
        self.0.queue(Statement::new(Query::PlanTag, tag));
        let at = params![plan.as_uuid(), at];
        self.0.queue(Statement::new(Query::DueAdvance, at));
    }

    /// Plans of all tenants that are due by this instant: first one plan of each tenant, then a second
    /// one of each, and so on, the longest due first.
    pub async fn due_until(&mut self, until: Timestamp, limit: u32) -> Result<Vec<DuePlan>, Error> {
        let params = params![Timestamp::MIN, until, OLDEST_FIRST, limit, self.0.node()];
        self.plans(Query::DueBetween, params).await
    }

    /// Plans of all tenants that became due after `after`, and by `until`, in turn like
    /// [`Self::due_until`], but the last ones first: many that became due together do not hide those
    /// after them.
    pub async fn newly_due(
        &mut self,
        after: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<DuePlan>, Error> {
        let params = params![after, until, NEWEST_FIRST, limit, self.0.node()];
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
                reachable_since: None,
            })
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use onward_core::next_check::Due;

    use super::*;
    use crate::plan::write::Transitions;
    use crate::{Address, Options, Store};

    /// Three plans of one tenant and one of another, in the order of their due times.
    const PLANS: [(&str, u128); 4] = [("a", 1), ("a", 2), ("a", 3), ("b", 4)];

    async fn plans_in_turn(address: Address) {
        let store = Store::open(&address, Options::default()).await.unwrap();
        for (tenant, plan) in PLANS {
            let due = Due::At(Timestamp::from_millis(plan as i64));
            let plan = PlanId::from_u128(plan);
            let tenant = tenant.into();
            let written = store.write(&tenant, move |tx| {
                Box::pin(async move {
                    Transitions(tx).due(plan, due);
                    Ok::<(), Error>(())
                })
            });
            written.await.unwrap();
        }
        let at = Timestamp::from_millis;
        let no_tenant = "".into();
        let read = store.read(&no_tenant, move |tx| {
            Box::pin(async move {
                let all = DueChecks(tx).due_until(at(4), 9).await?;
                let new = DueChecks(tx).newly_due(at(1), at(4), 2).await?;
                let ids = |plans: Vec<DuePlan>| plans.into_iter().map(|due| due.plan).collect();
                Ok::<[Vec<PlanId>; 2], Error>([ids(all), ids(new)])
            })
        });
        let plans = |ids: &[u128]| ids.iter().map(|id| PlanId::from_u128(*id)).collect();
        let expected: [Vec<PlanId>; 2] = [plans(&[1, 4, 2, 3]), plans(&[4, 3])];
        assert_eq!(read.await.unwrap(), expected);
        store.close().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn tenants_take_turns_on_sqlite() {
        let folder = onward_testbed::TestDir::new("due");
        plans_in_turn(Address::File(folder.join("due.db"))).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn tenants_take_turns_on_postgres() {
        let url = onward_testbed::Cluster::shared().database();
        plans_in_turn(Address::Server(url)).await;
    }
}

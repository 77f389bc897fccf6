//! The layer of the plan cache above the facts: reads from the cached plan, which it loads if needed,
//! and otherwise from rows.
//!
//! Without a cache ([`crate::Options::plan_cache`]) everything is read from rows. A transaction that
//! locks its plan does not look it up in the cache. `plan_cache` explains why a stale plan is
//! harmless.

use onward_core::apply::{HeldStep, Surroundings};
use onward_core::decide::{NextFacts, StepFacts, With};
use onward_core::id::SessionId;
use onward_core::{Plan, PlanId, Step, StepId, Timestamp};

use super::facts::Facts;
use crate::error::Error;
use crate::plan_cache::{Limit, Lookup, PlanKey};
use crate::query::Query;
use crate::row::{event, plan};
use crate::tx::Tx;
use crate::value::{Row, params};

impl Facts<'_> {
    /// A step and the head of its plan, with the requested data. The plan is locked until the commit if
    /// the transaction locks its plan.
    pub async fn step(&mut self, id: StepId, with: With) -> Result<Option<StepFacts>, Error> {
        if let Some(plan) = self.whole_plan(PlanKey::Step(id)).await? {
            return Ok(StepFacts::from_plan(plan, id, with));
        }
        self.stored_step(id, with).await
    }

    /// The steps of a plan that can be assigned to a session that offers these labels, including the
    /// steps past their stall threshold at `stalled_at`, if given. The plan is locked until the commit
    /// if the transaction locks its plan.
    pub async fn next_of(
        &mut self,
        id: PlanId,
        session: Option<&SessionId>,
        stalled_at: Option<Timestamp>,
        labels: Option<&[String]>,
    ) -> Result<Option<NextFacts>, Error> {
        if stalled_at.is_none()
            && let Some(plan) = self.whole_plan(PlanKey::Plan(id)).await?
        {
            return Ok(Some(NextFacts::from_plan(plan, session, None, labels)));
        }
        self.stored_next_of(id, session, stalled_at, labels).await
    }

    /// The surroundings of a step that this transaction assigned.
    pub async fn surroundings(&mut self, plan: PlanId, step: &Step) -> Result<Surroundings, Error> {
        if let Some(plan) = self.loaded_plan(plan) {
            return Ok(plan.surroundings(step));
        }
        self.stored_surroundings(plan, step).await
    }

    /// The steps in progress that a session holds, lowest order first.
    pub async fn held(
        &mut self,
        plan: PlanId,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<HeldStep>, Error> {
        if let Some(plan) = self.loaded_plan(plan) {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            return Ok(plan.held_by(session).take(limit).collect());
        }
        self.stored_held(plan, session, limit).await
    }

    /// The plan of this transition, with its commits applied, if it is loaded.
    fn loaded_plan(&self, plan: PlanId) -> Option<&Plan> {
        self.0.cache.as_ref()?.plan(plan)
    }

    /// The whole plan, unless it must be locked or its audit trail is too long. It comes from the
    /// cache, or is replayed from its audit trail in one round trip, because the next transition
    /// will need it.
    async fn whole_plan(&mut self, key: PlanKey) -> Result<Option<&Plan>, Error> {
        if self.0.must_lock() {
            return Ok(None);
        }
        let Some(cache) = &mut self.0.cache else {
            return Ok(None);
        };
        if let Lookup::Replay(key, limit) = cache.look_up(key) {
            self.replay(key, limit).await?;
        }
        let Tx {
            cache, versions, ..
        } = &mut *self.0;
        let Some((plan, tag)) = cache.as_ref().and_then(|cache| cache.version(key)) else {
            return Ok(None);
        };
        let bucket = plan::TimeBucket::new(plan.updated_at());
        let known = plan::StoredVersion::new(plan.head(), bucket, tag, true);
        versions.record_read(plan.head().id, known);
        Ok(Some(plan))
    }

    /// Replays a plan from its audit trail, if that is within the limit.
    async fn replay(&mut self, key: PlanKey, limit: Limit) -> Result<(), Error> {
        let (query, id) = match key {
            PlanKey::Plan(plan) => (Query::TrailOfPlan, *plan.as_uuid()),
            PlanKey::Step(step) => (Query::TrailOfStep, *step.as_uuid()),
        };
        let params = params![id, limit.events, limit.bytes];
        let rows = self.0.rows(query, params).await?;
        let bytes = rows.iter().map(Row::bytes).sum();
        let trail: Result<Vec<_>, Error> = rows.into_iter().map(event::entry_of_plan).collect();
        let (trail, of_plan): (Vec<_>, Vec<_>) = trail.unwrap_or_default().into_iter().unzip();
        if let (Some(cache), Some((due, tag))) = (&mut self.0.cache, of_plan.first()) {
            cache.replay(&trail, *due, *tag, bytes);
        }
        Ok(())
    }
}

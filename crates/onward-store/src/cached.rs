//! The decorator of the plan cache: the same reads and writes, served from the cached plan if there
//! is one, otherwise by the type that it wraps.
//!
//! Reads that a cached plan cannot answer are not decorated. Transitions and due times always are:
//! each must be applied to the plan in the cache. Without a cache ([`crate::Options::plan_cache`]) all calls are
//! passed on. A transaction that locks its plan does not look it up in the cache. `plan_cache`
//! explains why a stale plan is harmless.

use onward_core::apply::{HeldStep, Surroundings};
use onward_core::decide::{NextFacts, StepFacts, With};
use onward_core::event::Created;
use onward_core::id::SessionId;
use onward_core::next_check::Due;
use onward_core::{Plan, PlanId, Step, StepId, Timestamp};

use crate::commit::Commit;
use crate::error::Error;
use crate::plan::facts::Facts;
use crate::plan::write::Transitions;
use crate::plan_cache::{Limit, Lookup, PlanKey};
use crate::query::Query;
use crate::record::formatting_note::OutputNotes;
use crate::record::output::Outputs;
use crate::row::event::{self, Entry};
use crate::row::plan::{RequestOrigin, StoredVersion, TimeBucket};
use crate::tx::Tx;
use crate::value::{Row, params};

/// Adds the plan cache to reads and writes of plans.
pub struct Cached<T>(pub T);

impl Cached<Facts<'_>> {
    /// A step and the head of its plan, with the requested data. If the transaction is in
    /// locking mode, the plan is locked until the commit.
    pub async fn step(&mut self, id: StepId, with: With) -> Result<Option<StepFacts>, Error> {
        if let Some(plan) = whole_plan(self.0.0, PlanKey::Step(id)).await? {
            return Ok(StepFacts::from_plan(plan, id, with));
        }
        self.0.step(id, with).await
    }

    /// The steps of a plan that can be assigned to a session that offers these labels, including the
    /// steps past their stall threshold at `stalled_at`, if given. If the transaction is in
    /// locking mode, the plan is locked until the commit.
    pub async fn next_of(
        &mut self,
        id: PlanId,
        session: Option<&SessionId>,
        stalled_at: Option<Timestamp>,
        labels: Option<&[String]>,
    ) -> Result<Option<NextFacts>, Error> {
        if stalled_at.is_none()
            && let Some(plan) = whole_plan(self.0.0, PlanKey::Plan(id)).await?
        {
            return Ok(Some(NextFacts::from_plan(plan, session, None, labels)));
        }
        self.0.next_of(id, session, stalled_at, labels).await
    }

    /// The surroundings of a step that this transaction assigned.
    pub async fn surroundings(&mut self, plan: PlanId, step: &Step) -> Result<Surroundings, Error> {
        match loaded_plan(self.0.0, plan) {
            Some(plan) => Ok(plan.surroundings(step)),
            None => self.0.surroundings(plan, step).await,
        }
    }

    /// The steps in progress that a session holds, lowest order first.
    pub async fn held(
        &mut self,
        plan: PlanId,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<HeldStep>, Error> {
        match loaded_plan(self.0.0, plan) {
            Some(plan) => {
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                Ok(plan.held_by(session).take(limit).collect())
            }
            None => self.0.held(plan, session, limit).await,
        }
    }
}

impl Cached<Outputs<'_>> {
    /// Formatting notes for the output of a plan, with at most `skills` skill executions.
    pub async fn output_notes(&mut self, id: PlanId, skills: u32) -> Result<OutputNotes, Error> {
        let cache = self.0.0.cache.as_ref();
        match cache.and_then(|cache| cache.plan_without_skills(id)) {
            Some(plan) => Ok(OutputNotes::from_plan(plan)),
            None => self.0.output_notes(id, skills).await,
        }
    }
}

impl Cached<Transitions<'_>> {
    /// Writes a change to an existing plan.
    pub fn commit(&mut self, commit: &Commit<'_>) {
        let cache = self.0.0.cache.as_mut();
        let due = cache.map_or(commit.due, |cache| cache.due_to_write(commit));
        let written = self.0.commit(&Commit { due, ..*commit });
        if let Some(cache) = &mut self.0.0.cache {
            cache.apply(commit, written);
        }
    }

    /// Writes a new plan.
    pub fn create(&mut self, created: &Created, entry: &Entry, origin: RequestOrigin) {
        let written = self.0.create(created, entry, origin);
        if let Some(cache) = &mut self.0.0.cache {
            cache.create(Plan::from_created(created, entry.at), written);
        }
    }

    /// Sets when the sweep must check a plan.
    pub fn due(&mut self, plan: PlanId, due: Due) {
        if let Some(cache) = &mut self.0.0.cache {
            cache.set_due(plan, due);
        }
        self.0.due(plan, due);
    }
}

/// The plan of this transition, with its commits applied, if it is loaded.
fn loaded_plan(tx: &Tx, plan: PlanId) -> Option<&Plan> {
    tx.cache.as_ref()?.plan(plan)
}

/// The whole plan, unless it must be locked or its audit trail is too long. It comes from the cache,
/// or is replayed from its audit trail in one round trip, because the next transition will need it.
async fn whole_plan(tx: &mut Tx, key: PlanKey) -> Result<Option<&Plan>, Error> {
    if tx.must_lock() {
        return Ok(None);
    }
    let Some(cache) = &mut tx.cache else {
        return Ok(None);
    };
    if cache.must_queue(key).is_some() {
        return Err(Error::LostRace);
    }
    if let Lookup::Replay(key, limit) = cache.look_up(key) {
        replay(tx, key, limit).await?;
    }
    let Tx {
        cache, versions, ..
    } = tx;
    let Some((plan, tag)) = cache.as_ref().and_then(|cache| cache.version(key)) else {
        return Ok(None);
    };
    let bucket = TimeBucket::new(plan.updated_at());
    let known = StoredVersion::new(plan.head(), bucket, tag, true);
    versions.record_read(plan.head().id, known);
    Ok(Some(plan))
}

/// Replays a plan from its audit trail, if that is within the limit.
async fn replay(tx: &mut Tx, key: PlanKey, limit: Limit) -> Result<(), Error> {
    let (query, id) = match key {
        PlanKey::Plan(plan) => (Query::TrailOfPlan, *plan.as_uuid()),
        PlanKey::Step(step) => (Query::TrailOfStep, *step.as_uuid()),
    };
    let params = params![id, limit.events, limit.bytes];
    let rows = tx.rows(query, params).await?;
    let bytes = rows.iter().map(Row::bytes).sum();
    let trail: Result<Vec<_>, Error> = rows.into_iter().map(event::entry_of_plan).collect();
    let (trail, of_plan): (Vec<_>, Vec<_>) = trail.unwrap_or_default().into_iter().unzip();
    if let (Some(cache), Some((due, tag))) = (&mut tx.cache, of_plan.first()) {
        cache.replay(&trail, *due, *tag, bytes);
    }
    Ok(())
}

//! Use of the cache by one transaction.

use std::sync::Arc;

use onward_core::next_check::Due;
use onward_core::{Plan, PlanId, StepId, Timestamp};

use super::{
    CacheEntry, CachedPlan, DueTime, LONG, Limit, MISSES_BEFORE_REPLAY, PlanCache, PlanKey, SHORT,
    starts_a_skill,
};
use crate::change::{Changed, Subject};
use crate::commit::{Commit, Written};
use crate::plan_queue::PlanQueues;
use crate::row::event::Entry;
use crate::row::plan::VersionTag;

/// Use of the cache by one transaction.
pub(crate) struct CacheSession {
    cache: PlanCache,
    tenant: Arc<str>,
    /// Whether the cache was consulted. Once per transaction: a miss stays a miss.
    consulted: bool,
    /// Whether the plan came from the cache, without a read from the database.
    hit: bool,
    /// The whole plan of this transition: from the cache, replayed from its events, or created
    /// here.
    plan: Option<Box<CachedPlan>>,
    /// On a miss: the number of earlier transitions of the plan that did not load its audit trail.
    misses: Option<u32>,
    /// The entry to cache at commit if the whole plan is not known.
    long_trail: Option<(PlanId, Vec<StepId>, u32)>,
    /// The queues that the transition has not entered.
    queues: Option<Arc<PlanQueues>>,
    /// The plan whose queue it must enter.
    must_queue: Option<PlanId>,
}

/// How a transaction gets the whole plan.
pub(crate) enum Lookup {
    /// No action: the plan is loaded, or it is not to be loaded.
    Done,
    /// Replay its audit trail, if that is within the limit, because further transitions are likely.
    Replay(PlanKey, Limit),
}

impl CacheSession {
    pub(crate) fn new(cache: PlanCache, tenant: Arc<str>) -> Self {
        Self {
            cache,
            tenant,
            consulted: false,
            hit: false,
            plan: None,
            misses: None,
            long_trail: None,
            queues: None,
            must_queue: None,
        }
    }

    /// Sets the queues that the transition must enter before it reads a plan that has one.
    pub(crate) fn behind(self, queues: Option<Arc<PlanQueues>>) -> Self {
        Self { queues, ..self }
    }

    /// The plan whose queue the transition must enter, before it takes the entry that another one is
    /// about to use.
    pub(crate) fn must_queue(&mut self, key: PlanKey) -> Option<PlanId> {
        let queues = self.queues.as_ref()?;
        let plan = self.cache.plan_of(key)?;
        if !self.consulted && queues.has_queue(plan) {
            self.must_queue = Some(plan);
        }
        self.must_queue
    }

    /// The plan whose queue the transition had to enter.
    pub(crate) fn queue_to_enter(&self) -> Option<PlanId> {
        self.must_queue
    }

    #[cfg(test)]
    pub(crate) fn after_hit() -> Self {
        Self {
            hit: true,
            ..Self::new(PlanCache::default(), "a".into())
        }
    }

    /// Whether the plan came from the cache, without a read from the database.
    pub(crate) fn was_hit(&self) -> bool {
        self.hit
    }

    /// Looks up a plan.
    pub(crate) fn look_up(&mut self, key: PlanKey) -> Lookup {
        if std::mem::replace(&mut self.consulted, true) {
            return Lookup::Done;
        }
        match self.cache.take(&self.tenant, key) {
            Some((_, CacheEntry::Plan(cached))) => {
                self.hit = true;
                self.plan = Some(cached);
                Lookup::Done
            }
            Some((plan, CacheEntry::LongTrail(misses))) => {
                self.misses = Some(misses.saturating_add(1));
                if misses == MISSES_BEFORE_REPLAY {
                    Lookup::Replay(PlanKey::Plan(plan), LONG)
                } else {
                    Lookup::Done
                }
            }
            None => {
                self.misses = Some(0);
                Lookup::Replay(key, SHORT)
            }
        }
    }

    /// Keeps a plan that was replayed from its audit trail of this many bytes. A trail that cannot
    /// be replayed is ignored: the caller reads the rows, and the error names the corrupt one.
    pub(crate) fn replay(
        &mut self,
        trail: &[Entry],
        due: Option<Timestamp>,
        tag: VersionTag,
        bytes: usize,
    ) {
        let events = trail.iter().map(|entry| (&entry.event, entry.at));
        let has_skills = trail.iter().any(|entry| starts_a_skill(&entry.event));
        self.plan = Plan::replay(events).ok().map(|plan| {
            Box::new(CachedPlan {
                plan,
                tag,
                bytes,
                due: due.map_or(DueTime::Never, DueTime::At),
                has_skills,
            })
        });
    }

    /// The whole plan and the tag of its version, if it is loaded and matches the key.
    pub(crate) fn version(&self, key: PlanKey) -> Option<(&Plan, VersionTag)> {
        let CachedPlan { plan, tag, .. } = self.plan.as_deref()?;
        let is_meant = match key {
            PlanKey::Plan(id) => plan.head().id == id,
            PlanKey::Step(id) => plan.step(id).is_some(),
        };
        is_meant.then_some((plan, *tag))
    }

    /// The whole plan, if it is loaded.
    pub(crate) fn plan(&self, id: PlanId) -> Option<&Plan> {
        self.version(PlanKey::Plan(id)).map(|(plan, _)| plan)
    }

    /// The whole plan, if it is loaded and has no skill executions, whose output notes are not part
    /// of the audit trail.
    pub(crate) fn plan_without_skills(&self, id: PlanId) -> Option<&Plan> {
        let cached = self.plan.as_ref().filter(|cached| !cached.has_skills)?;
        (cached.plan.head().id == id).then_some(&cached.plan)
    }

    /// Keeps a plan that this transaction creates.
    pub(crate) fn create(&mut self, plan: Plan, written: Written) {
        self.plan = Some(CachedPlan::created(plan, written));
        self.consulted = true;
    }

    /// The due time that a commit must write: unchanged if the stored one is early enough.
    pub(crate) fn due_to_write(&mut self, commit: &Commit<'_>) -> Due {
        let cached = self.plan_mut(commit.head.id);
        if cached.is_none_or(|cached| cached.due.update(commit.due, commit.quiet_until())) {
            commit.due
        } else {
            Due::Unchanged
        }
    }

    /// Keeps a due time that is written in any case.
    pub(crate) fn set_due(&mut self, plan: PlanId, due: Due) {
        if let Some(cached) = self.plan_mut(plan) {
            cached.due.update(due, None);
        }
    }

    fn plan_mut(&mut self, id: PlanId) -> Option<&mut CachedPlan> {
        let cached = self.plan.as_deref_mut();
        cached.filter(|cached| cached.plan.head().id == id)
    }

    /// Applies a commit to the plan.
    pub(crate) fn apply(&mut self, commit: &Commit<'_>, Written { tag, bytes }: Written) {
        self.plan = self.plan.take().and_then(|mut cached| {
            let applied = cached.plan.apply_all(commit.events, commit.at);
            cached.tag = tag;
            cached.bytes += bytes;
            cached.has_skills |= commit.events.iter().any(starts_a_skill);
            // If the result is not the committed head, the plan is not cached.
            (applied.is_ok() && cached.plan.head() == commit.head).then_some(cached)
        });
        self.long_trail = self.misses.map(|misses| {
            // The steps by which the next transition can look it up.
            let steps = commit.steps.iter().map(|after| after.step.id()).collect();
            (commit.head.id, steps, misses)
        });
    }

    /// Updates the cache after the commit: evicts the plans that were changed, and caches the plan
    /// of this transition.
    pub(crate) fn committed(self, changed: &[Changed]) {
        for changed in changed {
            if let Subject::Plan(plan) = &changed.what {
                self.cache.evict(&changed.tenant, *plan);
            }
        }
        match (self.plan, self.long_trail) {
            (Some(cached), _) => self.cache.put(&self.tenant, cached),
            (None, Some((plan, steps, misses))) => {
                let entry = CacheEntry::LongTrail(misses);
                self.cache.insert(&self.tenant, plan, &steps, entry);
            }
            (None, None) => {}
        }
    }
}

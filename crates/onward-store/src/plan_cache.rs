//! Plan cache: optimistic, validated by the version check at commit.
//!
//! The cache holds plans that this process changed recently, as of its last commit, so that the
//! next transition needs no query. [`Cached`] is the decorator that answers from it. If the cache
//! is disabled (`Options::plan_cache`), every transition reads the database. Only backends on which
//! a query costs a round trip use it.
//!
//! # Why a stale entry is harmless
//!
//! 1. An entry is the core's own [`Plan`], built from the plan's events only, so it equals some
//!    committed version of the plan, though perhaps not the newest one.
//! 2. A transition that writes includes a version check ([`Statement::checking_version`]): the
//!    update of the plan's row requires the version of the entry. If another caller has changed the
//!    plan, the update affects no row, nothing is written, and the store runs the work again. The
//!    version contains a random tag, so it is unique even if the database was restored or has lost
//!    commits in a failover.
//! 3. A transition that writes nothing has no version check, so its result is discarded
//!    (`Tx::needs_revalidation`), and the work runs again on data from the database.
//! 4. A transition takes the entry out of the cache, and puts it back, with its events applied,
//!    after its commit. If the work or the commit fails, the entry is lost, so the second attempt
//!    reads the database, and no attempt can loop on a stale entry.
//! 5. If the entry with the events applied is not exactly the committed head, it is dropped.
//! 6. A commit of this process that changes a plan without loading it into the cache evicts its
//!    entry.
//! 7. The plan's due time (its next check by the sweep) is cached with it. Every writer of that row
//!    also changes the plan's version, except for a sweep, which changes the row only when it is
//!    due. So a due time within the next minute is not trusted (`Commit::quiet_until`).
//!
//! After a commit that fails for any reason except a lost race, the whole cache is cleared: the next
//! connection may reach another server, or an older copy of the database.
//!
//! Tests: this module for the data structure; `onward-engine/tests/conformance/plan_cache.rs` for 2
//! to 4 with another process in between, and for 7; `onward-engine/tests/outages/older_database.rs`
//! for a database that was restored to an earlier state; the conformance suite runs with and
//! without the cache.
//!
//! [`Cached`]: crate::Cached
//! [`Statement::checking_version`]: crate::statement::Statement::checking_version

mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_core::next_check::Due;
use onward_core::{Event, Plan, PlanId, Step, StepId, Timestamp};

use crate::commit::Written;
use crate::row::plan::VersionTag;

pub(crate) use session::{CacheSession, Lookup};

/// Limits for replaying an audit trail on the first access to a plan.
const SHORT: Limit = Limit {
    events: 128,
    bytes: 256 << 10,
};

/// Limits for replaying an audit trail after `MISSES_BEFORE_REPLAY` accesses that did not read it.
/// By then, reading it once costs less than further accesses without it.
const LONG: Limit = Limit {
    events: 64 * 1024,
    bytes: MAX_BYTES,
};
const MISSES_BEFORE_REPLAY: u32 = 16;

/// Upper bound for an audit trail that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) events: u64,
    pub(crate) bytes: usize,
}

/// Capacity of one generation: bytes of audit trail, plans, and their steps.
const MAX_BYTES: usize = 4 << 20;
const MAX_PLANS: usize = 1024;
const MAX_STEPS: usize = 16 * 1024;

/// Optimistic plan cache, validated by the version check at commit. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct PlanCache(Arc<Mutex<Generations>>);

/// Two generations of cache entries. New entries go into the new generation. When it is full, it
/// becomes the old one, and the entries of the previous old generation are evicted.
#[derive(Default)]
struct Generations {
    new: Generation,
    old: Generation,
}

/// One generation of cache entries.
#[derive(Default)]
struct Generation {
    plans: HashMap<PlanId, (Arc<str>, CacheEntry)>,
    /// Plans by their steps in progress or under review. These remain when a plan is taken out,
    /// because it is usually put back soon.
    of_step: HashMap<StepId, PlanId>,
    steps: usize,
    bytes: usize,
}

/// Cache entry of one plan.
pub(crate) enum CacheEntry {
    /// Its audit trail is long; the number of accesses without reading it.
    LongTrail(u32),
    /// The whole plan.
    Plan(Box<CachedPlan>),
}

/// A cached plan, and its size.
pub(crate) struct CachedPlan {
    pub(crate) plan: Plan,
    /// Tag of its version.
    pub(crate) tag: VersionTag,
    /// Length of its audit trail.
    pub(crate) bytes: usize,
    pub(crate) due: DueTime,
    /// Whether it has skill executions, whose output notes are not part of the audit trail.
    pub(crate) has_skills: bool,
}

impl CachedPlan {
    /// Entry for a plan that was just created.
    pub(crate) fn created(plan: Plan, Written { tag, bytes }: Written) -> Box<Self> {
        Box::new(Self {
            plan,
            tag,
            bytes,
            due: DueTime::Never,
            has_skills: false,
        })
    }
}

fn starts_a_skill(event: &Event) -> bool {
    matches!(event, Event::SkillStarted { .. })
}

/// Cached due time: when the sweep checks a plan next, as stored in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DueTime {
    Unknown,
    Never,
    At(Timestamp),
}

impl DueTime {
    /// Updates the due time for a commit. Returns whether the commit must write it. It need not if
    /// the stored time is early enough and is after `until`: no sweep changes it concurrently. Any
    /// other writer of this row changes the plan's version too.
    fn update(&mut self, due: Due, until: Option<Timestamp>) -> bool {
        let stays = |at: Timestamp| until.is_some_and(|until| at > until);
        let (updated, write) = match (*self, due) {
            (stored, Due::Unchanged) => (stored, false),
            (DueTime::At(stored), Due::By(at)) if stays(stored) => {
                (DueTime::At(stored.min(at)), at < stored)
            }
            (DueTime::Never, Due::By(at)) | (_, Due::At(at)) => (DueTime::At(at), true),
            (DueTime::At(_) | DueTime::Unknown, Due::By(_)) => (DueTime::Unknown, true),
            (_, Due::Never) => (DueTime::Never, true),
        };
        *self = updated;
        write
    }
}

/// Lookup key of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanKey {
    Plan(PlanId),
    Step(StepId),
}

impl PlanCache {
    /// Takes the entry of a plan out of the cache.
    pub(crate) fn take(&self, tenant: &Arc<str>, by: PlanKey) -> Option<(PlanId, CacheEntry)> {
        let mut generations = self.lock();
        let Generations { new, old } = &mut *generations;
        [new, old]
            .into_iter()
            .find_map(|generation| generation.take(tenant, by))
    }

    /// The plan of a key, if it is known, whether or not its entry was taken out.
    fn plan_of(&self, key: PlanKey) -> Option<PlanId> {
        let step = match key {
            PlanKey::Plan(plan) => return Some(plan),
            PlanKey::Step(step) => step,
        };
        let generations = self.lock();
        let found = [&generations.new, &generations.old].map(|one| one.of_step.get(&step));
        found.into_iter().flatten().next().copied()
    }

    /// Caches a plan that was just committed.
    pub(crate) fn put(&self, tenant: &Arc<str>, cached: Box<CachedPlan>) {
        let plan = cached.plan.head().id;
        // A terminal plan has no further transitions.
        if cached.plan.head().status().is_terminal() {
            return;
        }
        let open = cached.plan.in_progress().map(Step::id);
        let under_review = cached.plan.under_review().map(Step::id);
        let steps: Vec<StepId> = open.chain(under_review).collect();
        let (weight, size) = (cached.bytes, cached.plan.steps().len());
        let entry = if weight > MAX_BYTES || size > MAX_STEPS {
            // Too large. A count above `MISSES_BEFORE_REPLAY` prevents another replay.
            CacheEntry::LongTrail(MISSES_BEFORE_REPLAY + 1)
        } else {
            CacheEntry::Plan(cached)
        };
        self.insert(tenant, plan, &steps, entry);
    }

    fn insert(&self, tenant: &Arc<str>, plan: PlanId, steps: &[StepId], entry: CacheEntry) {
        let mut generations = self.lock();
        let generation = generations.make_room();
        let (size, weight) = entry.size();
        generation.steps += size;
        generation.bytes += weight;
        for step in steps {
            generation.of_step.insert(*step, plan);
        }
        generation.plans.insert(plan, (Arc::clone(tenant), entry));
    }

    /// Evicts a plan.
    pub(crate) fn evict(&self, tenant: &Arc<str>, plan: PlanId) {
        drop(self.take(tenant, PlanKey::Plan(plan)));
    }

    /// Evicts all plans.
    pub(crate) fn clear(&self) {
        *self.lock() = Generations::default();
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        // A panic leaves at worst a missing or stale entry, and both are allowed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheEntry {
    /// Number of steps, and bytes of audit trail.
    fn size(&self) -> (usize, usize) {
        match self {
            CacheEntry::LongTrail(_) => (0, 0),
            CacheEntry::Plan(cached) => (cached.plan.steps().len(), cached.bytes),
        }
    }
}

impl Generations {
    /// The new generation, with room for one more entry.
    fn make_room(&mut self) -> &mut Generation {
        if self.new.is_full() {
            self.old = std::mem::take(&mut self.new);
        }
        &mut self.new
    }
}

impl Generation {
    fn is_full(&self) -> bool {
        self.plans.len() >= MAX_PLANS
            || self.of_step.len() >= MAX_STEPS
            || self.steps >= MAX_STEPS
            || self.bytes >= MAX_BYTES
    }

    fn take(&mut self, tenant: &Arc<str>, by: PlanKey) -> Option<(PlanId, CacheEntry)> {
        let plan = match by {
            PlanKey::Plan(plan) => plan,
            PlanKey::Step(step) => *self.of_step.get(&step)?,
        };
        // Ids are unique only within a tenant.
        let (owner, _) = self.plans.get(&plan)?;
        if owner != tenant {
            return None;
        }
        let (_, entry) = self.plans.remove(&plan)?;
        let (size, weight) = entry.size();
        self.steps = self.steps.saturating_sub(size);
        self.bytes = self.bytes.saturating_sub(weight);
        Some((plan, entry))
    }
}

#[cfg(test)]
mod tests {
    use onward_core::StepType;
    use onward_core::event::Created;
    use onward_core::id::ClaimToken;
    use onward_core::plan::{Brief, Origin};
    use onward_core::policy::OnStall;
    use onward_core::step::{Claim, NewStep};
    use uuid::Uuid;

    use super::*;

    fn id(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    /// A plan with one step in progress; both have this number as their id.
    fn plan(number: usize, bytes: usize) -> Box<CachedPlan> {
        let step = NewStep {
            id: StepId::new(id(number)),
            step_type: StepType::Search,
            title: None,
            instructions: "Look".to_owned(),
            depends_on: Vec::new(),
            stall_threshold: None,
            max_attempts: 3,
            gates: None,
            supersedes: None,
            labels: Vec::new(),
            priority: 5,
            on_dependency_failure: Default::default(),
        };
        let created = Created {
            plan: PlanId::new(id(number)),
            origin: Origin::default(),
            brief: Brief {
                name: "Tides".to_owned(),
                research_question: "Why twice a day?".to_owned(),
                design_rationale: None,
                output_formatting_notes: None,
                forked_from: None,
            },
            steps: vec![step],
            branches: Vec::new(),
            stall_threshold: None,
            on_stall: OnStall::default(),
            on_dependency_failure: Default::default(),
            session: None,
            routing: onward_core::routing::Routing::default(),
            budget: None,
        };
        let at = Timestamp::from_millis(0);
        let mut plan = Plan::from_created(&created, at);
        let started = Event::StepStarted {
            step: StepId::new(id(number)),
            claim: Claim {
                attempt: 1,
                token: ClaimToken::new("t"),
                session: None,
            },
        };
        plan.apply(&started, at).unwrap();
        let tag = VersionTag(0);
        CachedPlan::created(plan, Written { tag, bytes })
    }

    fn is_cached(cache: &PlanCache, tenant: &str, by: PlanKey) -> bool {
        cache.take(&tenant.into(), by).is_some()
    }

    #[test]
    fn finds_a_plan_by_id_or_step_and_takes_it_out() {
        let cache = PlanCache::default();
        let (by_plan, by_step) = (
            PlanKey::Plan(PlanId::new(id(1))),
            PlanKey::Step(StepId::new(id(1))),
        );
        cache.put(&"a".into(), plan(1, 10));
        assert!(is_cached(&cache, "a", by_step));
        assert!(!is_cached(&cache, "a", by_plan), "a lookup takes it out");
        cache.put(&"a".into(), plan(1, 10));
        assert!(is_cached(&cache, "a", by_plan));
        assert!(!is_cached(&cache, "a", by_step));
    }

    #[test]
    fn writes_the_due_time_only_if_the_stored_one_is_not_sufficient() {
        let at = Timestamp::from_millis;
        let mut due_time = DueTime::Never;
        // Commit, end of the quiet period, whether `due` is written, and the cached due time after
        // it.
        for (due, until, written, known) in [
            (Due::Unchanged, 10, false, DueTime::Never),
            (Due::By(at(100)), 10, true, DueTime::At(at(100))),
            (Due::By(at(110)), 20, false, DueTime::At(at(100))),
            (Due::By(at(100)), 30, false, DueTime::At(at(100))),
            (Due::By(at(90)), 40, true, DueTime::At(at(90))),
            (Due::Unchanged, 50, false, DueTime::At(at(90))),
            // A sweep may be running, and may change the due time.
            (Due::By(at(200)), 90, true, DueTime::Unknown),
            (Due::By(at(300)), 95, true, DueTime::Unknown),
            (Due::At(at(150)), 96, true, DueTime::At(at(150))),
            (Due::Never, 97, true, DueTime::Never),
        ] {
            assert_eq!(due_time.update(due, Some(at(until))), written, "{due:?}");
            assert_eq!(due_time, known, "{due:?}");
        }
        let mut due_time = DueTime::At(at(100));
        assert!(
            due_time.update(Due::By(at(200)), None),
            "without a quiet period"
        );
    }

    #[test]
    fn does_not_return_the_plan_of_another_tenant() {
        let cache = PlanCache::default();
        cache.put(&"a".into(), plan(1, 10));
        for by in [
            PlanKey::Plan(PlanId::new(id(1))),
            PlanKey::Step(StepId::new(id(1))),
        ] {
            assert!(!is_cached(&cache, "b", by));
        }
        assert!(is_cached(&cache, "a", PlanKey::Plan(PlanId::new(id(1)))));
    }

    #[test]
    fn evicts_plans_that_were_not_used_recently() {
        let cache = PlanCache::default();
        let tenant: Arc<str> = "a".into();
        for number in 0..10 * MAX_PLANS {
            cache.put(&tenant, plan(number, 10));
            // This plan is in constant use.
            let first = PlanKey::Plan(PlanId::new(id(0)));
            let (_, entry) = cache.take(&tenant, first).unwrap();
            let CacheEntry::Plan(first) = entry else {
                panic!("the whole plan was cached")
            };
            cache.put(&tenant, first);
        }
        let generations = cache.lock();
        let kept = generations.new.plans.len() + generations.old.plans.len();
        assert!(kept <= 2 * MAX_PLANS, "{kept}");
    }

    #[test]
    fn limits_the_total_size_of_cached_plans() {
        let cache = PlanCache::default();
        for number in 0..100 {
            cache.put(&"a".into(), plan(number, MAX_BYTES / 16));
            let generations = cache.lock();
            let bytes = generations.new.bytes + generations.old.bytes;
            assert!(bytes <= 2 * MAX_BYTES, "{bytes}");
        }
        let last = PlanKey::Plan(PlanId::new(id(99)));
        assert!(is_cached(&cache, "a", last));
        cache.put(&"a".into(), plan(100, MAX_BYTES + 1));
        let heavy = PlanKey::Plan(PlanId::new(id(100)));
        let heavy = cache.take(&"a".into(), heavy);
        assert!(matches!(heavy, Some((_, CacheEntry::LongTrail(_)))));
    }
}

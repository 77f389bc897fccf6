//! Optimistic plan cache, validated by the version check at commit. PostgreSQL only: on SQLite
//! reading the facts costs less than a cache.
//!
//! The cache holds plans that this process changed recently, as of its last commit, so that the
//! next transition needs no query. An entry may be stale. A write based on it succeeds only if the
//! plan still has that version. A decision without a write is repeated on data from the database. A
//! transition takes the entry out and puts it back after its commit. If the commit fails, the
//! entry is not put back, and the next transition reads the database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_core::plan::PlanState;
use onward_core::{Event, Plan, PlanId, Step, StepId, Timestamp};

use crate::commit::{Commit, Due};
use crate::error::Error;
use crate::query::Query;
use crate::row::event;
use crate::row::plan::{About, Known};
use crate::tx::{Changed, Subject, Tx};
use crate::value::{Row, params};

/// Limits for replaying an audit trail on the first access to a plan.
const SHORT: Limit = Limit {
    events: 128,
    bytes: 256 << 10,
};

/// Limits for replaying it after `OFTEN` accesses without it, when reading it pays off.
const LONG: Limit = Limit {
    events: 64 * 1024,
    bytes: SHELF_BYTES,
};
const OFTEN: u32 = 16;

/// Upper bound for an audit trail that is read.
#[derive(Clone, Copy)]
struct Limit {
    events: u64,
    bytes: usize,
}

/// Capacity of one generation, in bytes of audit trail.
const SHELF_BYTES: usize = 4 << 20;

/// Capacity of one generation, in plans and in their steps.
const SHELF_PLANS: usize = 1024;
const SHELF_STEPS: usize = 16 * 1024;

/// Optimistic plan cache, validated by the version check at commit. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Shelves>>);

/// Two generations of cache entries. New entries go into the new generation. When it is full, it
/// becomes the old one, and the entries of the previous old generation are evicted.
#[derive(Default)]
struct Shelves {
    new: Shelf,
    old: Shelf,
}

/// One generation of cache entries.
#[derive(Default)]
struct Shelf {
    plans: HashMap<PlanId, (Arc<str>, Remembered)>,
    /// Plans by their steps in progress or under review. These remain when a plan is taken out,
    /// because it is usually put back soon.
    of_step: HashMap<StepId, PlanId>,
    steps: usize,
    bytes: usize,
}

/// Cache entry of one plan.
pub(crate) enum Remembered {
    /// Its audit trail is long; the number of accesses without reading it.
    Long(u32),
    /// The whole plan.
    Whole(Box<Recalled>),
}

/// A cached plan, and its size.
pub(crate) struct Recalled {
    pub(crate) plan: Plan,
    /// Length of its audit trail.
    pub(crate) bytes: usize,
    pub(crate) look: Look,
    /// Whether it has skill executions, whose output notes are not part of the audit trail.
    pub(crate) skilled: bool,
}

impl Recalled {
    /// Entry for a plan that was just created.
    pub(crate) fn made(plan: Plan, bytes: usize) -> Box<Self> {
        let look = Look::Never;
        Box::new(Self {
            plan,
            bytes,
            look,
            skilled: false,
        })
    }
}

fn names_a_skill(event: &Event) -> bool {
    matches!(event, Event::SkillStarted { .. })
}

/// Cached due time: when the sweep checks a plan next, as stored in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Unknown,
    Never,
    At(Timestamp),
}

impl Look {
    /// Updates the due time for a commit. Returns whether the database must be updated: not if the
    /// stored time is early enough and is after `until`, so that no sweep changes it concurrently.
    /// Any other writer of this row changes the plan's version too.
    fn goes_along(&mut self, due: Due, until: Option<Timestamp>) -> bool {
        let stays = |at: Timestamp| until.is_some_and(|until| at > until);
        let (look, tell) = match (*self, due) {
            (look, Due::Unchanged) => (look, false),
            (Look::At(look), Due::By(at)) if stays(look) => (Look::At(look.min(at)), at < look),
            (Look::Never, Due::By(at)) | (_, Due::At(at)) => (Look::At(at), true),
            (Look::At(_) | Look::Unknown, Due::By(_)) => (Look::Unknown, true),
            (_, Due::Never) => (Look::Never, true),
        };
        *self = look;
        tell
    }
}

/// Lookup key of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Plan(PlanId),
    Step(StepId),
}

impl Memory {
    /// Takes the entry of a plan out of the cache.
    pub(crate) fn take(&self, tenant: &Arc<str>, by: By) -> Option<(PlanId, Remembered)> {
        let mut shelves = self.lock();
        let Shelves { new, old } = &mut *shelves;
        [new, old]
            .into_iter()
            .find_map(|shelf| shelf.take(tenant, by))
    }

    /// Caches a plan that was just committed.
    pub(crate) fn put(&self, tenant: &Arc<str>, recalled: Box<Recalled>) {
        let plan = recalled.plan.head().id;
        // A terminal plan has no further transitions.
        if recalled.plan.head().status().is_terminal() {
            return;
        }
        let open = recalled.plan.in_progress().map(Step::id);
        let steps: Vec<StepId> = open.chain(under_review(&recalled.plan)).collect();
        let (weight, size) = (recalled.bytes, recalled.plan.steps().len());
        let remembered = match weight > SHELF_BYTES || size > SHELF_STEPS {
            // Too large. A count above `OFTEN` prevents another replay.
            true => Remembered::Long(OFTEN + 1),
            false => Remembered::Whole(recalled),
        };
        self.insert(tenant, plan, &steps, remembered);
    }

    fn insert(&self, tenant: &Arc<str>, plan: PlanId, steps: &[StepId], remembered: Remembered) {
        let mut shelves = self.lock();
        let shelf = shelves.make_room();
        let (size, weight) = remembered.measures();
        shelf.steps += size;
        shelf.bytes += weight;
        for step in steps {
            shelf.of_step.insert(*step, plan);
        }
        shelf.plans.insert(plan, (Arc::clone(tenant), remembered));
    }

    /// Evicts a plan.
    pub(crate) fn forget(&self, tenant: &Arc<str>, plan: PlanId) {
        drop(self.take(tenant, By::Plan(plan)));
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        // A panic leaves at worst a missing or stale entry, and both are allowed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A plan with a long audit trail, to be cached at commit.
pub(crate) struct Long {
    plan: PlanId,
    /// The steps by which the next transition can look it up.
    steps: Vec<StepId>,
    looks: u32,
}

impl Remembered {
    /// Number of steps, and bytes of audit trail.
    fn measures(&self) -> (usize, usize) {
        match self {
            Remembered::Long(_) => (0, 0),
            Remembered::Whole(recalled) => (recalled.plan.steps().len(), recalled.bytes),
        }
    }
}

/// The step that awaits a review.
fn under_review(plan: &Plan) -> Option<StepId> {
    match &plan.head().state {
        PlanState::AwaitingReview { step, .. } => Some(*step),
        PlanState::Planning
        | PlanState::Executing
        | PlanState::Stalled { .. }
        | PlanState::Completed { .. }
        | PlanState::Failed { .. } => None,
    }
}

impl Shelves {
    /// The new generation, with room for one more entry.
    fn make_room(&mut self) -> &mut Shelf {
        if self.new.is_full() {
            self.old = std::mem::take(&mut self.new);
        }
        &mut self.new
    }
}

impl Shelf {
    fn is_full(&self) -> bool {
        self.plans.len() >= SHELF_PLANS
            || self.of_step.len() >= SHELF_STEPS
            || self.steps >= SHELF_STEPS
            || self.bytes >= SHELF_BYTES
    }

    fn take(&mut self, tenant: &Arc<str>, by: By) -> Option<(PlanId, Remembered)> {
        let plan = match by {
            By::Plan(plan) => plan,
            By::Step(step) => *self.of_step.get(&step)?,
        };
        // Ids are unique only within a tenant.
        let (owner, _) = self.plans.get(&plan)?;
        if owner != tenant {
            return None;
        }
        let (_, remembered) = self.plans.remove(&plan)?;
        let (size, weight) = remembered.measures();
        self.steps = self.steps.saturating_sub(size);
        self.bytes = self.bytes.saturating_sub(weight);
        Some((plan, remembered))
    }
}

impl Tx {
    /// The whole plan, unless it must be locked or its audit trail is too long. It comes from the
    /// cache, or is replayed from its audit trail in one round trip, because the next transition
    /// will need it.
    pub(crate) async fn recall(&mut self, by: By) -> Result<Option<&Plan>, Error> {
        let is_meant = |recalled: &Recalled| match by {
            By::Plan(plan) => recalled.plan.head().id == plan,
            By::Step(step) => recalled.plan.step(step).is_some(),
        };
        let memory = self.memory.as_ref().filter(|_| !self.must_hold());
        // Once per transaction: a miss stays a miss.
        if let Some(memory) = memory.filter(|_| !self.has_recalled) {
            let remembered = memory.take(self.tenant(), by);
            self.has_recalled = true;
            let recalled = match remembered {
                Some((_, Remembered::Whole(recalled))) => {
                    self.from_memory = true;
                    Some(recalled)
                }
                Some((plan, Remembered::Long(looks))) => {
                    self.looks = Some(looks.saturating_add(1));
                    match looks == OFTEN {
                        true => self.replay_trail(By::Plan(plan), LONG).await?,
                        false => None,
                    }
                }
                None => {
                    self.looks = Some(0);
                    self.replay_trail(by, SHORT).await?
                }
            };
            if let Some(recalled) = recalled.filter(|recalled| is_meant(recalled)) {
                let head = recalled.plan.head();
                let known = Known::of(head, About::of(recalled.plan.updated_at()));
                self.saw(head.id, known);
                self.recalled = Some(recalled);
            }
        }
        let recalled = self.recalled.as_ref();
        Ok(recalled
            .filter(|cached| is_meant(cached))
            .map(|cached| &cached.plan))
    }

    /// Replays a plan from its audit trail. `None` if the trail exceeds `limit` or cannot be
    /// replayed; then the caller reads the rows, and the error names the corrupt one.
    async fn replay_trail(&mut self, by: By, limit: Limit) -> Result<Option<Box<Recalled>>, Error> {
        let (name, id) = match by {
            By::Plan(plan) => (Query::TrailOfPlan, *plan.as_uuid()),
            By::Step(step) => (Query::TrailOfStep, *step.as_uuid()),
        };
        let rows = self.rows(name, params![id, limit.events, limit.bytes]);
        let rows = rows.await?;
        let bytes = rows.iter().map(Row::bytes).sum();
        let trail: Result<Vec<_>, Error> = rows.into_iter().map(event::entry_and_due).collect();
        let trail = trail.unwrap_or_default();
        let due = trail.first().and_then(|(_, due)| *due);
        let events = trail.iter().map(|(entry, _)| (&entry.event, entry.at));
        let made = Plan::replay(events.clone()).ok();
        Ok(made.map(|plan| {
            Box::new(Recalled {
                plan,
                bytes,
                look: due.map_or(Look::Never, Look::At),
                skilled: events.clone().any(|(event, _)| names_a_skill(event)),
            })
        }))
    }

    /// Applies a commit to the cached plan; `bytes` is the length of its audit trail entries.
    /// Returns whether the due time must be written.
    pub(crate) fn follow(&mut self, commit: &Commit<'_>, bytes: usize) -> bool {
        let plan = commit.head.id;
        let recalled = self.recalled.take();
        let mut tell = true;
        self.recalled = recalled.and_then(|mut recalled| {
            tell = recalled.look.goes_along(commit.due, commit.quiet_until());
            let followed = recalled.plan.apply_all(commit.events, commit.at);
            recalled.bytes += bytes;
            recalled.skilled |= commit.events.iter().any(names_a_skill);
            // If the result is not the committed head, the plan is not cached.
            (followed.is_ok() && recalled.plan.head() == commit.head).then_some(recalled)
        });
        self.long = self.looks.map(|looks| Long {
            plan,
            steps: commit.steps.iter().map(|after| after.step.id()).collect(),
            looks,
        });
        tell
    }

    /// Takes the cache update, to be applied after the commit.
    pub(crate) fn take_lesson(&mut self) -> Lesson {
        Lesson {
            tenant: Arc::clone(self.tenant()),
            recalled: self.recalled.take(),
            long: self.long.take(),
        }
    }
}

/// Cache update of a transaction, applied if it commits.
pub(crate) struct Lesson {
    tenant: Arc<str>,
    recalled: Option<Box<Recalled>>,
    long: Option<Long>,
}

impl Memory {
    /// Evicts the plans that a committed transaction changed, then applies its cache update.
    pub(crate) fn learn(&self, lesson: Lesson, changed: &[Changed]) {
        let Lesson {
            tenant,
            recalled,
            long,
        } = lesson;
        for changed in changed {
            if let Subject::Plan(plan) = &changed.what {
                self.forget(&changed.tenant, *plan);
            }
        }
        match (recalled, long) {
            (Some(recalled), _) => self.put(&tenant, recalled),
            (None, Some(long)) => {
                let remembered = Remembered::Long(long.looks);
                self.insert(&tenant, long.plan, &long.steps, remembered);
            }
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use onward_core::StepType;
    use onward_core::event::Created;
    use onward_core::id::ClaimToken;
    use onward_core::plan::Brief;
    use onward_core::policy::OnStall;
    use onward_core::step::{Claim, NewStep};
    use uuid::Uuid;

    use super::*;

    fn id(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    /// A plan with one step in progress; both have this number as their id.
    fn plan(number: usize, bytes: usize) -> Box<Recalled> {
        let step = NewStep {
            id: StepId::new(id(number)),
            step_type: StepType::Search,
            title: None,
            instructions: "Look".to_owned(),
            depends_on: Vec::new(),
            stall_threshold: None,
            max_attempts: 3,
        };
        let created = Created {
            plan: PlanId::new(id(number)),
            brief: Brief {
                name: "Tides".to_owned(),
                research_question: "Why twice a day?".to_owned(),
                design_rationale: None,
                output_formatting_notes: None,
            },
            steps: vec![step],
            branches: Vec::new(),
            stall_threshold: None,
            on_stall: OnStall::default(),
            session: None,
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
        Recalled::made(plan, bytes)
    }

    fn is_cached(memory: &Memory, tenant: &str, by: By) -> bool {
        memory.take(&tenant.into(), by).is_some()
    }

    #[test]
    fn finds_a_plan_by_id_or_step_and_takes_it_out() {
        let memory = Memory::default();
        let (by_plan, by_step) = (By::Plan(PlanId::new(id(1))), By::Step(StepId::new(id(1))));
        memory.put(&"a".into(), plan(1, 10));
        assert!(is_cached(&memory, "a", by_step));
        assert!(!is_cached(&memory, "a", by_plan), "a lookup takes it out");
        memory.put(&"a".into(), plan(1, 10));
        assert!(is_cached(&memory, "a", by_plan));
        assert!(!is_cached(&memory, "a", by_step));
    }

    #[test]
    fn writes_the_due_time_only_if_the_stored_one_is_not_sufficient() {
        let at = Timestamp::from_millis;
        let mut look = Look::Never;
        // Commit, end of the quiet period, whether `due` is written, and the cached due time after
        // it.
        for (due, until, written, known) in [
            (Due::Unchanged, 10, false, Look::Never),
            (Due::By(at(100)), 10, true, Look::At(at(100))),
            (Due::By(at(110)), 20, false, Look::At(at(100))),
            (Due::By(at(100)), 30, false, Look::At(at(100))),
            (Due::By(at(90)), 40, true, Look::At(at(90))),
            (Due::Unchanged, 50, false, Look::At(at(90))),
            // A sweep may be running, and may change the due time.
            (Due::By(at(200)), 90, true, Look::Unknown),
            (Due::By(at(300)), 95, true, Look::Unknown),
            (Due::At(at(150)), 96, true, Look::At(at(150))),
            (Due::Never, 97, true, Look::Never),
        ] {
            assert_eq!(look.goes_along(due, Some(at(until))), written, "{due:?}");
            assert_eq!(look, known, "{due:?}");
        }
        let mut look = Look::At(at(100));
        assert!(
            look.goes_along(Due::By(at(200)), None),
            "without a quiet period"
        );
    }

    #[test]
    fn does_not_return_the_plan_of_another_tenant() {
        let memory = Memory::default();
        memory.put(&"a".into(), plan(1, 10));
        for by in [By::Plan(PlanId::new(id(1))), By::Step(StepId::new(id(1)))] {
            assert!(!is_cached(&memory, "b", by));
        }
        assert!(is_cached(&memory, "a", By::Plan(PlanId::new(id(1)))));
    }

    #[test]
    fn evicts_plans_that_were_not_used_recently() {
        let memory = Memory::default();
        let tenant: Arc<str> = "a".into();
        for number in 0..10 * SHELF_PLANS {
            memory.put(&tenant, plan(number, 10));
            // This plan is in constant use.
            let first = By::Plan(PlanId::new(id(0)));
            let (_, remembered) = memory.take(&tenant, first).unwrap();
            let Remembered::Whole(first) = remembered else {
                panic!("the whole plan was cached")
            };
            memory.put(&tenant, first);
        }
        let shelves = memory.lock();
        let kept = shelves.new.plans.len() + shelves.old.plans.len();
        assert!(kept <= 2 * SHELF_PLANS, "{kept}");
    }

    #[test]
    fn limits_the_total_size_of_cached_plans() {
        let memory = Memory::default();
        for number in 0..100 {
            memory.put(&"a".into(), plan(number, SHELF_BYTES / 16));
            let shelves = memory.lock();
            let bytes = shelves.new.bytes + shelves.old.bytes;
            assert!(bytes <= 2 * SHELF_BYTES, "{bytes}");
        }
        let last = By::Plan(PlanId::new(id(99)));
        assert!(is_cached(&memory, "a", last));
        memory.put(&"a".into(), plan(100, SHELF_BYTES + 1));
        let heavy = By::Plan(PlanId::new(id(100)));
        let heavy = memory.take(&"a".into(), heavy);
        assert!(matches!(heavy, Some((_, Remembered::Long(_)))));
    }
}

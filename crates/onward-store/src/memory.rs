//! Plans that this process has worked on of late, as they stood after its last commit, so that the next
//! transition needs not ask for what is known. On PostgreSQL alone: a file is asked in less time.
//!
//! Nothing here is taken for true. What was decided on it is written only where the plan still has the
//! version that it was decided on, and a decision that writes nothing is made once more, on what the
//! database says.
//!
//! Whoever takes a plan out of the memory works on it alone, and puts it back when it is committed; if
//! that fails in any way, it is gone, and the next one asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_core::plan::PlanState;
use onward_core::{Event, Plan, PlanId, Step, StepId, Timestamp};

use crate::commit::{Commit, Due};
use crate::error::Error;
use crate::row::event;
use crate::row::plan::{About, Known};
use crate::tx::{Changed, Subject, Tx};
use crate::value::{Row, params};

/// A trail that is read at the first look at a plan: no longer, and no heavier.
const SHORT: Limit = Limit {
    events: 128,
    bytes: 256 << 10,
};

/// One that is read when a plan was looked at so often without it that reading it pays.
const LONG: Limit = Limit {
    events: 64 * 1024,
    bytes: SHELF_BYTES,
};
const OFTEN: u32 = 16;

/// How much of a trail is read at most.
#[derive(Clone, Copy)]
struct Limit {
    events: u64,
    bytes: usize,
}

/// How much one of the two shelves holds, in bytes of their trails.
const SHELF_BYTES: usize = 4 << 20;

/// How many plans, and how many of their steps, one of the two shelves holds.
const SHELF_PLANS: usize = 1024;
const SHELF_STEPS: usize = 16 * 1024;

/// What is remembered of all plans. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Shelves>>);

/// Plans are put on the new shelf. When that is full it becomes the old one, and whatever nobody has
/// taken from there meanwhile is forgotten.
#[derive(Default)]
struct Shelves {
    new: Shelf,
    old: Shelf,
}

#[derive(Default)]
struct Shelf {
    plans: HashMap<PlanId, (Arc<str>, Remembered)>,
    /// The plans of steps that somebody works on. A plan that was taken leaves them here: it comes back
    /// soon.
    of_step: HashMap<StepId, PlanId>,
    steps: usize,
    bytes: usize,
}

/// What is remembered of one plan.
pub(crate) enum Remembered {
    /// That its trail is long, and how often it was looked at without it.
    Long(u32),
    /// All of it.
    Whole(Box<Recalled>),
}

/// A whole plan, and how much it weighs.
pub(crate) struct Recalled {
    pub(crate) plan: Plan,
    /// The length of its trail.
    pub(crate) bytes: usize,
    pub(crate) look: Look,
    /// Whether skills belong to it: what they say stands in no trail.
    pub(crate) skilled: bool,
}

impl Recalled {
    /// A plan that has just been made.
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

/// When the sweep looks at a plan, as the database says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Unknown,
    Never,
    At(Timestamp),
}

impl Look {
    /// Follows a commit. Whether the database must be told: not where the sweep will have looked by then,
    /// and leaves it at that until an instant. Whoever else changes this changes the plan's version, except
    /// for a sweep that looks, which does so when it is time.
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

/// What a plan is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Plan(PlanId),
    Step(StepId),
}

impl Memory {
    /// Takes what is remembered of a plan out.
    pub(crate) fn take(&self, tenant: &Arc<str>, by: By) -> Option<(PlanId, Remembered)> {
        let mut shelves = self.lock();
        let Shelves { new, old } = &mut *shelves;
        [new, old]
            .into_iter()
            .find_map(|shelf| shelf.take(tenant, by))
    }

    /// Puts a plan there that has just been committed.
    pub(crate) fn put(&self, tenant: &Arc<str>, recalled: Box<Recalled>) {
        let plan = recalled.plan.head().id;
        // Nobody works on a plan that is over.
        if recalled.plan.head().status().is_terminal() {
            return;
        }
        let open = recalled.plan.in_progress().map(Step::id);
        let steps: Vec<StepId> = open.chain(under_review(&recalled.plan)).collect();
        let (weight, size) = (recalled.bytes, recalled.plan.steps().len());
        let remembered = match weight > SHELF_BYTES || size > SHELF_STEPS {
            // Looked at often enough, and too long even then.
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

    /// Forgets a plan.
    pub(crate) fn forget(&self, tenant: &Arc<str>, plan: PlanId) {
        drop(self.take(tenant, By::Plan(plan)));
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        // Whoever panicked here was changing what nobody takes for true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A plan whose trail is long.
pub(crate) struct Long {
    plan: PlanId,
    /// Those of its steps by which it will be found.
    steps: Vec<StepId>,
    looks: u32,
}

impl Remembered {
    /// How many steps it has, and how much it weighs.
    fn measures(&self) -> (usize, usize) {
        match self {
            Remembered::Long(_) => (0, 0),
            Remembered::Whole(recalled) => (recalled.plan.steps().len(), recalled.bytes),
        }
    }
}

/// The step that a person is asked about.
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
    /// The new shelf, with room for one more.
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
        // Another tenant's plan of the same id is none of ours.
        let (of, _) = self.plans.get(&plan)?;
        if of != tenant {
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
    /// The plan, where all of it is known: it was recalled in this transaction, or is now. One that is not
    /// remembered is made from its trail, in one round trip: it will be asked for again.
    pub(crate) async fn recall(&mut self, by: By) -> Result<Option<&Plan>, Error> {
        let is_meant = |recalled: &Recalled| match by {
            By::Plan(plan) => recalled.plan.head().id == plan,
            By::Step(step) => recalled.plan.step(step).is_some(),
        };
        let memory = self.memory.as_ref().filter(|_| !self.must_hold());
        // Once in a transaction: what is not there the first time is not there.
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
        Ok(recalled.filter(|it| is_meant(it)).map(|it| &it.plan))
    }

    /// The plan that its trail makes. None where that is longer than this, or makes none: whoever asks for
    /// the rows is told what is wrong.
    async fn replay_trail(&mut self, by: By, limit: Limit) -> Result<Option<Box<Recalled>>, Error> {
        let (name, id) = match by {
            By::Plan(plan) => ("trail_of_plan", *plan.as_uuid()),
            By::Step(step) => ("trail_of_step", *step.as_uuid()),
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

    /// The plan that is recalled goes along with a commit, whose entries in the trail have this length.
    /// Whether the database must be told when it is due.
    pub(crate) fn follow(&mut self, commit: &Commit<'_>, bytes: usize) -> bool {
        let plan = commit.head.id;
        let recalled = self.recalled.take();
        let mut tell = true;
        self.recalled = recalled.and_then(|mut recalled| {
            tell = recalled.look.goes_along(commit.due, commit.quiet_until());
            let followed = recalled.plan.apply_all(commit.events, commit.at);
            recalled.bytes += bytes;
            recalled.skilled |= commit.events.iter().any(names_a_skill);
            // What does not come out as it was committed is not remembered.
            (followed.is_ok() && recalled.plan.head() == commit.head).then_some(recalled)
        });
        self.long = self.looks.map(|looks| Long {
            plan,
            steps: commit.steps.iter().map(|after| after.step.id()).collect(),
            looks,
        });
        tell
    }

    /// What is to be remembered, once this is committed.
    pub(crate) fn take_lesson(&mut self) -> Lesson {
        Lesson {
            tenant: Arc::clone(self.tenant()),
            recalled: self.recalled.take(),
            long: self.long.take(),
        }
    }
}

/// What a transaction leaves behind in the memory, if it is committed.
pub(crate) struct Lesson {
    tenant: Arc<str>,
    recalled: Option<Box<Recalled>>,
    long: Option<Long>,
}

impl Memory {
    /// Remembers what a transaction that is committed has left, instead of what it changed.
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

    /// A plan of one step that somebody works on, both under this number.
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
        let mut plan = Plan::created(&created, at);
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

    fn is_there(memory: &Memory, tenant: &str, by: By) -> bool {
        memory.take(&tenant.into(), by).is_some()
    }

    #[test]
    fn a_plan_is_found_by_its_steps_too_and_taken_once() {
        let memory = Memory::default();
        let (by_plan, by_step) = (By::Plan(PlanId::new(id(1))), By::Step(StepId::new(id(1))));
        memory.put(&"a".into(), plan(1, 10));
        assert!(is_there(&memory, "a", by_step));
        assert!(!is_there(&memory, "a", by_plan), "somebody works on it");
        memory.put(&"a".into(), plan(1, 10));
        assert!(is_there(&memory, "a", by_plan));
        assert!(!is_there(&memory, "a", by_step));
    }

    #[test]
    fn the_database_is_told_when_a_plan_is_due_unless_it_knows() {
        let at = Timestamp::from_millis;
        let mut look = Look::Never;
        // Each commit, until when no sweep looks beside it, whether it is told, and what is known then.
        for (due, until, told, known) in [
            (Due::Unchanged, 10, false, Look::Never),
            (Due::By(at(100)), 10, true, Look::At(at(100))),
            (Due::By(at(110)), 20, false, Look::At(at(100))),
            (Due::By(at(100)), 30, false, Look::At(at(100))),
            (Due::By(at(90)), 40, true, Look::At(at(90))),
            (Due::Unchanged, 50, false, Look::At(at(90))),
            // A sweep may be looking now, and say another instant.
            (Due::By(at(200)), 90, true, Look::Unknown),
            (Due::By(at(300)), 95, true, Look::Unknown),
            (Due::At(at(150)), 96, true, Look::At(at(150))),
            (Due::Never, 97, true, Look::Never),
        ] {
            assert_eq!(look.goes_along(due, Some(at(until))), told, "{due:?}");
            assert_eq!(look, known, "{due:?}");
        }
        let mut look = Look::At(at(100));
        assert!(
            look.goes_along(Due::By(at(200)), None),
            "there is no such instant"
        );
    }

    #[test]
    fn nobody_recalls_what_another_tenant_did() {
        let memory = Memory::default();
        memory.put(&"a".into(), plan(1, 10));
        for by in [By::Plan(PlanId::new(id(1))), By::Step(StepId::new(id(1)))] {
            assert!(!is_there(&memory, "b", by));
        }
        assert!(is_there(&memory, "a", By::Plan(PlanId::new(id(1)))));
    }

    #[test]
    fn what_nobody_has_used_for_long_is_forgotten() {
        let memory = Memory::default();
        let tenant: Arc<str> = "a".into();
        for number in 0..10 * SHELF_PLANS {
            memory.put(&tenant, plan(number, 10));
            // This one is used all the time.
            let first = By::Plan(PlanId::new(id(0)));
            let (_, remembered) = memory.take(&tenant, first).unwrap();
            let Remembered::Whole(first) = remembered else {
                panic!("it was put there as a whole")
            };
            memory.put(&tenant, first);
        }
        let shelves = memory.lock();
        let kept = shelves.new.plans.len() + shelves.old.plans.len();
        assert!(kept <= 2 * SHELF_PLANS, "{kept}");
    }

    #[test]
    fn what_weighs_much_leaves_little_room() {
        let memory = Memory::default();
        for number in 0..100 {
            memory.put(&"a".into(), plan(number, SHELF_BYTES / 16));
            let shelves = memory.lock();
            let bytes = shelves.new.bytes + shelves.old.bytes;
            assert!(bytes <= 2 * SHELF_BYTES, "{bytes}");
        }
        let last = By::Plan(PlanId::new(id(99)));
        assert!(is_there(&memory, "a", last));
        memory.put(&"a".into(), plan(100, SHELF_BYTES + 1));
        let heavy = By::Plan(PlanId::new(id(100)));
        let heavy = memory.take(&"a".into(), heavy);
        assert!(matches!(heavy, Some((_, Remembered::Long(_)))));
    }
}

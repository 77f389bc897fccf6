//! Where a plan's steps are found without walking the list: by id, by what can be handed out, by what
//! is in progress, by what depends on what.
//!
//! Derived from the steps and branches, and from nothing else: [`Index::of`] makes it anew, and the
//! other functions must keep it equal to that. A test holds them to it.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasherDefault;

use crate::branch::{Action, Branch};
use crate::id::{BranchId, StepId};
use crate::step::{Step, StepState, StepStatus};

/// What is found by an id, in the same time however much there is. Its hasher has no random key, so
/// that equal inputs take equal steps; ids are made by us, not by whoever might want them to collide.
pub(crate) type ById<Id, T> = HashMap<Id, T, BuildHasherDefault<DefaultHasher>>;

/// The indexes of one plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    places: ById<StepId, usize>,
    dependents: ById<StepId, Vec<StepId>>,
    /// How many dependencies of a step are not terminal; a step that waits for none is not in it.
    waiting: ById<StepId, usize>,
    /// Orders of pending steps that wait for nothing.
    ready: BTreeSet<u32>,
    in_progress: BTreeSet<u32>,
    /// Orders of steps whose agent has not been told of a person's feedback.
    undelivered: BTreeSet<u32>,
    /// Which branches need a step, beside those that stand after it.
    needed: ById<StepId, Vec<BranchId>>,
    /// Ids of the steps that branches would add.
    reserved: BTreeSet<StepId>,
}

impl Index {
    /// The indexes of these steps and branches.
    pub(crate) fn of(steps: &[Step], branches: &ById<StepId, Vec<Branch>>) -> Self {
        let mut index = Self::default();
        for (place, step) in steps.iter().enumerate() {
            index.places.insert(step.id(), place);
            for needed in &step.spec.depends_on {
                index.dependents.entry(*needed).or_default().push(step.id());
            }
        }
        for step in steps {
            let open = step
                .spec
                .depends_on
                .iter()
                .filter(|needed| index.is_open(steps, **needed))
                .count();
            if open > 0 {
                index.waiting.insert(step.id(), open);
            }
            index.step_changed(step);
        }
        for branch in branches.values().flatten() {
            index.branch_added(branch);
        }
        index
    }

    fn is_open(&self, steps: &[Step], id: StepId) -> bool {
        self.place(id)
            .and_then(|place| steps.get(place))
            .is_some_and(|step| !step.status().is_terminal())
    }

    /// A step is in another state, or has just been indexed.
    pub(crate) fn step_changed(&mut self, step: &Step) {
        let order = step.order;
        let status = step.status();
        let ready = status == StepStatus::Pending && !self.waiting.contains_key(&step.id());
        keep(&mut self.ready, order, ready);
        keep(
            &mut self.in_progress,
            order,
            status == StepStatus::InProgress,
        );
        let undelivered = matches!(&step.state, StepState::InProgress(work) if work.undelivered);
        keep(&mut self.undelivered, order, undelivered);
    }

    /// A step became terminal: those that wait for it wait for one less.
    pub(crate) fn step_ended(&mut self, steps: &[Step], place: usize) {
        let Some(ended) = steps.get(place) else {
            return;
        };
        let Some(dependents) = self.dependents.get(&ended.id()).cloned() else {
            return;
        };
        for id in dependents {
            let left = self
                .waiting
                .get(&id)
                .copied()
                .unwrap_or(0)
                .saturating_sub(1);
            if left > 0 {
                self.waiting.insert(id, left);
            } else {
                self.waiting.remove(&id);
                if let Some(step) = self.place(id).and_then(|place| steps.get(place)) {
                    self.step_changed(step);
                }
            }
        }
    }

    /// A branch came in.
    pub(crate) fn branch_added(&mut self, branch: &Branch) {
        if let Action::AddSteps { steps } = &branch.action {
            self.reserved.extend(steps.iter().map(|step| step.id));
        }
        for needed in branch.references() {
            let needing = self.needed.entry(needed).or_default();
            if let Err(at) = needing.binary_search(&branch.id) {
                needing.insert(at, branch.id);
            }
        }
    }

    /// Where a step stands in the list, from 0.
    pub(crate) fn place(&self, id: StepId) -> Option<usize> {
        self.places.get(&id).copied()
    }

    /// Whether a step of this plan has the id, or would have it once a branch adds it.
    pub(crate) fn is_taken(&self, id: StepId) -> bool {
        self.places.contains_key(&id) || self.reserved.contains(&id)
    }

    /// The lowest order that can be handed out, were these steps terminal.
    pub(crate) fn first_ready(&self, steps: &[Step], ended: &[StepId]) -> Option<u32> {
        let freed = ended
            .iter()
            .flat_map(|id| self.dependents(*id))
            .filter_map(|id| {
                let step = steps.get(self.place(*id)?)?;
                let waits = step.spec.depends_on.iter();
                let freed = step.status() == StepStatus::Pending
                    && waits
                        .filter(|needed| self.is_open(steps, **needed))
                        .all(|open| ended.contains(open));
                freed.then_some(step.order)
            });
        self.ready.first().copied().into_iter().chain(freed).min()
    }

    /// Orders of the steps in progress.
    pub(crate) fn in_progress(&self) -> impl Iterator<Item = u32> {
        self.in_progress.iter().copied()
    }

    /// The lowest order whose agent has not been told of a person's feedback.
    pub(crate) fn first_undelivered(&self) -> Option<u32> {
        self.undelivered.first().copied()
    }

    /// The steps that depend on this one.
    pub(crate) fn dependents(&self, id: StepId) -> &[StepId] {
        self.dependents.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The branches that need this step, beside those that stand after it.
    pub(crate) fn needed_by(&self, id: StepId) -> &[BranchId] {
        self.needed.get(&id).map_or(&[], Vec::as_slice)
    }
}

fn keep(set: &mut BTreeSet<u32>, order: u32, belongs: bool) {
    if belongs {
        set.insert(order);
    } else {
        set.remove(&order);
    }
}

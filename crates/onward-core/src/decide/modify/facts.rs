//! The facts of a modification, and which of them it needs.

use std::collections::BTreeSet;

use crate::apply::Plan;
use crate::branch::Branch;
use crate::budget::Used;
use crate::decide::resolve::{ExistingSteps, IdFacts, OrderFacts, ReferencedStep};
use crate::id::{BranchId, StepId};
use crate::plan::PlanHead;
use crate::refusal::Refusal;
use crate::step::{NewStep, Step, StepStatus};

/// The facts that a modification needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`Facts::step`](field@Facts::step), if it exists.
    pub step: Option<StepId>,
    /// [`Facts::dependents`] and [`Facts::needed_by`] of that step.
    pub references: bool,
    /// [`Facts::taken`]: which of these ids the plan already has.
    pub fresh: Vec<StepId>,
    /// [`Facts::orders`]: the steps with these orders that exist.
    pub orders: BTreeSet<u32>,
    /// [`Facts::ids`]: the steps of the plan with these ids.
    pub ids: BTreeSet<StepId>,
    /// [`Facts::branches_after`] of the step with this order.
    pub branches_after: Option<u32>,
    /// [`Facts::list`].
    pub list: bool,
    /// [`Facts::outline`] and [`Facts::branches`].
    pub outline: bool,
    /// [`Facts::used`].
    pub used: bool,
}

/// A step without its work and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepOutline {
    /// The definition.
    pub spec: NewStep,
    /// The position in the plan.
    pub order: u32,
    /// The status.
    pub status: StepStatus,
    /// The step that redoes this one.
    pub superseded_by: Option<StepId>,
}

impl StepOutline {
    fn new(step: &Step) -> Self {
        Self {
            spec: step.spec.clone(),
            order: step.order,
            status: step.status(),
            superseded_by: step.superseded_by,
        }
    }
}

/// The required facts. Fields that [`needs`](super::needs) does not request may be empty.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The plan.
    pub head: PlanHead,
    /// The step to change.
    pub step: Option<Step>,
    /// The steps that depend on it.
    pub dependents: Vec<StepId>,
    /// The branches that refer to it, except those after it.
    pub needed_by: Vec<BranchId>,
    /// The new ids that the plan or one of its branches already uses.
    pub taken: Vec<StepId>,
    /// Steps referenced by order.
    pub orders: OrderFacts,
    /// Steps referenced by id.
    pub ids: IdFacts,
    /// The number of branches after the step.
    pub branches_after: usize,
    /// All steps, sorted by order.
    pub list: Vec<StepId>,
    /// All steps with their definitions, sorted by order.
    pub outline: Vec<StepOutline>,
    /// All branches.
    pub branches: Vec<Branch>,
    /// What a budget counts.
    pub used: Used,
}

impl Facts {
    /// Only the head of the plan.
    pub fn new(head: PlanHead) -> Self {
        Self {
            head,
            step: None,
            dependents: Vec::new(),
            needed_by: Vec::new(),
            taken: Vec::new(),
            orders: OrderFacts::new(),
            ids: IdFacts::new(),
            branches_after: 0,
            list: Vec::new(),
            outline: Vec::new(),
            branches: Vec::new(),
            used: Used::default(),
        }
    }

    /// The facts of a plan in memory.
    pub fn from_plan(plan: &Plan, needs: &Needs) -> Self {
        let mut facts = Self::new(plan.head().clone());
        let index = plan.index();
        if let Some(id) = needs.step {
            facts.step = plan.step(id).cloned();
            if needs.references {
                facts.dependents = index.dependents(id).to_vec();
                facts.needed_by = index.needed_by(id).to_vec();
            }
        }
        let fresh = needs.fresh.iter().copied();
        facts.taken = fresh.filter(|id| index.is_taken(*id)).collect();
        let place = |order: &u32| Some((*order, ReferencedStep::new(plan.step_at(*order)?)));
        facts.orders = needs.orders.iter().filter_map(place).collect();
        let step = |id: &StepId| Some((*id, ReferencedStep::new(plan.step(*id)?)));
        facts.ids = needs.ids.iter().filter_map(step).collect();
        let after = needs.branches_after.and_then(|order| plan.step_at(order));
        facts.branches_after = after.map_or(0, |step| plan.branches_after(step.id()).len());
        if needs.list {
            facts.list = plan.steps().iter().map(Step::id).collect();
        }
        if needs.outline {
            facts.outline = plan.steps().iter().map(StepOutline::new).collect();
            facts.branches = plan.branches().cloned().collect();
        }
        if needs.used {
            facts.used = plan.used();
        }
        facts
    }

    /// The existing steps, for new steps and branches that refer to them.
    pub(super) fn resolve_with<T>(&self, resolve: impl FnOnce(&ExistingSteps<'_>) -> T) -> T {
        resolve(&ExistingSteps {
            on_dependency_failure: self.head.on_dependency_failure,
            total: self.head.counts.last_order(),
            by_order: &|order| self.orders.get(&order).copied(),
            by_id: &|id| self.ids.get(&id).copied(),
        })
    }

    pub(super) fn step(&self, id: StepId) -> Result<&Step, Refusal> {
        let step = self.step.as_ref().filter(|step| step.id() == id);
        step.ok_or(Refusal::StepNotFound(id))
    }
}

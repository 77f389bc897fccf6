//! The facts of a modification, and which of them it needs.

use std::collections::BTreeSet;

use crate::decide::resolve::{OrderFacts, ReferencedStep};
use crate::id::{BranchId, StepId};
use crate::plan::PlanHead;
use crate::refusal::Refusal;
use crate::step::Step;

/// The facts that a modification needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`Facts::step`](field@Facts::step). If it does not exist, return [`Refusal::StepNotFound`].
    pub step: Option<StepId>,
    /// [`Facts::dependents`] and [`Facts::needed_by`] of that step.
    pub references: bool,
    /// [`Facts::taken`]: which of these ids the plan already has.
    pub fresh: Vec<StepId>,
    /// [`Facts::orders`]: the steps with these orders that exist.
    pub orders: BTreeSet<u32>,
    /// [`Facts::target`], if it exists.
    pub target: Option<StepId>,
    /// [`Facts::branches_after`] of the step with this order.
    pub branches_after: Option<u32>,
    /// [`Facts::list`].
    pub list: bool,
}

/// The required facts. Fields that [`needs`](super::needs) does not request may be empty.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The plan.
    pub plan: &'a PlanHead,
    /// The step to change.
    pub step: Option<&'a Step>,
    /// The steps that depend on it.
    pub dependents: &'a [StepId],
    /// The branches that refer to it, except those after it.
    pub needed_by: &'a [BranchId],
    /// The new ids that the plan or one of its branches already uses.
    pub taken: &'a [StepId],
    /// Steps referenced by order.
    pub orders: &'a OrderFacts,
    /// The step that a `skip_to` references by id.
    pub target: Option<ReferencedStep>,
    /// The number of branches after the step.
    pub branches_after: usize,
    /// All steps, sorted by order.
    pub list: &'a [StepId],
}

impl<'a> Facts<'a> {
    pub(super) fn step(&self, id: StepId) -> Result<&'a Step, Refusal> {
        self.step
            .filter(|step| step.id() == id)
            .ok_or(Refusal::StepNotFound(id))
    }
}

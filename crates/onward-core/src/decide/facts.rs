//! The facts of commands on a step and of the assignment of the next step.
//!
//! A program that stores plans fills them from a few rows; `from_plan` takes them from a [`Plan`]
//! in memory. The facts of a modification are in [`modify`](super::modify), those of stalls in
//! [`handle_stalls`](super::handle_stalls), those of a resumption in
//! [`resume_session`](super::resume_session).

use crate::apply::Plan;
use crate::branch::Branch;
use crate::event::Decided;
use crate::id::{SessionId, StepId};
use crate::plan::PlanHead;
use crate::refusal::{MAX_NAMED, OpenDependencies};
use crate::routing::covers;
use crate::step::{Step, StepStatus};
use crate::time::Timestamp;

/// The facts to load with a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// Only the head of its plan.
    Head,
    /// Also its branches, because it may end.
    Branches,
    /// Also its branches and, unless a review is open, the last decision on it.
    Decision,
    /// Also the step of the same plan that would be assigned next.
    Ready,
}

impl With {
    /// Whether the branches of the step are requested.
    pub fn includes_branches(self) -> bool {
        self != With::Head
    }

    /// Whether the last decision on the step is requested. Only a repeated decision needs it.
    pub fn includes_decision(self, step: &Step) -> bool {
        self == With::Decision && step.status() != StepStatus::AwaitingInput
    }
}

/// A step with the head of its plan.
#[derive(Debug, Clone)]
pub struct StepFacts {
    /// The plan.
    pub head: PlanHead,
    /// The step.
    pub step: Step,
    /// Its branches in creation order, if requested.
    pub branches: Vec<Branch>,
    /// Whether another step depends on it.
    pub has_dependents: bool,
    /// Its unmet dependencies, if it is pending.
    pub open_dependencies: OpenDependencies,
    /// The last decision on it, if requested.
    pub decided: Option<Decided>,
    /// The first pending step, by [`claim_order`](Step::claim_order), whose dependencies are all
    /// terminal, if requested.
    pub ready: Option<Step>,
}

/// The steps of a plan that can be assigned.
#[derive(Debug, Clone)]
pub struct NextFacts {
    /// The plan.
    pub head: PlanHead,
    /// The lowest-order step with undelivered feedback that the calling session holds.
    pub undelivered: Option<Step>,
    /// The steps whose labels the caller offers that can be
    /// [taken over](Step::can_be_taken_over), sorted by order: with stalled ones if requested,
    /// otherwise only if no pending step is ready.
    pub stalled: Vec<Step>,
    /// The first pending step, by [`claim_order`](Step::claim_order), whose labels the caller offers
    /// and whose dependencies are all terminal, counting the [`exhausted`](Self::exhausted) ones as
    /// terminal.
    pub ready: Option<Step>,
}

impl StepFacts {
    /// The facts of a plan in memory. `None` if it has no such step.
    pub fn from_plan(plan: &Plan, id: StepId, with: With) -> Option<Self> {
        let branches = if with.includes_branches() {
            plan.branches_after(id)
        } else {
            &[]
        };
        let step = plan.step(id)?;
        Some(Self {
            head: plan.head().clone(),
            open_dependencies: OpenDependencies::from_plan(plan, step),
            decided: plan
                .decided(id)
                .filter(|_| with.includes_decision(step))
                .cloned(),
            step: step.clone(),
            branches: branches.to_vec(),
            has_dependents: plan.has_dependents(id),
            ready: plan.ready().filter(|_| with == With::Ready).cloned(),
        })
    }
}

impl OpenDependencies {
    fn from_plan(plan: &Plan, step: &Step) -> Self {
        if step.status() != StepStatus::Pending {
            return Self::default();
        }
        let mut open: Vec<(u32, StepId)> = plan
            .open_dependencies(step)
            .map(|needed| (needed.order, needed.id()))
            .collect();
        open.sort_unstable();
        let first = open.iter().take(MAX_NAMED);
        Self {
            total: u32::try_from(open.len()).unwrap_or(u32::MAX),
            first: first.map(|(order, id)| (*id, *order)).collect(),
        }
    }
}

impl NextFacts {
    /// The facts of a plan in memory for a session that offers these labels, with the steps that are
    /// stalled at `stalled_at`.
    pub fn from_plan(
        plan: &Plan,
        session: Option<&SessionId>,
        stalled_at: Option<Timestamp>,
        labels: Option<&[String]>,
    ) -> Self {
        let can_claim = |step: &&Step| covers(labels, &step.spec.labels);
        let stalled = stalled_at.map(|now| {
            let takeable =
                |step: &&Step| step.can_be_taken_over(true, plan.head().stall_threshold, now);
            let stalled = plan.in_progress().filter(takeable);
            stalled.filter(can_claim).cloned().collect()
        });
        let mut facts = Self {
            head: plan.head().clone(),
            undelivered: plan.undelivered(session).cloned(),
            stalled: stalled.unwrap_or_default(),
            ready: None,
        };
        facts.set_ready(plan, labels);
        if facts.ready.is_none() && stalled_at.is_none() {
            let orphaned = plan.in_progress().filter(|step| step.is_orphaned());
            facts.stalled = orphaned.filter(can_claim).cloned().collect();
            facts.set_ready(plan, labels);
        }
        facts
    }

    fn set_ready(&mut self, plan: &Plan, labels: Option<&[String]>) {
        let ended = self.exhausted();
        let ready = plan.index().first_ready(plan.steps(), &ended, labels);
        self.ready = ready.cloned();
    }

    /// Adds the steps that become ready because the [`exhausted`](Self::exhausted) ones fail.
    pub fn add_ready(&mut self, freed: impl IntoIterator<Item = Step>) {
        let ready = self.ready.take().into_iter().chain(freed);
        self.ready = ready.min_by_key(Step::claim_order);
    }

    /// The stalled steps that fail because they have no attempts left.
    pub fn exhausted(&self) -> Vec<StepId> {
        let exhausted = self.stalled.iter().filter(|step| step.is_exhausted());
        exhausted.map(Step::id).collect()
    }
}

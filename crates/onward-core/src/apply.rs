//! A whole plan in memory, built from its events.
//!
//! Replaying an audit trail gives a [`Plan`]. A program that keeps its plans in memory works with
//! it directly; a server needs it only for a few calls, because the modules in
//! [`decide`](mod@crate::decide) take only the facts that they need. The indexes provide these
//! facts without scanning the step list, so a decision costs the same with 10 steps and with
//! 10,000.
//!
//! [`Plan::apply`] applies an event or rejects it; a rejected event changes nothing.

mod head;
mod index;
mod list;
mod step;
mod surroundings;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::branch::{Branch, Effect};
use crate::budget::Used;
use crate::event::{Change, Created, Decided, Event};
use crate::id::{SessionId, StepId};
use crate::plan::{Brief, IllegalPlanTransition, PlanHead};
use crate::policy::stall_threshold;
use crate::stall::Stall;
use crate::step::{Step, StepStatus};
use crate::time::Timestamp;

use index::{ById, Index};

pub(crate) use step::changes_many;
pub use step::{StepApplyError, StepChange};
pub use surroundings::{BranchOutline, HeldStep, StepDecision, Surroundings};

/// A plan with its steps and branches.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    brief: Brief,
    head: PlanHead,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Sorted by order.
    steps: Vec<Step>,
    branches: ById<StepId, Vec<Branch>>,
    resumed: BTreeSet<SessionId>,
    /// The last decision on each reviewed step.
    decided: ById<StepId, Decided>,
    /// Decisions with information for an agent, oldest first.
    decisions: Vec<(StepId, Decided)>,
    /// What a budget counts, whether or not the plan has one.
    used: Used,
    index: Index,
}

/// An event that cannot be applied to the plan: the audit trail is inconsistent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot apply event `{event}`: {kind}")]
pub struct ApplyError {
    /// The event's name.
    pub event: &'static str,
    /// The reason.
    pub kind: ApplyErrorKind,
}

/// Why an event cannot be applied to a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyErrorKind {
    /// The transition of the plan is illegal.
    #[error(transparent)]
    Plan(#[from] IllegalPlanTransition),
    /// The event does not match its step.
    #[error(transparent)]
    Step(#[from] StepApplyError),
    /// The plan has no step with this id.
    #[error("the plan has no step `{0}`")]
    UnknownStep(StepId),
    /// The resulting step list would be incomplete or contain duplicates.
    #[error("the resulting step list would be invalid")]
    InvalidStepList,
    /// The creation event is missing, not the first event, or repeated.
    #[error("the first event, and only the first, must create the plan")]
    MisplacedCreation,
}

impl ApplyError {
    pub(crate) fn new(event: &Event, kind: impl Into<ApplyErrorKind>) -> Self {
        Self {
            event: event.name(),
            kind: kind.into(),
        }
    }
}

impl Plan {
    /// The plan after its creation event.
    pub fn from_created(created: &Created, at: Timestamp) -> Self {
        let steps: Vec<Step> = (1u32..)
            .zip(&created.steps)
            .map(|(order, spec)| Step::new(spec.clone(), order, at))
            .collect();
        let mut branches: ById<StepId, Vec<Branch>> = ById::default();
        for branch in &created.branches {
            branches
                .entry(branch.after)
                .or_default()
                .push(branch.clone());
        }
        let index = Index::new(&steps, &branches);
        Self {
            brief: created.brief.clone(),
            head: PlanHead::new(created),
            created_at: at,
            updated_at: at,
            steps,
            branches,
            resumed: BTreeSet::new(),
            decided: ById::default(),
            decisions: Vec::new(),
            used: Used::default(),
            index,
        }
    }

    /// Builds the plan from its audit trail.
    pub fn replay<'e>(
        events: impl IntoIterator<Item = (&'e Event, Timestamp)>,
    ) -> Result<Self, ApplyError> {
        let mut events = events.into_iter();
        let mut plan = match events.next() {
            Some((
                Event::PlanModified {
                    change: Change::Created(created),
                    ..
                },
                at,
            )) => Self::from_created(created, at),
            Some((event, _)) => {
                return Err(ApplyError::new(event, ApplyErrorKind::MisplacedCreation));
            }
            None => {
                return Err(ApplyError {
                    event: "none",
                    kind: ApplyErrorKind::MisplacedCreation,
                });
            }
        };
        for (event, at) in events {
            plan.apply(event, at)?;
        }
        Ok(plan)
    }

    /// Applies one event.
    pub fn apply(&mut self, event: &Event, at: Timestamp) -> Result<(), ApplyError> {
        self.change(event, at)
            .map_err(|why| ApplyError::new(event, why))
    }

    /// Applies the events of one command, up to the first that is rejected.
    pub fn apply_all(&mut self, events: &[Event], at: Timestamp) -> Result<(), ApplyError> {
        events.iter().try_for_each(|event| self.apply(event, at))
    }

    fn change(&mut self, event: &Event, at: Timestamp) -> Result<(), ApplyErrorKind> {
        // Work on a copy of the head, so that a rejected step change leaves the plan unchanged.
        let mut head = self.head.clone();
        head.apply(event, at)?;
        match event {
            Event::PlanModified { change, .. } => self.apply_modification(change, event, at)?,
            Event::BranchTaken {
                step,
                effect: Effect::Added { steps },
                ..
            } => {
                let after = self
                    .step(*step)
                    .ok_or(ApplyErrorKind::UnknownStep(*step))?
                    .order;
                self.insert(after, steps, at)?;
            }
            Event::PlanStalled { stalls } => {
                for stall in stalls {
                    let step = self
                        .step(stall.step)
                        .ok_or(ApplyErrorKind::UnknownStep(stall.step))?;
                    step.clone().apply(event, at)?;
                }
                for stall in stalls {
                    self.change_step(stall.step, event, at)?;
                }
            }
            Event::SessionResumed { session } => {
                self.resumed.insert(session.clone());
            }
            Event::UserReviewed {
                step,
                review,
                action,
            } => {
                self.change_step(*step, event, at)?;
                if let Some(decided) = Decided::from_action(*review, action) {
                    if decided.is_informative() {
                        self.decisions.push((*step, decided.clone()));
                    }
                    self.decided.insert(*step, decided);
                }
            }
            Event::StepStarted { step, .. }
            | Event::StepCompleted { step, .. }
            | Event::StepFailed { step, .. }
            | Event::StepSkipped { step, .. }
            | Event::StepRequeued { step, .. }
            | Event::StepProgressed { step, .. }
            | Event::FeedbackDelivered { step, .. }
            | Event::StepOrphaned { step, .. }
            | Event::LateResultKept {
                step,
                attempt: Some(_),
                ..
            } => self.change_step(*step, event, at)?,
            Event::BranchTaken { .. }
            | Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::BudgetExhausted { .. }
            | Event::PlanResumed { .. }
            | Event::PlanCompleted
            | Event::PlanFailed { .. }
            | Event::PlanStatusChanged { .. }
            | Event::LateResultKept { attempt: None, .. } => {}
        }
        self.head = head;
        if let Event::StepStarted { claim, .. } = event {
            self.used.count(claim.attempt, at);
        }
        if event.changes_plan() {
            self.updated_at = at;
        }
        Ok(())
    }

    fn apply_modification(
        &mut self,
        change: &Change,
        event: &Event,
        at: Timestamp,
    ) -> Result<(), ApplyErrorKind> {
        match change {
            Change::Created(_) => Err(ApplyErrorKind::MisplacedCreation),
            Change::StepsAdded { after, steps } => self.insert(*after, steps, at),
            Change::StepRemoved { step } => self.remove(*step),
            Change::StepsReordered { steps } => self.reorder(steps),
            Change::InstructionsUpdated { step, .. } | Change::StepRenamed { step, .. } => {
                self.change_step(*step, event, at)
            }
            Change::PlanUpdated { .. } | Change::BudgetSet { .. } => Ok(()),
            Change::StepUpdated { step } => self.update_step(step, event, at),
            Change::StepFailed { step }
            | Change::StepSkipped { step }
            | Change::StepRequeued { step } => self
                .step(*step)
                .map(|_| ())
                .ok_or(ApplyErrorKind::UnknownStep(*step)),
            Change::StepRedone { successors, .. } => self.redo(successors, event, at),
            Change::BranchAdded { branch } => {
                self.step(branch.after)
                    .ok_or(ApplyErrorKind::UnknownStep(branch.after))?;
                self.index.branch_added(branch);
                self.branches
                    .entry(branch.after)
                    .or_default()
                    .push(branch.clone());
                Ok(())
            }
        }
    }

    fn change_step(
        &mut self,
        id: StepId,
        event: &Event,
        at: Timestamp,
    ) -> Result<(), ApplyErrorKind> {
        let position = self
            .index
            .position(id)
            .ok_or(ApplyErrorKind::UnknownStep(id))?;
        let step = self
            .steps
            .get_mut(position)
            .ok_or(ApplyErrorKind::UnknownStep(id))?;
        let was_open = !step.status().is_terminal();
        step.apply(event, at)?;
        self.index.step_changed(step);
        if was_open && step.status().is_terminal() {
            self.index.step_ended(&self.steps, position);
        }
        Ok(())
    }

    /// What a budget counts, whether or not the plan has one. Without a budget, no tokens are known.
    pub fn used(&self) -> Used {
        let tokens = self.head.budget.and_then(|budget| budget.used.tokens);
        Used {
            tokens,
            ..self.used
        }
    }

    /// The author's description.
    pub fn brief(&self) -> &Brief {
        &self.brief
    }

    /// The status and step counts.
    pub fn head(&self) -> &PlanHead {
        &self.head
    }

    /// The time of creation.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// The time of the last change.
    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// All steps, sorted by order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The step with this id.
    pub fn step(&self, id: StepId) -> Option<&Step> {
        self.steps.get(self.index.position(id)?)
    }

    /// The step with this order.
    pub fn step_at(&self, order: u32) -> Option<&Step> {
        self.steps.get(usize::try_from(order).ok()?.checked_sub(1)?)
    }

    /// A step's branches, in evaluation order.
    pub fn branches_after(&self, step: StepId) -> &[Branch] {
        self.branches.get(&step).map_or(&[], Vec::as_slice)
    }

    /// All branches; those after one step in evaluation order.
    pub fn branches(&self) -> impl Iterator<Item = &Branch> {
        (self.steps.iter()).flat_map(|step| self.branches_after(step.id()))
    }

    /// The stall threshold for a step. `call` overrides the thresholds of the step and the plan.
    pub fn threshold(&self, step: &Step, call: Option<Duration>) -> Duration {
        stall_threshold(call, step.spec.stall_threshold, self.head.stall_threshold)
    }

    fn silence_limit(&self, step: &Step, call: Option<Duration>) -> Duration {
        step.silence_limit(call, self.head.stall_threshold)
    }

    /// The stalls, sorted by step order, each by the threshold of its step. A terminal plan and a
    /// captured plan have none. Detection changes nothing.
    pub fn stalls(&self, now: Timestamp, call: Option<Duration>) -> Vec<Stall> {
        self.stalled_steps(now, call)
            .filter(|_| self.head.origin.reports_inactivity())
            .map(|step| Stall {
                step: step.id(),
                attempt: step.attempt(),
                since: step.timestamp().reference(),
            })
            .collect()
    }

    pub(crate) fn stalled_steps(
        &self,
        now: Timestamp,
        call: Option<Duration>,
    ) -> impl Iterator<Item = &Step> {
        self.in_progress().filter(move |step| {
            step.timestamp()
                .is_stalled(now, self.silence_limit(step, call))
        })
    }

    /// The next time at which [`stalls`](Self::stalls) can change without a new event.
    pub fn next_stall_at(&self, now: Timestamp, call: Option<Duration>) -> Option<Timestamp> {
        self.in_progress()
            .filter(|_| self.head.origin.reports_inactivity())
            .filter_map(|step| step.timestamp().stalls_at(self.silence_limit(step, call)))
            .filter(|stalls_at| now <= *stalls_at)
            .min()
    }

    /// The steps in progress, sorted by order. A terminal plan has none.
    pub fn in_progress(&self) -> impl Iterator<Item = &Step> {
        let is_terminal = self.head.status().is_terminal();
        self.index
            .in_progress()
            .filter(move |_| !is_terminal)
            .filter_map(|order| self.step_at(order))
    }

    /// The steps under review, sorted by order.
    pub fn under_review(&self) -> impl Iterator<Item = &Step> {
        self.index
            .under_review()
            .filter_map(|order| self.step_at(order))
    }

    /// The first step that can be claimed.
    pub fn ready(&self) -> Option<&Step> {
        self.ready_for(None)
    }

    /// The first step that an agent with these labels can claim. `None` offers all.
    pub fn ready_for(&self, labels: Option<&[String]>) -> Option<&Step> {
        self.index.first_ready(&self.steps, &[], labels)
    }

    /// The first step with undelivered feedback that this session holds.
    pub fn undelivered(&self, session: Option<&SessionId>) -> Option<&Step> {
        let steps = self.index.undelivered();
        let mut steps = steps.filter_map(|order| self.step_at(order));
        steps.find(|step| step.is_held_by(session))
    }

    /// The last decision on a reviewed step.
    pub(crate) fn decided(&self, step: StepId) -> Option<&Decided> {
        self.decided.get(&step)
    }

    /// The unmet dependencies of a step.
    pub(crate) fn open_dependencies(&self, step: &Step) -> impl Iterator<Item = &Step> {
        let needed = step.spec.depends_on.iter();
        needed
            .filter_map(|id| self.step(*id))
            .filter(|needed| !step.spec.is_met_by(needed.status()))
    }

    /// The number of pending steps with unmet dependencies.
    pub fn count_blocked(&self) -> u32 {
        let is_blocked = |step: &&Step| {
            step.status() == StepStatus::Pending && self.open_dependencies(step).next().is_some()
        };
        u32::try_from(self.steps.iter().filter(is_blocked).count()).unwrap_or(u32::MAX)
    }

    /// Whether another step depends on this one.
    pub fn has_dependents(&self, step: StepId) -> bool {
        !self.index.dependents(step).is_empty()
    }

    pub(crate) fn has_resumed(&self, session: &SessionId) -> bool {
        self.resumed.contains(session)
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }
}

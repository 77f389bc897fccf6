//! A whole plan in memory, made by its events.
//!
//! This is what replaying an audit trail gives, and what a program that keeps its plans itself
//! drives. A server does not need it for most calls: the verbs in [`decide`](mod@crate::decide) take only
//! the facts that they look at. The indexes here give those facts without walking the list, so that
//! deciding costs the same on 10 steps and on 10,000.
//!
//! [`Plan::apply`] is total: an event is applied, or answered with what does not fit, and then nothing
//! is changed.

mod index;
mod list;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::branch::{Branch, Effect};
use crate::event::{Change, Created, Event};
use crate::id::{SessionId, StepId};
use crate::plan::{Brief, IllegalPlanMove, PlanHead};
use crate::policy::stall_threshold;
use crate::stall::Stall;
use crate::step::{Step, StepMisfit};
use crate::time::Timestamp;

use index::{ById, Index};

/// A plan with its steps and branches.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    brief: Brief,
    head: PlanHead,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// In their order.
    steps: Vec<Step>,
    branches: ById<StepId, Vec<Branch>>,
    resumed: BTreeSet<SessionId>,
    index: Index,
}

/// An event that does not fit the plan: the trail is broken there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{event}` does not fit: {why}")]
pub struct Inapplicable {
    /// The event's name.
    pub event: &'static str,
    /// What does not fit.
    pub why: Misfit,
}

/// Why an event does not fit a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It does not fit the plan's status.
    #[error(transparent)]
    Plan(#[from] IllegalPlanMove),
    /// It does not fit its step.
    #[error(transparent)]
    Step(#[from] StepMisfit),
    /// It is about a step that the plan does not have.
    #[error("the plan has no step `{0}`")]
    UnknownStep(StepId),
    /// It would change the list of steps to something that is no list of these steps.
    #[error("the list of steps would not be whole")]
    List,
    /// A plan comes into being once, and by its first event.
    #[error("a plan comes into being by its first event, and by no other")]
    Created,
}

impl Plan {
    /// The plan that this event brings into being.
    pub fn created(created: &Created, at: Timestamp) -> Self {
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
        let index = Index::of(&steps, &branches);
        Self {
            brief: created.brief.clone(),
            head: PlanHead::created(created),
            created_at: at,
            updated_at: at,
            steps,
            branches,
            resumed: BTreeSet::new(),
            index,
        }
    }

    /// The plan that a whole trail makes.
    pub fn replay<'e>(
        trail: impl IntoIterator<Item = (&'e Event, Timestamp)>,
    ) -> Result<Self, Inapplicable> {
        let mut trail = trail.into_iter();
        let mut plan = match trail.next() {
            Some((
                Event::PlanModified {
                    change: Change::Created(created),
                    ..
                },
                at,
            )) => Self::created(created, at),
            Some((event, _)) => {
                return Err(Inapplicable {
                    event: event.name(),
                    why: Misfit::Created,
                });
            }
            None => {
                return Err(Inapplicable {
                    event: "nothing",
                    why: Misfit::Created,
                });
            }
        };
        for (event, at) in trail {
            plan.apply(event, at)?;
        }
        Ok(plan)
    }

    /// Makes one change.
    pub fn apply(&mut self, event: &Event, at: Timestamp) -> Result<(), Inapplicable> {
        self.change(event, at).map_err(|why| Inapplicable {
            event: event.name(),
            why,
        })
    }

    /// Makes all changes of one command, up to the first that does not fit.
    pub fn apply_all(&mut self, events: &[Event], at: Timestamp) -> Result<(), Inapplicable> {
        events.iter().try_for_each(|event| self.apply(event, at))
    }

    fn change(&mut self, event: &Event, at: Timestamp) -> Result<(), Misfit> {
        // The head is small: it follows in a copy, so that nothing is half done where a step refuses.
        let mut head = self.head.clone();
        head.apply(event, at)?;
        match event {
            Event::PlanModified { change, .. } => self.modified(change, event, at)?,
            Event::BranchTaken {
                step,
                effect: Effect::Added { steps },
                ..
            } => {
                let after = self.step(*step).ok_or(Misfit::UnknownStep(*step))?.order;
                self.insert(after, steps, at)?;
            }
            Event::PlanStalled { stalls } => {
                for stall in stalls {
                    let step = self
                        .step(stall.step)
                        .ok_or(Misfit::UnknownStep(stall.step))?;
                    step.clone().apply(event, at)?;
                }
                for stall in stalls {
                    self.change_step(stall.step, event, at)?;
                }
            }
            Event::SessionResumed { session } => {
                self.resumed.insert(session.clone());
            }
            Event::StepStarted { step, .. }
            | Event::StepCompleted { step, .. }
            | Event::StepFailed { step, .. }
            | Event::StepSkipped { step, .. }
            | Event::StepRequeued { step, .. }
            | Event::StepProgressed { step, .. }
            | Event::FeedbackDelivered { step, .. }
            | Event::UserReviewed { step, .. } => self.change_step(*step, event, at)?,
            Event::BranchTaken { .. }
            | Event::SkillStarted { .. }
            | Event::SkillCompleted { .. }
            | Event::PlanResumed { .. }
            | Event::PlanCompleted
            | Event::PlanFailed { .. }
            | Event::LateResultKept { .. } => {}
        }
        self.head = head;
        self.updated_at = at;
        Ok(())
    }

    fn modified(&mut self, change: &Change, event: &Event, at: Timestamp) -> Result<(), Misfit> {
        match change {
            Change::Created(_) => Err(Misfit::Created),
            Change::StepsAdded { after, steps } => self.insert(*after, steps, at),
            Change::StepRemoved { step } => self.remove(*step),
            Change::StepsReordered { steps } => self.reorder(steps),
            Change::InstructionsUpdated { step, .. } => self.change_step(*step, event, at),
            Change::StepFailed { step } | Change::StepRequeued { step } => self
                .step(*step)
                .map(|_| ())
                .ok_or(Misfit::UnknownStep(*step)),
            Change::BranchAdded { branch } => {
                self.step(branch.after)
                    .ok_or(Misfit::UnknownStep(branch.after))?;
                self.index.branch_added(branch);
                self.branches
                    .entry(branch.after)
                    .or_default()
                    .push(branch.clone());
                Ok(())
            }
        }
    }

    fn change_step(&mut self, id: StepId, event: &Event, at: Timestamp) -> Result<(), Misfit> {
        let place = self.index.place(id).ok_or(Misfit::UnknownStep(id))?;
        let step = self.steps.get_mut(place).ok_or(Misfit::UnknownStep(id))?;
        let was_open = !step.status().is_terminal();
        step.apply(event, at)?;
        self.index.step_changed(step);
        if was_open && step.status().is_terminal() {
            self.index.step_ended(&self.steps, place);
        }
        Ok(())
    }

    /// What its author said about it.
    pub fn brief(&self) -> &Brief {
        &self.brief
    }

    /// Its status and counts.
    pub fn head(&self) -> &PlanHead {
        &self.head
    }

    /// When it came into being.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// When anything about it last changed.
    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// All steps, in their order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// One step.
    pub fn step(&self, id: StepId) -> Option<&Step> {
        self.steps.get(self.index.place(id)?)
    }

    /// The step with this order.
    pub fn step_at(&self, order: u32) -> Option<&Step> {
        self.steps.get(usize::try_from(order).ok()?.checked_sub(1)?)
    }

    /// A step's branches, in the order in which they are tried.
    pub fn branches_after(&self, step: StepId) -> &[Branch] {
        self.branches.get(&step).map_or(&[], Vec::as_slice)
    }

    /// The threshold that applies to a step of this plan.
    pub fn threshold(&self, step: &Step, call: Option<Duration>) -> Duration {
        stall_threshold(call, step.spec.stall_threshold, self.head.stall_threshold)
    }

    /// The stalls, in the order of the steps, each step by its own threshold. A plan that is over has
    /// none. Detection changes nothing.
    pub fn stalls(&self, now: Timestamp, call: Option<Duration>) -> Vec<Stall> {
        self.stalled_steps(now, call)
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
        self.in_progress()
            .filter(move |step| step.timestamp().is_stalled(now, self.threshold(step, call)))
    }

    /// When [`stalls`](Self::stalls) could next answer otherwise, if nothing happens.
    pub fn next_stall_at(&self, now: Timestamp, call: Option<Duration>) -> Option<Timestamp> {
        self.in_progress()
            .filter_map(|step| step.timestamp().stalls_at(self.threshold(step, call)))
            .filter(|stalls_at| now <= *stalls_at)
            .min()
    }

    /// The steps in progress, in their order; none of a plan that is over.
    pub fn in_progress(&self) -> impl Iterator<Item = &Step> {
        let over = self.head.status().is_terminal();
        self.index
            .in_progress()
            .filter(move |_| !over)
            .filter_map(|order| self.step_at(order))
    }

    /// The first step that can be handed out.
    pub fn ready(&self) -> Option<&Step> {
        self.step_at(self.index.first_ready(&self.steps, &[])?)
    }

    /// The first step whose agent has not been told of a person's feedback.
    pub fn undelivered(&self) -> Option<&Step> {
        self.step_at(self.index.first_undelivered()?)
    }

    /// Whether another step depends on this one.
    pub fn is_needed(&self, step: StepId) -> bool {
        !self.index.dependents(step).is_empty()
    }

    pub(crate) fn has_resumed(&self, session: &SessionId) -> bool {
        self.resumed.contains(session)
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }
}

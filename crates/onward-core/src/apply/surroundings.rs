//! Context of an assigned step: its branches, the decisions of reviewers on earlier steps, and the
//! other steps that the session holds. This module computes it from a plan in memory; a server
//! reads the same data from a few rows.

use super::Plan;
use crate::branch::{Action, Branch};
use crate::event::Decided;
use crate::id::{SessionId, StepId};
use crate::step::{SkipCause, Step, StepState};
use crate::time::Timestamp;

/// The surroundings of an assigned step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The step's branches, in evaluation order.
    pub branches: Vec<BranchOutline>,
    /// Feedback of reviewers on the previous step, the step's dependencies and the step that it
    /// supersedes, oldest first.
    pub feedback: Vec<String>,
    /// The last decision on one of these steps or on the step itself.
    pub decision: Option<StepDecision>,
}

/// A reviewer's decision and the step that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDecision {
    /// The step.
    pub step: StepId,
    /// Position in the plan.
    pub order: u32,
    /// The decision.
    pub decided: Decided,
}

impl Surroundings {
    /// Adds the decisions on the steps that concern a step, oldest first. A plain approval has no
    /// information for the agent.
    pub fn with_decisions(
        mut self,
        step: StepId,
        decisions: impl IntoIterator<Item = StepDecision>,
    ) -> Self {
        let informative = |decision: &StepDecision| decision.decided.is_informative();
        for decision in decisions.into_iter().filter(informative) {
            // The instructions of the step contain the feedback on it.
            if decision.step != step {
                self.feedback.extend(decision.decided.feedback.clone());
            }
            self.decision = Some(decision);
        }
        self
    }
}

/// A branch and the current order of its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchOutline {
    /// The branch.
    pub branch: Branch,
    /// The order of the target of a `skip_to`, if the target exists.
    pub target: Option<u32>,
}

/// A step that a session holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldStep {
    /// The step.
    pub step: StepId,
    /// Position in the plan.
    pub order: u32,
    /// Display title.
    pub title: Option<String>,
    /// When the session claimed it.
    pub since: Timestamp,
}

impl Plan {
    /// The surroundings of a step.
    pub fn surroundings(&self, step: &Step) -> Surroundings {
        let outline = |branch: &Branch| BranchOutline {
            branch: branch.clone(),
            target: match &branch.action {
                Action::SkipTo { target } => self.step(*target).map(|target| target.order),
                Action::Continue | Action::AddSteps { .. } | Action::Fail { .. } => None,
            },
        };
        let surroundings = Surroundings {
            branches: self.branches_after(step.id()).iter().map(outline).collect(),
            ..Surroundings::default()
        };
        if self.decisions.is_empty() {
            return surroundings;
        }
        let previous = self.previous(step.order);
        let concerns = |id: &StepId| {
            *id == step.id()
                || previous == Some(*id)
                || step.spec.supersedes == Some(*id)
                || step.spec.depends_on.contains(id)
        };
        let decisions = self.decisions.iter().filter(|(id, _)| concerns(id));
        let decisions = decisions.filter_map(|(id, decided)| {
            Some(StepDecision {
                step: *id,
                order: self.step(*id)?.order,
                decided: decided.clone(),
            })
        });
        surroundings.with_decisions(step.id(), decisions)
    }

    /// The last step before this order that was completed, or skipped by a reviewer, and is not
    /// superseded.
    fn previous(&self, order: u32) -> Option<StepId> {
        let before = usize::try_from(order).ok()?.checked_sub(1)?;
        let ended = |step: &&Step| match &step.state {
            StepState::Completed { .. } => true,
            StepState::Skipped { by, .. } => matches!(by, SkipCause::Review(_)),
            StepState::Pending { .. }
            | StepState::InProgress(_)
            | StepState::AwaitingInput { .. }
            | StepState::Failed { .. } => false,
        };
        self.steps
            .get(..before)?
            .iter()
            .rev()
            .filter(|step| step.superseded_by.is_none())
            .find(ended)
            .map(Step::id)
    }

    /// The steps in progress that a session holds, lowest order first.
    pub fn held_by(&self, session: &SessionId) -> impl Iterator<Item = HeldStep> {
        self.in_progress().filter_map(move |step| {
            let work = step.work()?;
            (work.claim.session.as_ref() == Some(session)).then(|| HeldStep {
                step: step.id(),
                order: step.order,
                title: step.spec.title.clone(),
                since: work.started_at,
            })
        })
    }
}

//! A plan of the model: a list of steps, a list of branches, a status, and what happened.

use std::collections::BTreeSet;
use std::time::Duration;

use onward_core::branch::Action;
use onward_core::id::{ArtifactId, BranchId, SessionId};
use onward_core::plan::{Brief, PlanFailure, PlanState};
use onward_core::policy::OnStall;
use onward_core::step::FailReason;
use onward_core::{Code, Counts, PlanHead, PlanId, PlanStatus, StepId, StepStatus, Timestamp};
use onward_store::StepLine;

use super::{Moment, Step};
use crate::said::Said;

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) id: PlanId,
    pub(crate) brief: Brief,
    pub(crate) created_at: Timestamp,
    pub(crate) steps: Vec<Step>,
    /// In the order in which they were made.
    pub(crate) branches: Vec<Branch>,
    pub(crate) status: PlanStatus,
    pub(crate) marked_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) failure: Option<PlanFailure>,
    pub(crate) threshold: Option<Duration>,
    pub(crate) on_stall: OnStall,
    pub(crate) last_session: Option<SessionId>,
    pub(crate) resumed: BTreeSet<String>,
    pub(crate) trail: Vec<Entry>,
    /// Refused results that are kept beside the plan.
    pub(crate) late: Vec<Late>,
    /// The number of the first entry of the command at hand.
    commit: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Branch {
    pub(crate) id: BranchId,
    pub(crate) after: StepId,
    pub(crate) condition: String,
    pub(crate) action: Action,
}

/// A result that was refused, and is kept.
#[derive(Debug, Clone)]
pub(crate) struct Late {
    pub(crate) step: StepId,
    pub(crate) code: Code,
    pub(crate) summary: String,
    /// Where; none where nobody was told, and the rows were not read yet.
    pub(crate) id: Option<ArtifactId>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) action: Option<&'static str>,
    pub(crate) step: Option<StepId>,
    pub(crate) at: Timestamp,
    pub(crate) commit: u64,
    pub(crate) who: String,
    pub(crate) session: Option<SessionId>,
}

impl Plan {
    pub(crate) fn new(
        id: PlanId,
        brief: Brief,
        steps: Vec<Step>,
        branches: Vec<Branch>,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            brief,
            created_at: now,
            steps,
            branches,
            status: PlanStatus::Planning,
            marked_at: None,
            ended_at: None,
            failure: None,
            threshold: None,
            on_stall: OnStall::Mark,
            last_session: None,
            resumed: BTreeSet::new(),
            trail: Vec::new(),
            late: Vec::new(),
            commit: 1,
        }
    }

    /// All of it, or nothing.
    pub(crate) fn try_to<T>(
        &mut self,
        act: impl FnOnce(&mut Plan) -> Result<T, Code>,
    ) -> Result<T, Code> {
        let before = self.clone();
        self.begin_command();
        act(self).inspect_err(|_| *self = before)
    }

    pub(crate) fn begin_command(&mut self) {
        self.commit = self.trail.len() as u64 + 1;
    }

    pub(crate) fn note(
        &mut self,
        name: &'static str,
        action: Option<&'static str>,
        step: Option<StepId>,
        at: &Moment<'_>,
    ) {
        self.trail.push(Entry {
            name,
            action,
            step,
            at: at.now,
            commit: self.commit,
            who: at.who.to_owned(),
            session: at.session.cloned(),
        });
    }

    pub(crate) fn place(&self, step: StepId) -> Option<usize> {
        self.steps.iter().position(|own| own.id() == step)
    }

    pub(crate) fn order(&self, place: usize) -> u32 {
        u32::try_from(place + 1).expect("few steps")
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.status, PlanStatus::Completed | PlanStatus::Failed)
    }

    pub(crate) fn count(&self, status: StepStatus) -> u32 {
        let count = self.steps.iter().filter(|step| step.status == status);
        u32::try_from(count.count()).expect("few steps")
    }

    pub(crate) fn total(&self) -> u32 {
        u32::try_from(self.steps.len()).expect("few steps")
    }

    /// Halves up; failed steps do not count.
    pub(crate) fn progress_percent(&self) -> u32 {
        let done = self.count(StepStatus::Completed) + self.count(StepStatus::Skipped);
        match self.total() {
            0 => 0,
            total => (f64::from(done) * 100.0 / f64::from(total) + 0.5).floor() as u32,
        }
    }

    pub(crate) fn derived(&self) -> PlanStatus {
        let any = |status| self.count(status) > 0;
        if self.steps.is_empty() {
            PlanStatus::Planning
        } else if self.steps.iter().all(Step::is_over) {
            PlanStatus::Completed
        } else if any(StepStatus::AwaitingInput) {
            PlanStatus::AwaitingReview
        } else if any(StepStatus::InProgress) || self.steps.iter().any(Step::is_over) {
            PlanStatus::Executing
        } else {
            PlanStatus::Planning
        }
    }

    pub(crate) fn is_blocked(&self, step: &Step) -> bool {
        let open = |id: &StepId| self.place(*id).is_some_and(|at| !self.steps[at].is_over());
        step.status == StepStatus::Pending && step.spec.depends_on.iter().any(open)
    }

    pub(crate) fn is_stalled(&self, place: usize, now: Timestamp) -> bool {
        let alive_until = self.steps[place].alive_until(self.threshold);
        alive_until.is_some_and(|alive_until| now > alive_until)
    }

    pub(crate) fn worked_on(&mut self, at: &Moment<'_>) {
        if let Some(session) = at.session {
            self.last_session = Some(session.clone());
        }
    }

    pub(crate) fn resume(&mut self, by: &'static str, at: &Moment<'_>) {
        self.status = PlanStatus::Executing;
        self.marked_at = None;
        self.note("plan_resumed", Some(by), None, at);
    }

    pub(crate) fn fail(&mut self, why: PlanFailure, at: &Moment<'_>) {
        self.status = PlanStatus::Failed;
        self.failure = Some(why);
        self.ended_at = Some(at.now);
        self.note("plan_failed", None, None, at);
    }

    pub(crate) fn fail_step(&mut self, place: usize, why: FailReason, at: &Moment<'_>) {
        if self.status == PlanStatus::Planning {
            self.status = PlanStatus::Executing;
        }
        let step = &mut self.steps[place];
        step.status = StepStatus::Failed;
        step.failure = Some(why);
        step.ended_at = Some(at.now);
        step.review = None;
        let id = step.id();
        self.note("step_failed", None, Some(id), at);
    }

    /// Back to be handed out again, or failed where that was done as often as it may be.
    pub(crate) fn hand_back(&mut self, place: usize, why: &'static str, at: &Moment<'_>) {
        let step = &mut self.steps[place];
        if step.attempt() >= step.spec.max_attempts {
            return self.fail_step(place, FailReason::AttemptsUsedUp, at);
        }
        step.status = StepStatus::Pending;
        step.held_mut().handed_back = true;
        let id = step.id();
        self.note("step_requeued", Some(why), Some(id), at);
    }

    /// The end, where every step is over.
    pub(crate) fn settle(&mut self, at: &Moment<'_>) {
        if self.status == PlanStatus::Executing && self.derived() == PlanStatus::Completed {
            self.status = PlanStatus::Completed;
            self.ended_at = Some(at.now);
            self.note("plan_completed", None, None, at);
        }
    }

    pub(crate) fn resume_by_hand(&mut self, at: &Moment<'_>) -> Result<Said, Code> {
        match self.status {
            PlanStatus::Stalled => self.resume("person", at),
            PlanStatus::Completed | PlanStatus::Failed => return Err(Code::PlanIsTerminal),
            _ => return Err(Code::IllegalTransition),
        }
        Ok(Said::Stands(self.status))
    }

    pub(crate) fn abandon(
        &mut self,
        reason: Option<&String>,
        at: &Moment<'_>,
    ) -> Result<Said, Code> {
        if self.is_over() {
            return Err(Code::PlanIsTerminal);
        }
        self.fail(PlanFailure::Abandoned(reason.cloned()), at);
        Ok(Said::Stands(self.status))
    }

    /// Once per session, and not by the one that works on it already.
    pub(crate) fn take_up(&mut self, session: &SessionId, at: &Moment<'_>) {
        let known = self.resumed.contains(session.as_str());
        if known || self.last_session.as_ref() == Some(session) || self.is_over() {
            return;
        }
        self.resumed.insert(session.as_str().to_owned());
        self.note("session_resumed", None, None, at);
    }
}

/// The plan as the rows must show it.
impl Plan {
    pub(crate) fn head(&self) -> PlanHead {
        let ended_at = self.ended_at.unwrap_or(Timestamp::MIN);
        let state = match self.status {
            PlanStatus::Planning => PlanState::Planning,
            PlanStatus::Executing => PlanState::Executing,
            PlanStatus::AwaitingReview => {
                let asked = |step: &&Step| step.status == StepStatus::AwaitingInput;
                let step = self.steps.iter().find(asked).expect("a step awaits input");
                let review = step.review.as_ref().expect("it has a review").id;
                let step = step.id();
                PlanState::AwaitingReview { step, review }
            }
            PlanStatus::Stalled => PlanState::Stalled {
                marked_at: self.marked_at.expect("it was marked"),
            },
            PlanStatus::Completed => PlanState::Completed { ended_at },
            PlanStatus::Failed => PlanState::Failed {
                reason: self.failure.clone().expect("it failed for a reason"),
                ended_at,
            },
        };
        PlanHead {
            id: self.id,
            state,
            counts: Counts {
                pending: self.count(StepStatus::Pending),
                in_progress: self.count(StepStatus::InProgress),
                awaiting_input: self.count(StepStatus::AwaitingInput),
                completed: self.count(StepStatus::Completed),
                skipped: self.count(StepStatus::Skipped),
                failed: self.count(StepStatus::Failed),
            },
            seq: self.trail.len() as u64,
            stall_threshold: self.threshold,
            on_stall: self.on_stall,
            last_session: self.last_session.clone(),
        }
    }

    pub(crate) fn lines(&self) -> Vec<StepLine> {
        let steps = self.steps.iter().enumerate();
        steps
            .map(|(place, step)| step.line(self.order(place), self.threshold))
            .collect()
    }
}

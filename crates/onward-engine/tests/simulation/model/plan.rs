//! A plan: its steps, branches, status and audit trail.

use std::collections::BTreeSet;
use std::time::Duration;

use onward_core::branch::Action;
use onward_core::budget::{Budget, Exhausted};
use onward_core::id::{ArtifactId, BranchId, SessionId};
use onward_core::plan::{Brief, Origin, PendingReview, PlanFailure, PlanState};
use onward_core::policy::{OnDependencyFailure, OnStall};
use onward_core::routing::Routing;
use onward_core::step::FailReason;
use onward_core::{Code, Counts, PlanHead, PlanId, PlanStatus, StepId, StepStatus, Timestamp};
use onward_store::StepLine;

use super::{Context, Step};
use crate::response::Response;

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) id: PlanId,
    pub(crate) brief: Brief,
    pub(crate) created_at: Timestamp,
    pub(crate) steps: Vec<Step>,
    /// In order of creation.
    pub(crate) branches: Vec<Branch>,
    pub(crate) status: PlanStatus,
    /// The steps whose reviews stop the plan, in the order of the requests.
    pub(crate) stopped_by: Vec<StepId>,
    pub(crate) marked_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) failure: Option<PlanFailure>,
    pub(crate) threshold: Option<Duration>,
    pub(crate) on_stall: OnStall,
    pub(crate) on_dependency_failure: OnDependencyFailure,
    pub(crate) last_session: Option<SessionId>,
    pub(crate) routing: Routing,
    pub(crate) budget: Option<Budget>,
    /// The recorded exhaustion.
    pub(crate) exhausted: Option<Exhausted>,
    pub(crate) resumed: BTreeSet<String>,
    pub(crate) audit_trail: Vec<AuditEntry>,
    /// Rejected results that are stored as artifacts.
    pub(crate) late_results: Vec<LateResult>,
    /// Sequence number of the first entry of the current command.
    commit: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Branch {
    pub(crate) id: BranchId,
    pub(crate) after: StepId,
    pub(crate) condition: String,
    pub(crate) action: Action,
}

/// A rejected result that is stored as an artifact.
#[derive(Debug, Clone)]
pub(crate) struct LateResult {
    pub(crate) step: StepId,
    pub(crate) code: Code,
    pub(crate) summary: String,
    /// `None` until it is known from a response or the rows.
    pub(crate) id: Option<ArtifactId>,
}

/// An entry of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditEntry {
    pub(crate) name: &'static str,
    pub(crate) action: Option<&'static str>,
    pub(crate) step: Option<StepId>,
    pub(crate) at: Timestamp,
    pub(crate) commit: u64,
    pub(crate) author: String,
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
            stopped_by: Vec::new(),
            marked_at: None,
            ended_at: None,
            failure: None,
            threshold: None,
            on_stall: OnStall::Mark,
            on_dependency_failure: OnDependencyFailure::Block,
            last_session: None,
            routing: Routing::default(),
            budget: None,
            exhausted: None,
            resumed: BTreeSet::new(),
            audit_trail: Vec::new(),
            late_results: Vec::new(),
            commit: 1,
        }
    }

    /// Runs a command and restores the plan if it is rejected.
    pub(crate) fn atomically<T>(
        &mut self,
        act: impl FnOnce(&mut Plan) -> Result<T, Code>,
    ) -> Result<T, Code> {
        let before = self.clone();
        self.begin_command();
        act(self).inspect_err(|_| *self = before)
    }

    pub(crate) fn begin_command(&mut self) {
        self.commit = self.audit_trail.len() as u64 + 1;
    }

    pub(crate) fn record(
        &mut self,
        name: &'static str,
        action: Option<&'static str>,
        step: Option<StepId>,
        ctx: &Context<'_>,
    ) {
        self.audit_trail.push(AuditEntry {
            name,
            action,
            step,
            at: ctx.now,
            commit: self.commit,
            author: ctx.author.to_owned(),
            session: ctx.session.cloned(),
        });
    }

    pub(crate) fn index_of(&self, step: StepId) -> Option<usize> {
        self.steps.iter().position(|own| own.id() == step)
    }

    pub(crate) fn order(&self, index: usize) -> u32 {
        u32::try_from(index + 1).expect("count fits u32")
    }

    /// The time of the last change. A rejected result does not change the plan.
    pub(crate) fn changed_at(&self) -> Timestamp {
        let mut changes = self.audit_trail.iter().rev();
        let last = changes.find(|entry| entry.name != "late_result_kept");
        last.map_or(self.created_at, |entry| entry.at)
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.status, PlanStatus::Completed | PlanStatus::Failed)
    }

    pub(crate) fn count(&self, status: StepStatus) -> u32 {
        let active = self
            .steps
            .iter()
            .filter(|step| step.superseded_by.is_none());
        let count = active.filter(|step| step.status == status);
        u32::try_from(count.count()).expect("count fits u32")
    }

    /// The highest order.
    pub(crate) fn total(&self) -> u32 {
        u32::try_from(self.steps.len()).expect("count fits u32")
    }

    /// The number of steps that another one redoes.
    pub(crate) fn superseded(&self) -> u32 {
        let superseded = self
            .steps
            .iter()
            .filter(|step| step.superseded_by.is_some());
        u32::try_from(superseded.count()).expect("count fits u32")
    }

    /// The number of steps that no other one redoes.
    pub(crate) fn active(&self) -> u32 {
        self.total() - self.superseded()
    }

    /// Rounded half up. Failed steps do not count as done.
    pub(crate) fn progress_percent(&self) -> u32 {
        let done = self.count(StepStatus::Completed) + self.count(StepStatus::Skipped);
        match self.active() {
            0 => 0,
            total => (f64::from(done) * 100.0 / f64::from(total) + 0.5).floor() as u32,
        }
    }

    pub(crate) fn derived(&self) -> PlanStatus {
        let any = |status| self.count(status) > 0;
        if self.steps.is_empty() {
            PlanStatus::Planning
        } else if self.steps.iter().all(Step::has_ended) {
            PlanStatus::Completed
        } else if any(StepStatus::AwaitingInput) {
            PlanStatus::AwaitingReview
        } else if any(StepStatus::InProgress) || self.steps.iter().any(Step::has_ended) {
            PlanStatus::Executing
        } else {
            PlanStatus::Planning
        }
    }

    pub(crate) fn is_blocked(&self, step: &Step) -> bool {
        let continues = step.spec.on_dependency_failure == OnDependencyFailure::Continue;
        let open = |id: &StepId| {
            self.index_of(*id).is_some_and(|index| {
                let needed = &self.steps[index];
                !needed.has_ended() || (needed.status == StepStatus::Failed && !continues)
            })
        };
        step.status == StepStatus::Pending && step.spec.depends_on.iter().any(open)
    }

    /// Whether one of the dependencies that the step waits for has failed.
    pub(crate) fn waits_for_failed(&self, step: &Step) -> bool {
        let has_failed = |id: &StepId| {
            self.index_of(*id)
                .is_some_and(|index| self.steps[index].status == StepStatus::Failed)
        };
        let continues = step.spec.on_dependency_failure == OnDependencyFailure::Continue;
        step.status == StepStatus::Pending
            && !continues
            && step.spec.depends_on.iter().any(has_failed)
    }

    pub(crate) fn is_stalled(&self, index: usize, now: Timestamp) -> bool {
        let active_until = self.steps[index].active_until(self.threshold);
        active_until.is_some_and(|active_until| now > active_until)
    }

    pub(crate) fn set_last_session(&mut self, ctx: &Context<'_>) {
        if let Some(session) = ctx.session {
            self.last_session = Some(session.clone());
        }
    }

    pub(crate) fn resume(&mut self, by: &'static str, ctx: &Context<'_>) {
        self.status = PlanStatus::Executing;
        self.marked_at = None;
        self.record("plan_resumed", Some(by), None, ctx);
    }

    pub(crate) fn fail(&mut self, reason: PlanFailure, ctx: &Context<'_>) {
        self.status = PlanStatus::Failed;
        self.failure = Some(reason);
        self.ended_at = Some(ctx.now);
        self.record("plan_failed", None, None, ctx);
    }

    /// Changes the status, with its own audit entry.
    pub(crate) fn set_status(&mut self, status: PlanStatus, ctx: &Context<'_>) {
        self.status = status;
        self.record("plan_status_changed", None, None, ctx);
    }

    pub(crate) fn fail_step(&mut self, index: usize, reason: FailReason, ctx: &Context<'_>) {
        let step = &mut self.steps[index];
        step.status = StepStatus::Failed;
        step.failure = Some(reason);
        step.ended_at = Some(ctx.now);
        step.review = None;
        let id = step.id();
        self.record("step_failed", None, Some(id), ctx);
        if self.status == PlanStatus::Planning {
            self.set_status(PlanStatus::Executing, ctx);
        }
    }

    /// Requeues a step, or fails it after its last attempt.
    pub(crate) fn requeue(&mut self, index: usize, reason: &'static str, ctx: &Context<'_>) {
        let step = &mut self.steps[index];
        if step.attempt() >= step.spec.max_attempts {
            return self.fail_step(index, FailReason::AttemptsExhausted, ctx);
        }
        step.status = StepStatus::Pending;
        step.current_claim_mut().released = true;
        let id = step.id();
        self.record("step_requeued", Some(reason), Some(id), ctx);
    }

    /// Completes the plan if every step has ended.
    pub(crate) fn complete_if_done(&mut self, ctx: &Context<'_>) {
        if self.status == PlanStatus::Executing && self.derived() == PlanStatus::Completed {
            self.status = PlanStatus::Completed;
            self.ended_at = Some(ctx.now);
            self.record("plan_completed", None, None, ctx);
        }
        self.check_budget(false, ctx);
    }

    pub(crate) fn resume_manually(&mut self, ctx: &Context<'_>) -> Result<Response, Code> {
        if self.is_stopped_by_budget(ctx.now) {
            return Err(Code::BudgetExhausted);
        }
        match self.status {
            PlanStatus::Stalled => self.resume("person", ctx),
            PlanStatus::Completed | PlanStatus::Failed => return Err(Code::PlanIsTerminal),
            _ => return Err(Code::IllegalTransition),
        }
        Ok(Response::Status(self.status))
    }

    pub(crate) fn abandon(
        &mut self,
        reason: Option<&String>,
        ctx: &Context<'_>,
    ) -> Result<Response, Code> {
        if self.has_ended() {
            return Err(Code::PlanIsTerminal);
        }
        self.fail(PlanFailure::Abandoned(reason.cloned()), ctx);
        Ok(Response::Status(self.status))
    }

    /// Recorded once per session, and not for the last session that worked on the plan.
    pub(crate) fn resume_session(&mut self, session: &SessionId, ctx: &Context<'_>) {
        let recorded = self.resumed.contains(session.as_str());
        if recorded || self.last_session.as_ref() == Some(session) || self.has_ended() {
            return;
        }
        self.resumed.insert(session.as_str().to_owned());
        self.record("session_resumed", None, None, ctx);
    }
}

/// The plan in the form of the rows.
impl Plan {
    pub(crate) fn head(&self) -> PlanHead {
        let ended_at = self.ended_at.unwrap_or(Timestamp::MIN);
        let state = match self.status {
            PlanStatus::Planning => PlanState::Planning,
            PlanStatus::Executing => PlanState::Executing,
            PlanStatus::AwaitingReview => {
                let pending = |step: &StepId| {
                    let index = self.index_of(*step).expect("step under review exists");
                    let review = self.steps[index].review.as_ref();
                    PendingReview {
                        step: *step,
                        review: review.expect("step has a review").id,
                    }
                };
                let reviews = self.stopped_by.iter().map(pending).collect();
                PlanState::AwaitingReview { reviews }
            }
            PlanStatus::Stalled => PlanState::Stalled {
                marked_at: self.marked_at.expect("stalled plan has a mark"),
            },
            PlanStatus::Completed => PlanState::Completed { ended_at },
            PlanStatus::Failed => PlanState::Failed {
                reason: self.failure.clone().expect("failed plan has a reason"),
                ended_at,
            },
        };
        PlanHead {
            id: self.id,
            origin: Origin::Caller,
            state,
            counts: Counts {
                pending: self.count(StepStatus::Pending),
                in_progress: self.count(StepStatus::InProgress),
                awaiting_input: self.count(StepStatus::AwaitingInput),
                completed: self.count(StepStatus::Completed),
                skipped: self.count(StepStatus::Skipped),
                failed: self.count(StepStatus::Failed),
                superseded: self.superseded(),
            },
            seq: self.audit_trail.len() as u64,
            stall_threshold: self.threshold,
            on_stall: self.on_stall,
            on_dependency_failure: self.on_dependency_failure,
            last_session: self.last_session.clone(),
            routing: self.routing.clone(),
            budget: self.budget_state(),
        }
    }

    pub(crate) fn step_lines(&self) -> Vec<StepLine> {
        let steps = self.steps.iter().enumerate();
        steps
            .map(|(index, step)| step.line(self.order(index), self.threshold))
            .collect()
    }
}

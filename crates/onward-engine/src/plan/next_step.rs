//! Assigns the next step of a plan, or explains why none is available.

use std::sync::Arc;
use std::time::Duration;

pub use onward_core::apply::{BranchOutline, HeldStep, StepDecision, Surroundings};
use onward_core::budget::Exhausted;
use onward_core::command::{ReportProgress, StartNext};
use onward_core::decide::start_next::{NoStepReason, assigned_step, no_step_reason};
use onward_core::event::ProgressSource;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::plan::PlanFailure;
use onward_core::policy::stall_threshold;
use onward_core::role::Permission;
use onward_core::step::{Gates, Review};
use onward_core::{
    Command, Event, Plan, PlanHead, PlanId, Step, StepId, StepStatus, StepType, Timestamp,
};
use onward_store::{Cached, Facts, Outputs, Plans, SeenClaim, Steps, Tx, Which};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::plan::dependency::{Dependency, dependencies};
pub use crate::plan::in_progress::StepInProgress;
use crate::plan::skill;
use crate::run::{Applied, CommandContext, CommandOutcome, Target, run};
use crate::sanitize;
use crate::subagent::claims_and_subagents;

/// Plans of a project that one request tries. More than one only if other workers are faster.
const MAX_CANDIDATES: u32 = 100;
/// Maximum number of steps in progress listed in a response.
const MAX_LISTED: u32 = 50;
/// Maximum number of steps that a session holds, in a response.
pub(crate) const MAX_HELD: u32 = 50;

/// Response to a request for the next step.
#[derive(Debug, Clone, PartialEq)]
pub enum NextStep {
    /// A step was assigned.
    Started(Box<AssignedStep>),
    /// Every step is in a terminal state.
    Complete(FormattingNotes),
    /// The plan has failed.
    Failed {
        /// The reason.
        reason: PlanFailure,
    },
    /// A review decision is pending, and no step can be assigned or end before it.
    AwaitingReview {
        /// The step under review.
        step: StepId,
        /// The review request.
        review: Review,
        /// Steps that the session holds.
        held: Vec<HeldStep>,
    },
    /// The budget is exhausted, and no pending step is assigned.
    BudgetExhausted {
        /// The exhausted limit.
        exhausted: Exhausted,
        /// Number of steps in progress.
        in_progress: u32,
        /// Steps that the session holds.
        held: Vec<HeldStep>,
    },
    /// No step can be assigned now.
    NoPendingSteps {
        /// Number of steps in progress.
        in_progress: u32,
        /// Number of failed steps.
        failed: u32,
        /// Number of pending steps with incomplete dependencies.
        blocked: u32,
        /// The first steps in progress.
        working: Vec<StepInProgress>,
        /// Steps that the session holds.
        held: Vec<HeldStep>,
    },
}

/// A step with its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedStep {
    /// The plan.
    pub plan: PlanId,
    /// The step.
    pub step: StepId,
    /// Position in the plan.
    pub order: u32,
    /// Type of work.
    pub step_type: StepType,
    /// Display title.
    pub title: Option<String>,
    /// Instructions for the agent.
    pub instructions: String,
    /// Attempt number.
    pub attempt: u32,
    /// Token that proves the claim.
    pub token: ClaimToken,
    /// Whether the session already held the step: no other step is ready.
    pub resumed: bool,
    /// Time without activity after which the step counts as stalled.
    pub stall_threshold: Duration,
    /// Number of steps in the plan.
    pub total: u32,
    /// The step that it redoes.
    pub supersedes: Option<StepId>,
    /// The plan's progress in percent.
    pub progress: u32,
    /// The gates of its result.
    pub gates: Option<Arc<Gates>>,
    /// Its branches, and the decisions of reviewers before it.
    pub surroundings: Surroundings,
    /// The outcomes of the steps that it depends on.
    pub dependencies: Vec<Dependency>,
    /// Other steps that the session holds.
    pub held: Vec<HeldStep>,
}

/// Formatting notes for the output of a completed plan, from its skills, its author and its steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormattingNotes {
    /// Media type, from a linked skill.
    pub media_type: Option<String>,
    /// Formatting instructions, from a linked skill.
    pub instructions: Option<String>,
    /// Notes from the plan.
    pub plan: Option<String>,
    /// Notes from the steps, each with the step's id and position.
    pub steps: Vec<(StepId, u32, String)>,
}

/// The caller of a request for the next step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Worker {
    /// Its session.
    pub session: Option<SessionId>,
    /// The labels that it offers. Default: all.
    pub labels: Option<Vec<String>>,
    /// Whether stalled steps come first. They get a new attempt.
    pub include_stalled: bool,
}

impl Engine {
    /// Assigns the next step of a plan. With `include_stalled`, stalled steps come first and get a
    /// new attempt.
    pub async fn next_step(
        &self,
        caller: &Caller,
        plan: PlanId,
        session: Option<SessionId>,
        include_stalled: bool,
    ) -> Result<NextStep, Error> {
        let worker = Worker {
            session,
            labels: None,
            include_stalled,
        };
        self.next_step_for(caller, plan, worker).await
    }

    /// Assigns the next step of a plan that the worker can claim.
    pub async fn next_step_for(
        &self,
        caller: &Caller,
        plan: PlanId,
        worker: Worker,
    ) -> Result<NextStep, Error> {
        caller.allow(Permission::Work)?;
        let session = sanitize::session(worker.session);
        let ctx = self.command_context(caller, session.as_ref());
        let command = StartNext {
            token: self.ids.claim_token(),
            session,
            include_stalled: worker.include_stalled,
            labels: worker.labels,
        };
        let mut next = self.assign(caller, plan, &command, &ctx).await?;
        if caller.connection.is_some()
            && matches!(&next, NextStep::NoPendingSteps { in_progress, .. } if *in_progress > 0)
            && self.recover_host().await?.ended > 0
        {
            // A step of a session that has just ended can be taken over.
            next = self.assign(caller, plan, &command, &ctx).await?;
        }
        Ok(next)
    }

    async fn assign(
        &self,
        caller: &Caller,
        plan: PlanId,
        command: &StartNext,
        ctx: &CommandContext,
    ) -> Result<NextStep, Error> {
        let (command, ctx) = (command.clone(), ctx.clone());
        let assigned = self.store.transition(&caller.tenant, move |tx| {
            let (command, ctx) = (command.clone(), ctx.clone());
            Box::pin(async move {
                let assigned = assign_next(tx, plan, command, &ctx, None).await?;
                assigned.ok_or_else(|| Error::PlanNotFound(plan.to_string()))
            })
        });
        let (done, next) = assigned.await?;
        self.sweep_waker.wake_by(done.due);
        Ok(next)
    }

    /// Assigns the most urgent ready step of a project that the worker can claim: the highest
    /// priority of the plan, then of the step, then the oldest plan, then the lowest order.
    pub async fn next_step_of_project(
        &self,
        caller: &Caller,
        project: &str,
        worker: Worker,
    ) -> Result<NextStep, Error> {
        caller.allow(Permission::Work)?;
        let project: Arc<str> = project.trim().into();
        let labels = worker.labels.clone();
        for _ in 0..MAX_CANDIDATES {
            let (project, labels) = (Arc::clone(&project), labels.clone());
            let first = self.store.read(&caller.tenant, move |tx| {
                let (project, labels) = (Arc::clone(&project), labels.clone());
                Box::pin(async move { Facts(tx).next_plan_of(&project, labels.as_deref()).await })
            });
            let Some(plan) = first.await? else { break };
            match self.next_step_for(caller, plan, worker.clone()).await {
                Ok(NextStep::Started(step)) => return Ok(NextStep::Started(step)),
                // Another worker was faster, or the plan no longer assigns steps.
                Ok(_) => self.leave_queue(caller, plan).await?,
                Err(Error::PlanNotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        for plan in self.plans_to_continue(caller, &project, &worker).await? {
            match self.next_step_for(caller, plan, worker.clone()).await {
                Ok(NextStep::Started(step)) => return Ok(NextStep::Started(step)),
                Ok(_) | Err(Error::PlanNotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(NextStep::NoPendingSteps {
            in_progress: 0,
            failed: 0,
            blocked: 0,
            working: Vec::new(),
            held: Vec::new(),
        })
    }

    /// The plans of a project with a step in progress that the worker can continue.
    async fn plans_to_continue(
        &self,
        caller: &Caller,
        project: &Arc<str>,
        worker: &Worker,
    ) -> Result<Vec<PlanId>, Error> {
        if caller.connection.is_some() {
            self.recover_host().await?;
        }
        let (project, session) = (Arc::clone(project), worker.session.clone());
        let plans = self.store.read(&caller.tenant, move |tx| {
            let (project, session) = (Arc::clone(&project), session.clone());
            Box::pin(async move {
                let mut facts = Facts(tx);
                facts
                    .plans_to_continue(&project, session.as_ref(), MAX_CANDIDATES)
                    .await
            })
        });
        Ok(plans.await?)
    }

    /// Removes a plan that assigns no steps from the queue of its project. It holds the lock of the
    /// plan, so that it cannot undo the return of the plan to the queue.
    async fn leave_queue(&self, caller: &Caller, plan: PlanId) -> Result<(), Error> {
        let left = self.store.write(&caller.tenant, move |tx| {
            Box::pin(async move {
                let head = Facts(tx).plan(plan).await?;
                if head.is_some_and(|head| !head.assigns_steps()) {
                    Facts(tx).leave_queue(plan);
                }
                Ok::<(), Error>(())
            })
        });
        left.await
    }
}

/// Executes the command and builds the response. `None` if the plan does not exist.
pub(crate) async fn assign_next(
    tx: &mut Tx,
    plan: PlanId,
    command: StartNext,
    ctx: &CommandContext,
    commit_seq: Option<u64>,
) -> Result<Option<(Applied, NextStep)>, Error> {
    let session = command.session.clone();
    let command = command.into();
    match run(tx, Target::Plan(plan), &command, ctx, commit_seq).await? {
        CommandOutcome::NotFound => Ok(None),
        CommandOutcome::Rejected { refusal, .. } => Err(refusal.into()),
        CommandOutcome::Applied(done) => {
            let view = PlanView::Stored(&done.head);
            let step = assigned_step(&done.events).and_then(|id| done.step(id));
            if let Some(step) = step
                && let Some(started) = started(tx, view, step).await?
            {
                return Ok(Some((done, started)));
            }
            let next = no_step(tx, view, session.as_ref(), ctx.now).await?;
            let waits = matches!(
                next,
                NextStep::NoPendingSteps { .. } | NextStep::BudgetExhausted { .. }
            );
            if let Some(session) = session.filter(|_| waits && done.head.counts.in_progress > 0)
                && let commit_seq =
                    commit_seq.or((!done.events.is_empty()).then_some(done.commit_seq))
                && let Some(resumed) = resume_own(tx, plan, &session, ctx, commit_seq).await?
            {
                return Ok(Some(resumed));
            }
            Ok(Some((done, next)))
        }
    }
}

/// Returns a step that the session holds to it again, unless one of its subagents may be working on
/// it. This is activity: it restarts the stall threshold.
async fn resume_own(
    tx: &mut Tx,
    plan: PlanId,
    session: &SessionId,
    ctx: &CommandContext,
    commit_seq: Option<u64>,
) -> Result<Option<(Applied, NextStep)>, Error> {
    let (claims, has_subagent) = claims_and_subagents(tx, session, ctx.now).await?;
    if has_subagent {
        return Ok(None);
    }
    let steps = Steps(tx).in_progress(plan).await?;
    let own = steps.iter().find_map(|step| {
        let claim = step.claim()?;
        let is_seen = |seen: &SeenClaim| seen.step == step.id() && seen.token == claim.token;
        let is_own = claim.session.as_ref() == Some(session) || claims.iter().any(is_seen);
        is_own.then(|| (step.id(), claim.token.clone()))
    });
    let Some((step, token)) = own else {
        return Ok(None);
    };
    let command = Command::from(ReportProgress {
        step,
        source: ProgressSource::Reported,
        note: None,
        percent: None,
        token: Some(token),
        session: Some(session.clone()),
    });
    let outcome = run(tx, Target::Step(step), &command, ctx, commit_seq).await?;
    let CommandOutcome::Applied(done) = outcome else {
        return Ok(None);
    };
    let Some(held) = done.step(step) else {
        return Ok(None);
    };
    let Some(NextStep::Started(mut assigned)) =
        started(tx, PlanView::Stored(&done.head), held).await?
    else {
        return Ok(None);
    };
    assigned.resumed = true;
    Ok(Some((done, NextStep::Started(assigned))))
}

/// The response for a step that was assigned. `None` if the step has no claim.
pub(crate) async fn started(
    tx: &mut Tx,
    view: PlanView<'_>,
    step: &Step,
) -> Result<Option<NextStep>, Error> {
    let Some(claim) = step.claim() else {
        return Ok(None);
    };
    let head = view.head();
    let surroundings = view.surroundings(tx, step).await?;
    let dependencies = view.dependencies(tx, step).await?;
    // Another step that the session holds is in progress, too.
    let session = claim.session.as_ref();
    let session = session.filter(|_| head.counts.in_progress > 1);
    let mut held = view.held(tx, session).await?;
    held.retain(|held| held.step != step.id());
    Ok(Some(NextStep::Started(Box::new(AssignedStep {
        plan: head.id,
        step: step.id(),
        order: step.order,
        step_type: step.spec.step_type,
        title: step.spec.title.clone(),
        instructions: step.spec.instructions.clone(),
        attempt: claim.attempt,
        token: claim.token.clone(),
        resumed: false,
        stall_threshold: stall_threshold(None, step.spec.stall_threshold, head.stall_threshold),
        total: head.counts.total(),
        supersedes: step.spec.supersedes,
        progress: head.counts.progress(),
        gates: step.spec.gates.clone(),
        surroundings,
        dependencies,
        held,
    }))))
}

/// Whether the response to the command of these events delivers changed instructions of the step.
pub(crate) fn delivers_instructions(id: StepId, events: &[Event]) -> bool {
    let delivers =
        |event: &Event| matches!(event, Event::FeedbackDelivered { step, .. } if *step == id);
    events.iter().any(delivers)
}

/// The response when no step was assigned.
pub(crate) async fn no_step(
    tx: &mut Tx,
    view: PlanView<'_>,
    session: Option<&SessionId>,
    now: Timestamp,
) -> Result<NextStep, Error> {
    let head = view.head();
    Ok(match no_step_reason(head, now) {
        NoStepReason::Complete => NextStep::Complete(formatting_notes(tx, head.id).await?),
        NoStepReason::Failed(reason) => NextStep::Failed { reason },
        NoStepReason::AwaitingReview { step } => {
            let (step, review) = view.review(tx, step).await?;
            let held = view.held(tx, session).await?;
            NextStep::AwaitingReview { step, review, held }
        }
        NoStepReason::BudgetExhausted(exhausted) => NextStep::BudgetExhausted {
            exhausted,
            in_progress: head.counts.in_progress,
            held: view.held(tx, session).await?,
        },
        NoStepReason::NoneReady => NextStep::NoPendingSteps {
            in_progress: head.counts.in_progress,
            failed: head.counts.failed,
            working: view.working(tx, now).await?,
            blocked: view.count_blocked(tx).await?,
            held: view.held(tx, session).await?,
        },
    })
}

/// The plan that a response describes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PlanView<'p> {
    /// The stored plan, with its head as this transaction leaves it.
    Stored(&'p PlanHead),
    /// The plan after an earlier commit.
    Replayed(&'p Plan),
}

impl<'p> PlanView<'p> {
    fn head(self) -> &'p PlanHead {
        match self {
            Self::Stored(head) => head,
            Self::Replayed(plan) => plan.head(),
        }
    }

    async fn surroundings(self, tx: &mut Tx, step: &Step) -> Result<Surroundings, Error> {
        Ok(match self {
            Self::Stored(head) => Cached(Facts(tx)).surroundings(head.id, step).await?,
            Self::Replayed(plan) => plan.surroundings(step),
        })
    }

    /// The outcomes of the steps that a step depends on.
    async fn dependencies(self, tx: &mut Tx, step: &Step) -> Result<Vec<Dependency>, Error> {
        let mut stored = dependencies(tx, &step.spec.depends_on).await?;
        if let Self::Replayed(plan) = self {
            for dependency in &mut stored {
                if let Some(step) = plan.step(dependency.step) {
                    dependency.replay(step);
                }
            }
            stored.sort_by_key(|dependency| dependency.order);
        }
        Ok(stored)
    }

    /// The steps that the session holds.
    async fn held(self, tx: &mut Tx, session: Option<&SessionId>) -> Result<Vec<HeldStep>, Error> {
        let Some(session) = session else {
            return Ok(Vec::new());
        };
        Ok(match self {
            Self::Stored(head) => Cached(Facts(tx)).held(head.id, session, MAX_HELD).await?,
            Self::Replayed(plan) => {
                let most = usize::try_from(MAX_HELD).unwrap_or(usize::MAX);
                plan.held_by(session).take(most).collect()
            }
        })
    }

    /// The pending review of this step. Default: the first step under review.
    async fn review(self, tx: &mut Tx, step: Option<StepId>) -> Result<(StepId, Review), Error> {
        let step = match (self, step) {
            (Self::Stored(_), Some(id)) => {
                let found = Plans(tx).sheet_of_step(id).await?;
                found.map(|(_, step)| step)
            }
            (Self::Stored(head), None) => Steps(tx).under_review(head.id, 1).await?.pop(),
            (Self::Replayed(plan), Some(id)) => plan.step(id).cloned(),
            (Self::Replayed(plan), None) => plan.under_review().next().cloned(),
        };
        let review = step
            .as_ref()
            .and_then(|step| Some((step.id(), step.open_review()?.clone())));
        review.ok_or_else(|| {
            Error::Store(onward_store::Error::refused(format!(
                "plan `{}` is awaiting review, but no step has an open review",
                self.head().id
            )))
        })
    }

    /// The first steps in progress.
    async fn working(self, tx: &mut Tx, now: Timestamp) -> Result<Vec<StepInProgress>, Error> {
        Ok(match self {
            Self::Stored(head) => {
                let in_progress = Which::In(StepStatus::InProgress);
                let mut steps = Steps(tx);
                let lines = steps
                    .step_lines(head.id, in_progress, 0, MAX_LISTED)
                    .await?;
                let working = lines.iter().map(|line| StepInProgress::new(line, now));
                working.collect()
            }
            Self::Replayed(plan) => {
                let threshold = plan.head().stall_threshold;
                let working = plan.in_progress().take(MAX_LISTED as usize);
                let working = working.map(|step| StepInProgress::replayed(step, threshold, now));
                working.collect()
            }
        })
    }

    async fn count_blocked(self, tx: &mut Tx) -> Result<u32, Error> {
        Ok(match self {
            Self::Stored(head) => Steps(tx).count_blocked(head.id).await?,
            Self::Replayed(plan) => plan.count_blocked(),
        })
    }
}

async fn formatting_notes(tx: &mut Tx, plan: PlanId) -> Result<FormattingNotes, Error> {
    let notes = Cached(Outputs(tx))
        .output_notes(plan, skill::MAX_FORMATTING_SKILLS)
        .await?;
    let (media_type, instructions) = skill::output_formatting(&notes.skills);
    Ok(FormattingNotes {
        media_type,
        instructions,
        plan: notes.plan,
        steps: notes.steps,
    })
}

//! Assigns the next step of a plan, or explains why none is available.

use std::sync::Arc;
use std::time::Duration;

pub use onward_core::apply::{BranchOutline, HeldStep, Surroundings};
use onward_core::budget::Exhausted;
use onward_core::command::StartNext;
use onward_core::decide::start_next::assigned_step;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::plan::{PlanFailure, PlanState};
use onward_core::policy::stall_threshold;
use onward_core::role::Permission;
use onward_core::step::{Gates, Review, StepState};
use onward_core::{Event, Plan, PlanHead, PlanId, Step, StepId, StepType, Timestamp};
use onward_store::{Cached, Facts, Outputs, Plans, StepLine, Steps, Tx, Which};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::plan::skill;
use crate::plan::status::last_activity_at;
use crate::run::{Applied, CommandContext, CommandOutcome, Target, run};
use crate::sanitize;

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
    /// Its branches, and the feedback that reviewers left before it.
    pub surroundings: Surroundings,
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

/// A step that an agent is working on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepInProgress {
    /// The step.
    pub step: StepId,
    /// Position in the plan.
    pub order: u32,
    /// Time since the last activity.
    pub elapsed: Duration,
    /// Whether the step has exceeded its threshold.
    pub stalled: bool,
    /// When the step counts as stalled if nothing happens.
    pub stalls_at: Option<Timestamp>,
    /// The session that holds the claim, if the agent reported one.
    pub session: Option<SessionId>,
}

impl StepInProgress {
    pub(crate) fn new(line: &StepLine, now: Timestamp) -> Self {
        Self {
            step: line.id,
            order: line.order,
            elapsed: now.since(last_activity_at(line)),
            stalled: line.stalls_at.is_some_and(|at| now > at),
            stalls_at: line.stalls_at,
            session: line.session.clone(),
        }
    }
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
        Ok(NextStep::NoPendingSteps {
            in_progress: 0,
            failed: 0,
            blocked: 0,
            working: Vec::new(),
            held: Vec::new(),
        })
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

/// The step that a request for the next step would assign.
#[derive(Debug, Clone, PartialEq)]
pub enum Peek {
    /// A step is ready.
    Step(Box<Step>),
    /// No step is ready, and why.
    None(NextStep),
}

impl Engine {
    /// The next step, without assigning it.
    pub async fn peek(&self, caller: &Caller, plan: PlanId) -> Result<Peek, Error> {
        caller.allow(Permission::Read)?;
        let now = self.now();
        let peek = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let sheet = Plans(tx).sheet(plan).await?;
                let sheet = sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let head = sheet.head;
                let step = if head.status().assigns_steps() {
                    Steps(tx).first_ready(plan, None).await?
                } else {
                    None
                };
                // A step with undelivered feedback is already assigned.
                let is_exhausted = head.exhausted(now).is_some();
                let step = step.filter(|step| !is_exhausted || step.claim().is_some());
                Ok::<Peek, Error>(match step {
                    Some(step) => Peek::Step(Box::new(step)),
                    None => Peek::None(unavailable_reason(tx, &head, None, now).await?),
                })
            })
        });
        peek.await
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
            let step = assigned_step(&done.events).and_then(|id| done.step(id));
            let started = match step {
                Some(step) => started(tx, &done.head, step).await?,
                None => None,
            };
            let next = match started {
                Some(started) => started,
                None => unavailable_reason(tx, &done.head, session.as_ref(), ctx.now).await?,
            };
            Ok(Some((done, next)))
        }
    }
}

/// The response for a step that this transaction assigned. `None` if the step has no claim.
pub(crate) async fn started(
    tx: &mut Tx,
    head: &PlanHead,
    step: &Step,
) -> Result<Option<NextStep>, Error> {
    let surroundings = Cached(Facts(tx)).surroundings(head.id, step).await?;
    // Another step that the session holds is in progress, too.
    let held = match step.claim().and_then(|claim| claim.session.clone()) {
        Some(session) if head.counts.in_progress > 1 => {
            held(tx, head.id, Some(&session), Some(step.id())).await?
        }
        Some(_) | None => Vec::new(),
    };
    let assigned = to_assigned_step(head, step, surroundings, held);
    Ok(assigned.map(|assigned| NextStep::Started(Box::new(assigned))))
}

/// The steps that a session holds, except one.
async fn held(
    tx: &mut Tx,
    plan: PlanId,
    session: Option<&SessionId>,
    except: Option<StepId>,
) -> Result<Vec<HeldStep>, Error> {
    let Some(session) = session else {
        return Ok(Vec::new());
    };
    let mut held = Cached(Facts(tx)).held(plan, session, MAX_HELD).await?;
    held.retain(|held| Some(held.step) != except);
    Ok(held)
}

/// The response for an assigned step of a replayed plan. `None` if the step has no claim.
pub(crate) fn replayed_step(plan: &Plan, step: &Step) -> Option<AssignedStep> {
    let session = step.claim()?.session.as_ref();
    let held = session
        .into_iter()
        .flat_map(|session| plan.held_by(session));
    let held = held.filter(|held| held.step != step.id()).collect();
    to_assigned_step(plan.head(), step, plan.surroundings(step), held)
}

fn to_assigned_step(
    head: &PlanHead,
    step: &Step,
    surroundings: Surroundings,
    held: Vec<HeldStep>,
) -> Option<AssignedStep> {
    let claim = step.claim()?;
    Some(AssignedStep {
        plan: head.id,
        step: step.id(),
        order: step.order,
        step_type: step.spec.step_type,
        title: step.spec.title.clone(),
        instructions: step.spec.instructions.clone(),
        attempt: claim.attempt,
        token: claim.token.clone(),
        stall_threshold: stall_threshold(None, step.spec.stall_threshold, head.stall_threshold),
        total: head.counts.total(),
        supersedes: step.spec.supersedes,
        progress: head.counts.progress(),
        gates: step.spec.gates.clone(),
        surroundings,
        held,
    })
}

/// Whether the response to the command of these events delivers changed instructions of the step.
pub(crate) fn delivers_instructions(id: StepId, events: &[Event]) -> bool {
    let delivers =
        |event: &Event| matches!(event, Event::FeedbackDelivered { step, .. } if *step == id);
    events.iter().any(delivers)
}

/// The response when no step was assigned, from a plan as it was at `at`.
pub(crate) async fn replayed_reason(
    tx: &mut Tx,
    plan: &Plan,
    session: Option<&SessionId>,
    at: Timestamp,
) -> Result<NextStep, Error> {
    let head = plan.head();
    let held = session
        .into_iter()
        .flat_map(|session| plan.held_by(session))
        .collect();
    if let Some(exhausted) = denied_by_budget(head, at) {
        return Ok(NextStep::BudgetExhausted {
            exhausted,
            in_progress: head.counts.in_progress,
            held,
        });
    }
    Ok(match &head.state {
        PlanState::Completed { .. } => NextStep::Complete(formatting_notes(tx, head.id).await?),
        PlanState::Failed { reason, .. } => NextStep::Failed {
            reason: reason.clone(),
        },
        PlanState::AwaitingReview { reviews } => {
            let step = reviews.first().and_then(|first| plan.step(first.step));
            let review = step.and_then(pending_review);
            let (step, review) = review.ok_or_else(|| without_review(head))?;
            NextStep::AwaitingReview { step, review, held }
        }
        PlanState::Executing | PlanState::Stalled { .. } if waits_for_reviews(head) => {
            let review = plan.under_review().next().and_then(pending_review);
            let (step, review) = review.ok_or_else(|| without_review(head))?;
            NextStep::AwaitingReview { step, review, held }
        }
        PlanState::Planning | PlanState::Executing | PlanState::Stalled { .. } => {
            let listed = usize::try_from(MAX_LISTED).unwrap_or(usize::MAX);
            let working = plan.in_progress().take(listed).map(|step| {
                let stalls_at = step.stalls_at(head.stall_threshold);
                StepInProgress {
                    step: step.id(),
                    order: step.order,
                    elapsed: at.since(step.timestamp().reference()),
                    stalled: stalls_at.is_some_and(|stalls_at| at > stalls_at),
                    stalls_at,
                    session: step.claim().and_then(|claim| claim.session.clone()),
                }
            });
            NextStep::NoPendingSteps {
                in_progress: head.counts.in_progress,
                failed: head.counts.failed,
                blocked: count_blocked(plan),
                working: working.collect(),
                held,
            }
        }
    })
}

/// The pending steps that wait for another step.
fn count_blocked(plan: &Plan) -> u32 {
    let is_open = |id: &StepId| {
        plan.step(*id)
            .is_some_and(|needed| !needed.status().is_terminal())
    };
    let blocked = plan.steps().iter().filter(|step| {
        step.status() == onward_core::StepStatus::Pending
            && step.spec.depends_on.iter().any(is_open)
    });
    u32::try_from(blocked.count()).unwrap_or(u32::MAX)
}

fn without_review(head: &PlanHead) -> Error {
    Error::Store(onward_store::Error::refused(format!(
        "plan `{}` is awaiting review, but no step has an open review",
        head.id
    )))
}

/// The exhausted limit that prevents the assignment of a pending step.
fn denied_by_budget(head: &PlanHead, now: Timestamp) -> Option<Exhausted> {
    let has_pending = head.status().assigns_steps() && head.counts.pending > 0;
    head.exhausted(now).filter(|_| has_pending)
}

/// Whether nothing but a decision lets the plan continue: a step is under review, and none is in
/// progress.
fn waits_for_reviews(head: &PlanHead) -> bool {
    head.counts.awaiting_input > 0 && head.counts.in_progress == 0
}

/// The pending review of a step.
pub(crate) fn pending_review(step: &Step) -> Option<(StepId, Review)> {
    match &step.state {
        StepState::AwaitingInput { review, .. } => Some((step.id(), review.clone())),
        StepState::Pending { .. }
        | StepState::InProgress(_)
        | StepState::Completed { .. }
        | StepState::Skipped { .. }
        | StepState::Failed { .. } => None,
    }
}

/// The response when no step was assigned.
pub(crate) async fn unavailable_reason(
    tx: &mut Tx,
    head: &PlanHead,
    session: Option<&SessionId>,
    now: Timestamp,
) -> Result<NextStep, Error> {
    if let Some(exhausted) = denied_by_budget(head, now) {
        return Ok(NextStep::BudgetExhausted {
            exhausted,
            in_progress: head.counts.in_progress,
            held: held(tx, head.id, session, None).await?,
        });
    }
    Ok(match &head.state {
        PlanState::Completed { .. } => NextStep::Complete(formatting_notes(tx, head.id).await?),
        PlanState::Failed { reason, .. } => NextStep::Failed {
            reason: reason.clone(),
        },
        PlanState::AwaitingReview { reviews } => {
            let found = match reviews.first() {
                Some(first) => Plans(tx).sheet_of_step(first.step).await?,
                None => None,
            };
            let review = found.and_then(|(_, step)| pending_review(&step));
            let (step, review) = review.ok_or_else(|| without_review(head))?;
            let held = held(tx, head.id, session, None).await?;
            NextStep::AwaitingReview { step, review, held }
        }
        PlanState::Executing | PlanState::Stalled { .. } if waits_for_reviews(head) => {
            let steps = Steps(tx).under_review(head.id, 1).await?;
            let review = steps.first().and_then(pending_review);
            let (step, review) = review.ok_or_else(|| without_review(head))?;
            let held = held(tx, head.id, session, None).await?;
            NextStep::AwaitingReview { step, review, held }
        }
        PlanState::Planning | PlanState::Executing | PlanState::Stalled { .. } => {
            let in_progress = onward_core::StepStatus::InProgress;
            let mut steps = Steps(tx);
            let lines = steps.step_lines(head.id, Which::In(in_progress), 0, MAX_LISTED);
            let working = lines
                .await?
                .iter()
                .map(|line| StepInProgress::new(line, now))
                .collect();
            NextStep::NoPendingSteps {
                in_progress: head.counts.in_progress,
                failed: head.counts.failed,
                blocked: Steps(tx).count_blocked(head.id).await?,
                working,
                held: held(tx, head.id, session, None).await?,
            }
        }
    })
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

//! Tool calls that MCP clients follow as tasks: they survive restarts, because everything that is
//! needed to continue one is in its row.
//!
//! The row is stored before the call is acknowledged, and a review's row with the review. The status
//! of an active task is derived when the client requests it. The first outcome is stored and is
//! final. Only the caller that created a task can see it.

use std::sync::Arc;

use onward_core::PlanId;
use onward_core::command::StartNext;
use onward_core::event::{Decision, ReviewAction};
use onward_core::id::{ReviewId, SessionId, TaskId};
use onward_core::role::Permission;
use onward_core::step::Review;
use onward_core::{Event, Step, StepId, Timestamp};
use onward_store::{AuditTrail, Plans, Sheet, Task, TaskOutcome, TaskPhase, Tasks, Tx};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::{Error, ObjectKind};
use crate::plan::next_step::{NextStep, assign_next};
use crate::plan::step::{OpenedReview, ReviewRequest, ReviewResponse, decision_response};
use crate::plan::submit::replay_commit;
use crate::sanitize;

/// The state of a review that a task follows.
#[derive(Debug, Clone)]
pub enum ReviewState {
    /// No decision.
    Open(Review),
    /// Decided. The response is the one that the reviewer received.
    Decided(Decision, Box<ReviewResponse>),
    /// Ended without a decision, for example with its plan. The plan and the step are current.
    Withdrawn(Box<(Sheet, Step)>),
}

impl Engine {
    /// The id of a new task. It is random: a task id is a handle.
    pub fn new_task_id(&self) -> TaskId {
        TaskId::new(self.ids.random_id())
    }

    /// Stores a task.
    pub async fn create_task(
        &self,
        caller: &Caller,
        tool: &str,
        plan: Option<PlanId>,
        state: Value,
    ) -> Result<Task, Error> {
        caller.allow(Permission::Work)?;
        let now = self.now();
        let task = new_task(self.new_task_id(), caller.actor(), tool, plan, state, now);
        let stored = task.clone();
        let write = self.store.write(&caller.tenant, move |tx| {
            let task = stored.clone();
            Box::pin(async move {
                if let Some(plan) = task.plan {
                    let sheet = Plans(tx).sheet(plan).await?;
                    sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                }
                Tasks(tx).add_task(&task);
                Ok::<(), Error>(())
            })
        });
        write.await?;
        Ok(task)
    }

    /// Requests a review and stores a task that follows it, in one transaction. The task's state has
    /// the ids of the step and the review.
    pub async fn request_review_as_task(
        &self,
        caller: &Caller,
        question: ReviewRequest,
        tool: &'static str,
        id: TaskId,
    ) -> Result<OpenedReview, Error> {
        let actor = caller.actor();
        let store_task = move |tx: &mut Tx, opened: &OpenedReview, now: Timestamp| {
            let state = json!({
                "stepId": opened.step.to_string(),
                "reviewId": opened.review.to_string(),
            });
            let (actor, plan) = (actor.clone(), Some(opened.plan));
            Tasks(tx).add_task(&new_task(id, actor, tool, plan, state, now));
        };
        self.request_review_with(caller, question, store_task).await
    }

    /// A task of the caller.
    pub async fn task(&self, caller: &Caller, id: TaskId) -> Result<Task, Error> {
        caller.allow(Permission::Read)?;
        let actor = caller.actor();
        let found = self.store.read(&caller.tenant, move |tx| {
            let actor = actor.clone();
            Box::pin(async move { find(tx, id, &actor).await })
        });
        found.await
    }

    /// Replaces the state of an active task. `None` if the task has changed or ended since it was
    /// read.
    pub async fn change_task(
        &self,
        caller: &Caller,
        task: &Task,
        state: Value,
    ) -> Result<Option<Task>, Error> {
        caller.allow(Permission::Read)?;
        let (id, version) = (task.id, task.version);
        let (actor, now) = (caller.actor(), self.now());
        let changed = self.store.write(&caller.tenant, move |tx| {
            let (actor, state) = (actor.clone(), state.clone());
            Box::pin(async move {
                let current = find(tx, id, &actor).await?;
                if current.version != version {
                    return Ok::<_, Error>(None);
                }
                Ok(Some(change(tx, current, TaskPhase::Active(state), now)))
            })
        });
        changed.await
    }

    /// Ends a task, unless it has ended. The first outcome is final, and the response contains it.
    pub async fn end_task(
        &self,
        caller: &Caller,
        id: TaskId,
        outcome: TaskOutcome,
    ) -> Result<Task, Error> {
        caller.allow(Permission::Read)?;
        let (actor, now) = (caller.actor(), self.now());
        let ended = self.store.write(&caller.tenant, move |tx| {
            let (actor, outcome) = (actor.clone(), outcome.clone());
            Box::pin(async move {
                let task = find(tx, id, &actor).await?;
                if let TaskPhase::Ended(_) = task.phase {
                    return Ok::<_, Error>(task);
                }
                Ok(change(tx, task, TaskPhase::Ended(outcome), now))
            })
        });
        ended.await
    }

    /// Requests the next step on behalf of a task. If `result` returns a result for the response,
    /// the task ends with it in the transaction that assigns the step.
    pub async fn next_step_of_task(
        &self,
        caller: &Caller,
        id: TaskId,
        wait: TaskWait,
        result: impl Fn(&NextStep) -> Option<Value> + Send + Sync + 'static,
    ) -> Result<Task, Error> {
        caller.allow(Permission::Work)?;
        let plan = wait.plan;
        let session = sanitize::session(wait.session);
        let ctx = self.command_context(caller, session.as_ref());
        let command = StartNext {
            token: self.ids.claim_token(),
            session,
            include_stalled: wait.include_stalled,
            labels: wait.labels,
        };
        let (actor, result) = (caller.actor(), Arc::new(result));
        let attempt = self.store.transition(&caller.tenant, move |tx| {
            let (command, ctx) = (command.clone(), ctx.clone());
            let (actor, result) = (actor.clone(), Arc::clone(&result));
            Box::pin(async move {
                let task = find(tx, id, &actor).await?;
                if let TaskPhase::Ended(_) = task.phase {
                    return Ok::<_, Error>((None, task));
                }
                let now = ctx.now;
                let assigned = assign_next(tx, plan, command, &ctx, None).await?;
                let (done, next) = assigned.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let task = match result(&next) {
                    Some(result) => {
                        let outcome = TaskOutcome::Completed(result);
                        change(tx, task, TaskPhase::Ended(outcome), now)
                    }
                    None => task,
                };
                Ok((Some(done.due), task))
            })
        });
        let (due, task) = attempt.await?;
        if let Some(due) = due {
            self.sweep_waker.wake_by(due);
        }
        Ok(task)
    }

    /// The state of a review.
    pub async fn review_state(
        &self,
        caller: &Caller,
        step: StepId,
        review: ReviewId,
    ) -> Result<ReviewState, Error> {
        caller.allow(Permission::Read)?;
        let state = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let found = Plans(tx).sheet_of_step(step).await?;
                let missing = || Error::StepNotFound {
                    step: step.to_string(),
                    kept: None,
                };
                let (sheet, found) = found.ok_or_else(missing)?;
                // The step of a plan that ended keeps its state.
                if let Some(open) = found.open_review()
                    && open.id == review
                    && !sheet.head.status().is_terminal()
                {
                    return Ok::<_, Error>(ReviewState::Open(open.clone()));
                }
                let plan = sheet.head.id;
                let decided = AuditTrail(tx).decision(plan, step, Some(review)).await?;
                if decided.is_empty() {
                    return Ok(ReviewState::Withdrawn(Box::new((sheet, found))));
                }
                let (_, replayed) = replay_commit(tx, plan, &decided).await?;
                let events: Vec<Event> = decided.into_iter().map(|entry| entry.event).collect();
                let after = replayed.step(step);
                let response = decision_response(step, replayed.head(), after, &events);
                let decision = events.iter().find_map(|event| {
                    if let Event::UserReviewed {
                        action: ReviewAction::Decided { decision, .. },
                        ..
                    } = event
                    {
                        Some(*decision)
                    } else {
                        None
                    }
                });
                Ok(match decision {
                    Some(decision) => ReviewState::Decided(decision, Box::new(response)),
                    None => ReviewState::Withdrawn(Box::new((sheet, found))),
                })
            })
        });
        state.await
    }
}

/// The step that a task waits for.
#[derive(Debug, Clone)]
pub struct TaskWait {
    /// The plan.
    pub plan: PlanId,
    /// The session of the agent.
    pub session: Option<SessionId>,
    /// Whether stalled steps are assigned first.
    pub include_stalled: bool,
    /// The labels that the agent offers. Default: all.
    pub labels: Option<Vec<String>>,
}

fn new_task(
    id: TaskId,
    actor: String,
    tool: &str,
    plan: Option<PlanId>,
    state: Value,
    now: Timestamp,
) -> Task {
    Task {
        id,
        actor,
        tool: tool.to_owned(),
        plan,
        version: 1,
        created_at: now,
        updated_at: now,
        phase: TaskPhase::Active(state),
    }
}

async fn find(tx: &mut Tx, id: TaskId, actor: &str) -> Result<Task, Error> {
    let task = Tasks(tx).task(id, actor).await?;
    task.ok_or_else(|| Error::NotFound {
        kind: ObjectKind::Task,
        name: id.to_string(),
    })
}

fn change(tx: &mut Tx, mut task: Task, phase: TaskPhase, now: Timestamp) -> Task {
    // The clock may have been set back.
    let at = now.max(task.updated_at);
    Tasks(tx).change_task(&task, &phase, at);
    task.phase = phase;
    task.updated_at = at;
    task.version += 1;
    task
}

//! Tool calls that MCP clients follow as tasks. A task of a plan is deleted with the plan. A task
//! without a plan is part of the request log, and is deleted with it.
//!
//! The state belongs to the tool, which derives the task's status from it. The outcome is written
//! once, with a version check, and is final.

use onward_core::id::TaskId;
use onward_core::{PlanId, Timestamp};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::error::Error;
use crate::query::Query;
use crate::statement::Statement;
use crate::tx::Tx;
use crate::value::{Row, first, params};

/// A tool call that a client follows as a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Task id.
    pub id: TaskId,
    /// The caller. No other caller can see the task.
    pub actor: String,
    /// Name of the tool.
    pub tool: String,
    /// The plan that the call belongs to, if any.
    pub plan: Option<PlanId>,
    /// Counts the changes of the row, from 1.
    pub version: u64,
    /// Time of the call.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// The state, or the outcome.
    pub phase: TaskPhase,
}

/// Whether a task has ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskPhase {
    /// No; the data from which its tool derives the status.
    Active(Json),
    /// Yes.
    Ended(TaskOutcome),
}

/// The final state of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskOutcome {
    /// The result of the call, which may be an error of the tool.
    Completed(Json),
    /// The protocol error of the call.
    Failed(Json),
    /// Cancelled by the caller.
    Cancelled,
}

/// Tasks of callers.
pub struct Tasks<'t>(pub &'t mut Tx);

impl Tasks<'_> {
    /// Stores a new task.
    pub fn add_task(&mut self, task: &Task) {
        let (state, _, _) = columns(&task.phase);
        let params = params![
            task.id.as_uuid(),
            &task.actor,
            &task.tool,
            task.plan.map(|id| *id.as_uuid()),
            state,
            task.created_at,
        ];
        self.0.queue(Statement::new(Query::TaskInsert, params));
    }

    /// A task of a caller.
    pub async fn task(&mut self, id: TaskId, actor: &str) -> Result<Option<Task>, Error> {
        let params = params![id.as_uuid(), actor];
        let rows = self.0.rows(Query::Task, params).await?;
        first(Some(rows), task)
    }

    /// Replaces the state of the task, or ends it. If the row has another version, the transaction
    /// loses the race.
    pub fn change_task(&mut self, task: &Task, phase: &TaskPhase, at: Timestamp) {
        let (state, outcome, result) = columns(phase);
        let params = params![task.id.as_uuid(), task.version, state, at, outcome, result];
        self.0
            .queue(Statement::new(Query::TaskUpdate, params).checking_version());
    }

    /// Reads a page of all tasks, in the order of their ids. Returns the last id, if any.
    pub async fn tasks_page(
        &mut self,
        behind: Option<TaskId>,
        limit: u32,
    ) -> Result<Option<TaskId>, Error> {
        let behind = behind.map_or(Uuid::nil(), |id| *id.as_uuid());
        let rows = self
            .0
            .rows(Query::TasksPage, params![behind, limit])
            .await?;
        let mut last = None;
        for row in rows {
            last = Some(task(row)?.id);
        }
        Ok(last)
    }

    /// Deletes tasks without a plan from before this instant.
    pub fn forget_tasks(&mut self, before: Timestamp) {
        self.0
            .queue(Statement::new(Query::TasksDeleteBefore, params![before]));
    }
}

/// The columns `state`, `outcome` and `result`.
fn columns(phase: &TaskPhase) -> (Option<&Json>, Option<&'static str>, Option<&Json>) {
    match phase {
        TaskPhase::Active(state) => (Some(state), None, None),
        TaskPhase::Ended(TaskOutcome::Completed(result)) => (None, Some("completed"), Some(result)),
        TaskPhase::Ended(TaskOutcome::Failed(error)) => (None, Some("failed"), Some(error)),
        TaskPhase::Ended(TaskOutcome::Cancelled) => (None, Some("cancelled"), None),
    }
}

fn task(row: Row) -> Result<Task, Error> {
    let mut cells = row.cells("tasks");
    let id = TaskId::new(cells.id("task_id")?);
    let actor = cells.string("actor")?;
    let tool = cells.string("tool")?;
    let plan = cells.maybe_id("plan_id")?.map(PlanId::new);
    let state = cells.maybe_json("state")?;
    let version = cells.u64("version")?;
    let created_at = cells.at("created_at")?;
    let updated_at = cells.at("updated_at")?;
    let outcome = cells.maybe_string("outcome")?;
    let result = cells.maybe_json("result")?;
    let phase = match (state, outcome.as_deref(), result) {
        (Some(state), None, None) => TaskPhase::Active(state),
        (None, Some("completed"), Some(result)) => TaskPhase::Ended(TaskOutcome::Completed(result)),
        (None, Some("failed"), Some(error)) => TaskPhase::Ended(TaskOutcome::Failed(error)),
        (None, Some("cancelled"), None) => TaskPhase::Ended(TaskOutcome::Cancelled),
        _ => return Err(cells.corrupt("outcome", "is not consistent with `state` and `result`")),
    };
    Ok(Task {
        id,
        actor,
        tool,
        plan,
        version,
        created_at,
        updated_at,
        phase,
    })
}

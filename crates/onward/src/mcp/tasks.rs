//! Tool calls as tasks: the extension `io.modelcontextprotocol/tasks` (SEP-2663), for 2026-07-28
//! clients that declare it.
//!
//! Calls that wait for a user or for work return a task, one file per tool: `tasks/review.rs`,
//! `tasks/wait.rs`, `tasks/extraction.rs`. The row of a task is in the database, so any server
//! can continue it. Polling drives it: `tasks/get` derives the status from the plan and the time, and
//! stores the first outcome, which is final. The SDK rejects requests of clients that do not declare
//! the extension, and does not support `notifications/tasks`.

mod extraction;
mod review;
mod wait;

use onward_core::id::TaskId;
use onward_engine::{Caller, Error, Task, TaskOutcome, TaskPhase};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult, DetailedTask,
    ErrorData, GetTaskResult, InputRequests, InputResponses, JsonObject, ProtocolVersion,
    TaskPayload, TaskStatus,
};
use rmcp::service::RequestContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Server, Setup, links, protocol_error, result};
use crate::tools::{self, Tool, ToolError, extract_data, get_next_step, request_user_review};

/// Suggested polling interval for a user's decision.
const REVIEW_POLL_MS: u64 = 2_000;
/// Suggested polling interval for everything else.
const POLL_MS: u64 = 1_000;

/// The status of a task.
enum TaskProgress {
    /// In progress.
    Working {
        /// For the user.
        message: String,
    },
    /// Waiting for answers of the client.
    InputRequired(InputRequests),
    /// Ended with a result, which may be an error of the tool.
    Completed(Box<CallToolResult>),
    /// Ended with a protocol error.
    Failed(ErrorData),
}

/// What `tasks/get` found.
enum Status {
    /// The stored task has ended.
    Ended(Task),
    Progress(TaskProgress),
}

/// Whether the client follows tasks. Each request declares it.
pub(super) fn is_supported(context: &RequestContext<RoleServer>) -> bool {
    let first = ProtocolVersion::V_2026_07_28;
    let version = context.protocol_version();
    let client = context.client_capabilities();
    version.is_some_and(|version| version.as_str() >= first.as_str())
        && client.is_some_and(|client| client.supports_tasks())
}

/// Whether the call returns a task, unless it can be completed immediately.
pub(super) fn is_task(
    setup: &Setup,
    tool: &Tool,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> bool {
    // A request state belongs to a call that did not return a task.
    if request.request_state.is_some() || !is_supported(context) {
        return false;
    }
    match tool.name {
        request_user_review::NAME => true,
        extract_data::NAME => setup.tool_context.extractor.is_some(),
        _ => {
            let arguments = request.arguments.as_ref();
            arguments.is_some_and(|arguments| tools::wait::is_requested(tool, arguments))
        }
    }
}

/// Calls a tool and returns the task.
pub(super) async fn call(
    server: &Server,
    caller: &Caller,
    tool: &'static Tool,
    arguments: JsonObject,
) -> Result<CallToolResponse, ErrorData> {
    let (setup, arguments) = (&server.setup, Value::Object(arguments));
    match tool.name {
        request_user_review::NAME => review::call(setup, caller, tool, arguments).await,
        extract_data::NAME => extraction::call(setup, caller, tool, arguments).await,
        _ => wait::call(setup, caller, tool, arguments).await,
    }
}

/// `tasks/get`.
pub(super) async fn get(
    server: &Server,
    caller: &Caller,
    context: &RequestContext<RoleServer>,
    id: &str,
) -> Result<GetTaskResult, ErrorData> {
    let task = find(server, caller, id).await?;
    let status = match task.phase.clone() {
        TaskPhase::Ended(_) => Status::Ended(task.clone()),
        TaskPhase::Active(state) => status(server, caller, context, &task, &state).await?,
    };
    let (task, payload, message) = match status {
        Status::Ended(task) => {
            let payload = ended(&task);
            (task, payload, None)
        }
        Status::Progress(TaskProgress::Working { message }) => {
            (task, TaskPayload::Working, Some(message))
        }
        Status::Progress(TaskProgress::InputRequired(input_requests)) => {
            (task, TaskPayload::InputRequired { input_requests }, None)
        }
        Status::Progress(TaskProgress::Completed(result)) => {
            let outcome = TaskOutcome::Completed(to_json(&result));
            end(server, caller, &task, outcome).await?
        }
        Status::Progress(TaskProgress::Failed(error)) => {
            let outcome = TaskOutcome::Failed(to_json(&error));
            end(server, caller, &task, outcome).await?
        }
    };
    let mut listed = listed(&task);
    listed.status_message = message;
    Ok(GetTaskResult::new(DetailedTask::new(listed, payload)))
}

/// `tasks/update`. Answers to requests that are not open are ignored.
pub(super) async fn update(
    server: &Server,
    caller: &Caller,
    context: &RequestContext<RoleServer>,
    id: &str,
    answers: InputResponses,
) -> Result<(), ErrorData> {
    let task = find(server, caller, id).await?;
    let TaskPhase::Active(state) = &task.phase else {
        return Ok(());
    };
    match task.tool.as_str() {
        request_user_review::NAME => {
            review::answer(server, caller, context, &task, state, answers).await
        }
        get_next_step::NAME | extract_data::NAME => Ok(()),
        _ => Err(unknown_tool(&task)),
    }
}

/// `tasks/cancel`. The plan does not change: a review stays open for the user.
pub(super) async fn cancel(server: &Server, caller: &Caller, id: &str) -> Result<(), ErrorData> {
    let task = find(server, caller, id).await?;
    let engine = &server.setup.tool_context.engine;
    let cancelled = engine.end_task(caller, task.id, TaskOutcome::Cancelled);
    cancelled.await.map_err(protocol_error)?;
    Ok(())
}

/// The status of a task that has not ended.
async fn status(
    server: &Server,
    caller: &Caller,
    context: &RequestContext<RoleServer>,
    task: &Task,
    state: &Value,
) -> Result<Status, ErrorData> {
    let setup = &server.setup;
    match task.tool.as_str() {
        request_user_review::NAME => review::status(setup, caller, context, state).await,
        get_next_step::NAME => wait::status(setup, caller, task, state).await,
        extract_data::NAME => extraction::status(setup, caller, task, state).await,
        _ => Err(unknown_tool(task)),
    }
}

/// Does not end the task: a later version of Onward may know its tool.
fn unknown_tool(task: &Task) -> ErrorData {
    let message = format!("tasks of `{}` are not supported", task.tool);
    ErrorData::internal_error(message, None)
}

async fn find(server: &Server, caller: &Caller, id: &str) -> Result<Task, ErrorData> {
    let unknown = || {
        let id: String = id.chars().take(100).collect();
        ErrorData::invalid_params(format!("unknown task `{id}`"), None)
    };
    let parsed: TaskId = id.parse().map_err(|_| unknown())?;
    let found = server.setup.tool_context.engine.task(caller, parsed).await;
    found.map_err(|why| {
        if matches!(why, Error::NotFound { .. }) {
            unknown()
        } else {
            protocol_error(why)
        }
    })
}

/// Stores the outcome, unless another request was first, and returns the stored one.
async fn end(
    server: &Server,
    caller: &Caller,
    task: &Task,
    outcome: TaskOutcome,
) -> Result<(Task, TaskPayload, Option<String>), ErrorData> {
    let engine = &server.setup.tool_context.engine;
    let task = engine.end_task(caller, task.id, outcome).await;
    let task = task.map_err(protocol_error)?;
    let payload = ended(&task);
    Ok((task, payload, None))
}

fn ended(task: &Task) -> TaskPayload {
    let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
    match &task.phase {
        TaskPhase::Active(_) => TaskPayload::Working,
        TaskPhase::Ended(TaskOutcome::Completed(result)) => TaskPayload::Completed {
            result: object(result),
        },
        TaskPhase::Ended(TaskOutcome::Failed(error)) => TaskPayload::Failed {
            error: object(error),
        },
        TaskPhase::Ended(TaskOutcome::Cancelled) => TaskPayload::Cancelled,
    }
}

/// The response to the call that created a task.
fn created(task: &Task) -> CallToolResponse {
    CallToolResponse::Task(CreateTaskResult::new(listed(task)))
}

/// A task without its status-specific fields. It has no time-to-live: it is deleted with its plan or
/// with the request log.
fn listed(task: &Task) -> rmcp::model::Task {
    let at = |at: onward_core::Timestamp| at.to_string();
    let interval = match task.tool.as_str() {
        request_user_review::NAME => REVIEW_POLL_MS,
        _ => POLL_MS,
    };
    rmcp::model::Task::new(
        task.id.to_string(),
        TaskStatus::Working,
        at(task.created_at),
        at(task.updated_at),
    )
    .with_poll_interval_ms(interval)
}

/// The result of a tool as the result of a task.
fn completed(setup: &Setup, tool: &str, outcome: Result<Value, ToolError>) -> Box<CallToolResult> {
    let mut completed = result(setup, outcome);
    if let Some(tool) = tools::find(tool) {
        links::extend(tool, &mut completed);
    }
    Box::new(completed)
}

/// The status after an error of the engine. If the database is unavailable, the client polls again.
fn error_status(setup: &Setup, tool: &str, why: Error) -> Result<Status, ErrorData> {
    if matches!(why, Error::Store(_)) {
        return Err(protocol_error(why));
    }
    let result = completed(setup, tool, Err(why.into()));
    Ok(Status::Progress(TaskProgress::Completed(result)))
}

/// Reads the state of a task.
fn parse<T: DeserializeOwned>(state: &Value) -> Result<T, ErrorData> {
    T::deserialize(state).map_err(|why| {
        let message = format!("invalid state of the task: {why}");
        ErrorData::internal_error(message, None)
    })
}

fn to_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Another request changed the task. The client sends the update again.
fn changed_meanwhile() -> ErrorData {
    ErrorData::internal_error("the task has changed; send the request again", None)
}

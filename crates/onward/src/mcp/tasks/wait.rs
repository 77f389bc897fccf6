//! `get_next_step` with `waitMs` as a task. Every poll requests the next step. If one is assigned,
//! the claim and the result of the task are stored in one transaction, so a lost response loses no
//! claim, and a step is claimed only when the client can receive it.

use onward_engine::{Caller, Error, ObjectKind, Task, TaskPhase};
use rmcp::model::{CallToolResponse, ErrorData};
use serde_json::{Value, json};

use super::{Status, TaskProgress, completed, created, error_status, parse, to_json};
use crate::mcp::{Setup, protocol_error, result};
use crate::tools::get_next_step::NAME;
use crate::tools::wait::{FirstAttempt, TaskedWait};
use crate::tools::{Call, Tool};

pub(super) async fn call(
    setup: &Setup,
    caller: &Caller,
    tool: &'static Tool,
    arguments: Value,
) -> Result<CallToolResponse, ErrorData> {
    let context = &setup.tool_context;
    let call = Call::parse(tool, arguments);
    let wait = match TaskedWait::begin(&call, context, caller).await {
        FirstAttempt::Done(outcome) => {
            call.log(context, caller, &outcome);
            return Ok(result(setup, outcome).into());
        }
        FirstAttempt::Waiting(wait) => wait,
    };
    let plan = wait.target().map(|target| target.plan);
    let task = context
        .engine
        .create_task(caller, NAME, plan, to_json(&wait))
        .await;
    let (response, outcome) = match task {
        Ok(task) => (created(&task), Ok(json!({ "taskId": task.id.to_string() }))),
        Err(why) => (
            result(setup, Err(why.clone().into())).into(),
            Err(why.into()),
        ),
    };
    call.log(context, caller, &outcome);
    Ok(response)
}

pub(super) async fn status(
    setup: &Setup,
    caller: &Caller,
    task: &Task,
    state: &Value,
) -> Result<Status, ErrorData> {
    let wait: TaskedWait = parse(state)?;
    let engine = &setup.tool_context.engine;
    let Some(target) = wait.target() else {
        let why = Error::NotFound {
            kind: ObjectKind::Task,
            name: task.id.to_string(),
        };
        return Err(protocol_error(why));
    };
    let (plan, now, rendering) = (target.plan, engine.now(), setup.clone());
    let outcome = move |next: &_| {
        let response = wait.response(&rendering.tool_context, plan, next, now)?;
        Some(to_json(&completed(&rendering, NAME, response)))
    };
    let attempt = engine.next_step_of_task(caller, task.id, target, outcome);
    match attempt.await {
        Err(why) => error_status(setup, NAME, why),
        Ok(task) => match task.phase {
            TaskPhase::Ended(_) => Ok(Status::Ended(task)),
            TaskPhase::Active(_) => Ok(Status::Progress(TaskProgress::Working {
                message: "waiting for a step".to_owned(),
            })),
        },
    }
}

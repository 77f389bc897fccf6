//! `extract_data` as a task: a job that one server runs at a time, under a lease in the task's state.
//!
//! The server that created the task runs the call and renews the lease. If it stops, the lease
//! expires, and the server that receives the next poll runs the call again: an extraction has no
//! effect before its result is stored. Each start is counted before the call runs. A call during
//! which the server stopped [`MAX_STARTS`] times is not started again.

use std::time::Duration;

use onward_core::Timestamp;
use onward_engine::{Caller, Task, TaskOutcome};
use rmcp::model::{CallToolResponse, ErrorData};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{Status, TaskProgress, completed, created, parse, to_json};
use crate::mcp::{Setup, protocol_error, result};
use crate::tools::extract_data::{Input, NAME};
use crate::tools::{self, Call, Tool, wait_for_shutdown};

/// How long a server may run the call without renewing the lease.
const LEASE: Duration = Duration::from_secs(30);
const RENEW_INTERVAL: Duration = Duration::from_secs(10);
const MAX_STARTS: u32 = 3;
/// Calls that run together in this process. Further ones wait.
static RUNNING: Semaphore = Semaphore::const_new(16);

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    arguments: Value,
    starts: u32,
    /// End of the lease, in milliseconds since 1970.
    leased_until: i64,
}

impl State {
    fn extend_lease(&mut self, now: Timestamp) {
        let lease = i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX);
        self.leased_until = now.as_millis().saturating_add(lease);
    }
}

pub(super) async fn call(
    setup: &Setup,
    caller: &Caller,
    tool: &'static Tool,
    arguments: Value,
) -> Result<CallToolResponse, ErrorData> {
    let context = &setup.tool_context;
    let call = Call::parse(tool, arguments.clone());
    let issues = call.input::<Input>().err();
    let is_allowed = context.engine.may_extract(caller).is_ok();
    if issues.is_some() || !is_allowed {
        let outcome = call.run(context, caller).await;
        call.log(context, caller, &outcome);
        return Ok(result(setup, outcome).into());
    }
    let mut state = State {
        arguments,
        starts: 1,
        leased_until: 0,
    };
    state.extend_lease(context.engine.now());
    let task = context
        .engine
        .create_task(caller, NAME, None, to_json(&state))
        .await
        .map_err(protocol_error)?;
    call.log(
        context,
        caller,
        &Ok(json!({ "taskId": task.id.to_string() })),
    );
    start(setup, caller, task.clone(), state);
    Ok(created(&task))
}

pub(super) async fn status(
    setup: &Setup,
    caller: &Caller,
    task: &Task,
    state: &Value,
) -> Result<Status, ErrorData> {
    let mut state: State = parse(state)?;
    let engine = &setup.tool_context.engine;
    let now = engine.now();
    let working = TaskProgress::Working {
        message: "extracting".to_owned(),
    };
    if now.as_millis() < state.leased_until {
        return Ok(Status::Progress(working));
    }
    if state.starts >= MAX_STARTS {
        let message = format!("the server stopped {MAX_STARTS} times during this call");
        let error = ErrorData::internal_error(message, None);
        return Ok(Status::Progress(TaskProgress::Failed(error)));
    }
    state.starts += 1;
    state.extend_lease(now);
    let leased = engine.change_task(caller, task, to_json(&state)).await;
    // Without the lease, another server has started the call.
    if let Some(task) = leased.map_err(protocol_error)? {
        start(setup, caller, task, state);
    }
    Ok(Status::Progress(working))
}

/// Runs the call in the background.
fn start(setup: &Setup, caller: &Caller, task: Task, state: State) {
    let (setup, caller) = (setup.clone(), caller.clone());
    tokio::spawn(async move {
        let closing = setup.tool_context.closing.clone();
        tokio::select! {
            () = run(&setup, &caller, task, state) => {}
            () = wait_for_shutdown(closing) => {}
        }
    });
}

/// Runs the call while renewing the lease, and stores the result. Stops if the task has ended or
/// another server has the lease.
async fn run(setup: &Setup, caller: &Caller, mut task: Task, mut state: State) {
    let context = &setup.tool_context;
    let Some(tool) = tools::find(NAME) else {
        return;
    };
    let arguments = state.arguments.clone();
    let call = async {
        let _permit = RUNNING.acquire().await;
        tools::call(context, caller, tool, arguments).await
    };
    tokio::pin!(call);
    loop {
        tokio::select! {
            outcome = &mut call => {
                let outcome = TaskOutcome::Completed(to_json(&completed(setup, NAME, outcome)));
                // If the result cannot be stored, the lease expires and the call runs again.
                drop(context.engine.end_task(caller, task.id, outcome).await);
                return;
            }
            () = tokio::time::sleep(RENEW_INTERVAL) => {
                state.extend_lease(context.engine.now());
                match context.engine.change_task(caller, &task, to_json(&state)).await {
                    Ok(Some(renewed)) => task = renewed,
                    Ok(None) => return,
                    // The database is unavailable; retry at the next interval.
                    Err(_) => {}
                }
            }
        }
    }
}

//! The suite's tools whose calls are tasks. The engine stores the tasks, checks their callers and
//! keeps their outcomes. The product's handler returns ended tasks and cancels tasks. This file
//! supplies the status of a task that has not ended, from the arguments, the answers and the time.

use std::time::Duration;

use onward::McpServer;
use onward_engine::{Caller, Engine, Error, Task, TaskOutcome, TaskPhase};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, CreateTaskResult, DetailedTask,
    ErrorData, GetTaskResult, InputRequests, InputRequiredResult, InputResponses, TaskPayload,
    TaskStatus, Tool,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use crate::results::{convert, text_result};

const GREET: &str = "greet";
const SLOW: &str = "slow_compute";
const FAILING: &str = "failing_job";
const PROTOCOL_ERROR: &str = "protocol_error_job";
const CONFIRM: &str = "confirm_delete";
const MULTI: &str = "multi_input";
const COMPOSED: &str = "test_tool_with_task";

pub(crate) fn tools() -> Vec<Tool> {
    let names = [
        GREET,
        SLOW,
        FAILING,
        PROTOCOL_ERROR,
        CONFIRM,
        MULTI,
        COMPOSED,
    ];
    let all = names.map(|name| {
        json!({ "name": name, "description": "Conformance test", "inputSchema": { "type": "object" } })
    });
    all.into_iter()
        .filter_map(|tool| convert(tool).ok())
        .collect()
}

/// `None` if the name is not one of these tools.
pub(crate) async fn call(
    server: &McpServer,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let name: &str = &request.name;
    if !tools().iter().any(|tool| tool.name == name) {
        return None;
    }
    let arguments = request.arguments.clone().unwrap_or_default();
    if name == GREET {
        return Some(text_result(&format!(
            "Hello, {}!",
            text(&arguments, "name")
        )));
    }
    let client = context.client_capabilities().unwrap_or_default();
    if !client.supports_tasks() {
        if name == SLOW {
            tokio::time::sleep(seconds(&arguments)).await;
            return Some(text_result("computed"));
        }
        let required = ClientCapabilities::builder().enable_tasks().build();
        return Some(Err(ErrorData::missing_required_client_capability(required)));
    }
    let mut arguments = arguments;
    if name == COMPOSED {
        let answers = request.input_responses.clone().unwrap_or_default();
        let Some(answer) = answers.get("user_name") else {
            let requests = requests(&["user_name"]);
            return Some(Ok(CallToolResponse::InputRequired(
                InputRequiredResult::new(Some(requests), None),
            )));
        };
        let given = answer.pointer("/content/name").cloned();
        arguments.insert("name".to_owned(), given.unwrap_or_default());
    }
    Some(create(server, name, arguments, context).await)
}

async fn create(
    server: &McpServer,
    tool: &str,
    arguments: Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let caller = server.caller(&context.extensions)?;
    let state = json!({ "arguments": arguments, "answers": {} });
    let task = server.engine().create_task(&caller, tool, None, state);
    let task = task.await.map_err(internal)?;
    Ok(CallToolResponse::Task(CreateTaskResult::new(listed(&task))))
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn seconds(arguments: &Map<String, Value>) -> Duration {
    let seconds = arguments.get("seconds").and_then(Value::as_u64);
    Duration::from_secs(seconds.unwrap_or_default().min(60))
}

/// Forms with one field.
fn requests(keys: &[&str]) -> InputRequests {
    let request = |key: &&str| {
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let params = json!({ "mode": "form", "message": key, "requestedSchema": schema });
        let request = json!({ "method": "elicitation/create", "params": params });
        Some(((*key).to_owned(), convert(request).ok()?))
    };
    keys.iter().filter_map(request).collect()
}

/// A task of one of these tools that has not ended.
struct ActiveTask<'a> {
    engine: &'a Engine,
    caller: Caller,
    task: Task,
    arguments: Map<String, Value>,
    answers: Map<String, Value>,
}

enum Progress {
    Working,
    InputRequired(InputRequests),
    Ended(TaskOutcome),
}

/// The status of a task of one of these tools. `None` if the product's handler must respond: the
/// task has ended, or belongs to a tool of the product, or does not exist.
pub(crate) async fn get(
    server: &McpServer,
    id: &str,
    context: &RequestContext<RoleServer>,
) -> Result<Option<GetTaskResult>, ErrorData> {
    let Some(active) = ActiveTask::find(server, id, context).await? else {
        return Ok(None);
    };
    let (payload, message) = match active.progress() {
        Progress::Working => (TaskPayload::Working, Some("running".to_owned())),
        Progress::InputRequired(input_requests) => {
            (TaskPayload::InputRequired { input_requests }, None)
        }
        Progress::Ended(outcome) => {
            let ActiveTask { engine, task, .. } = &active;
            let ended = engine.end_task(&active.caller, task.id, outcome);
            ended.await.map_err(internal)?;
            return Ok(None);
        }
    };
    let mut task = listed(&active.task);
    task.status_message = message;
    Ok(Some(GetTaskResult::new(DetailedTask::new(task, payload))))
}

/// Stores the answers to the open requests of a task of one of these tools. Returns false if the
/// product's handler must respond.
pub(crate) async fn update(
    server: &McpServer,
    id: &str,
    answers: &InputResponses,
    context: &RequestContext<RoleServer>,
) -> Result<bool, ErrorData> {
    let Some(mut active) = ActiveTask::find(server, id, context).await? else {
        return Ok(false);
    };
    let Progress::InputRequired(open) = active.progress() else {
        return Ok(true);
    };
    let answers = answers.iter().filter(|(key, _)| open.contains_key(*key));
    let answers = answers.map(|(key, answer)| (key.clone(), answer.clone()));
    active.answers.extend(answers);
    let state = json!({ "arguments": active.arguments, "answers": active.answers });
    let ActiveTask { engine, task, .. } = &active;
    let changed = engine.change_task(&active.caller, task, state);
    if changed.await.map_err(internal)?.is_none() {
        let message = "the task has changed; send the request again";
        return Err(ErrorData::internal_error(message, None));
    }
    Ok(true)
}

impl<'a> ActiveTask<'a> {
    async fn find(
        server: &'a McpServer,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Self>, ErrorData> {
        let Ok(id) = id.parse() else {
            return Ok(None);
        };
        let caller = server.caller(&context.extensions)?;
        let engine = server.engine();
        let task = match engine.task(&caller, id).await {
            Ok(task) => task,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(why) => return Err(internal(why)),
        };
        let TaskPhase::Active(state) = &task.phase else {
            return Ok(None);
        };
        if !tools().iter().any(|tool| tool.name == task.tool) {
            return Ok(None);
        }
        let object = |key: &str| state[key].as_object().cloned().unwrap_or_default();
        let (arguments, answers) = (object("arguments"), object("answers"));
        Ok(Some(Self {
            engine,
            caller,
            task,
            arguments,
            answers,
        }))
    }

    fn progress(&self) -> Progress {
        let tool = self.task.tool.as_str();
        let (duration, keys): (Duration, &[&str]) = match tool {
            SLOW => (seconds(&self.arguments), &[]),
            FAILING => (Duration::from_secs(1), &[]),
            CONFIRM => (Duration::ZERO, &["confirm"]),
            MULTI => (Duration::ZERO, &["first", "second"]),
            _ => (Duration::ZERO, &[]),
        };
        if self.engine.now().since(self.task.created_at) < duration {
            return Progress::Working;
        }
        let open = keys.iter().copied();
        let open: Vec<&str> = open
            .filter(|key| !self.answers.contains_key(*key))
            .collect();
        if !open.is_empty() {
            return Progress::InputRequired(requests(&open));
        }
        let outcome = if tool == PROTOCOL_ERROR {
            TaskOutcome::Failed(json!({ "code": -32603, "message": "fails on purpose" }))
        } else {
            let name = text(&self.arguments, "name");
            let content = json!([{ "type": "text", "text": format!("done {name}") }]);
            TaskOutcome::Completed(json!({
                "resultType": "complete", "content": content, "isError": tool == FAILING,
            }))
        };
        Progress::Ended(outcome)
    }
}

fn listed(task: &Task) -> rmcp::model::Task {
    rmcp::model::Task::new(
        task.id.to_string(),
        TaskStatus::Working,
        task.created_at.to_string(),
        task.updated_at.to_string(),
    )
    .with_poll_interval_ms(1_000)
}

fn internal(why: Error) -> ErrorData {
    ErrorData::internal_error(why.to_string(), None)
}

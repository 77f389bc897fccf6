//! The suite's tools whose calls are tasks. The product stores them, checks their callers and ends
//! them; this file supplies only their status, from the arguments, the answers and the time.

use std::time::Duration;

use onward::{McpServer, TaskFixtures, TaskProgress};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ErrorData, InputRequests,
    InputRequiredResult, Tool,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use crate::results::{complete_result, convert, text_result};

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
    let arguments = Value::Object(arguments);
    Some(server.create_fixture_task(name, arguments, context).await)
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

/// The status of the suite's tasks.
pub(crate) struct Fixtures;

impl TaskFixtures for Fixtures {
    fn progress(
        &self,
        tool: &str,
        arguments: &Value,
        answers: &Map<String, Value>,
        elapsed: Duration,
    ) -> TaskProgress {
        let empty = Map::new();
        let arguments = arguments.as_object().unwrap_or(&empty);
        let (duration, keys): (Duration, &[&str]) = match tool {
            SLOW => (seconds(arguments), &[]),
            FAILING => (Duration::from_secs(1), &[]),
            CONFIRM => (Duration::ZERO, &["confirm"]),
            MULTI => (Duration::ZERO, &["first", "second"]),
            _ => (Duration::ZERO, &[]),
        };
        if elapsed < duration {
            return TaskProgress::Working {
                message: "running".to_owned(),
            };
        }
        let open: Vec<&str> = keys
            .iter()
            .copied()
            .filter(|key| !answers.contains_key(*key))
            .collect();
        if !open.is_empty() {
            return TaskProgress::InputRequired(requests(&open));
        }
        let name = text(arguments, "name");
        let content = json!([{ "type": "text", "text": format!("done {name}") }]);
        let result = complete_result(json!({ "content": content, "isError": tool == FAILING }));
        match result {
            Ok(_) if tool == PROTOCOL_ERROR => {
                TaskProgress::Failed(ErrorData::internal_error("fails on purpose", None))
            }
            Ok(result) => TaskProgress::Completed(Box::new(result)),
            Err(error) => TaskProgress::Failed(error),
        }
    }
}

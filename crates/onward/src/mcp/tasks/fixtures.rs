//! Tasks of tools outside the product: the fixtures of the conformance suite. They supply a status;
//! storage, callers and outcomes are those of every task.

use onward_engine::{Caller, Task};
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ErrorData, InputResponses};
use rmcp::service::RequestContext;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{TaskFixtures, TaskProgress, changed_meanwhile, created, parse, to_json};
use crate::mcp::{Server, protocol_error};

#[derive(Serialize, Deserialize)]
struct State {
    arguments: Value,
    answers: Map<String, Value>,
}

/// The status of a task. An error does not end the task: a later version of Onward may know its tool.
pub(super) fn progress(
    server: &Server,
    task: &Task,
    state: &Value,
) -> Result<TaskProgress, ErrorData> {
    let Some(fixtures) = &server.fixtures else {
        let message = format!("tasks of `{}` are not supported", task.tool);
        return Err(ErrorData::internal_error(message, None));
    };
    let State { arguments, answers } = parse(state)?;
    let elapsed = server
        .setup
        .tool_context
        .engine
        .now()
        .since(task.created_at);
    Ok(fixtures.progress(&task.tool, &arguments, &answers, elapsed))
}

pub(super) async fn answer(
    server: &Server,
    caller: &Caller,
    task: &Task,
    state: &Value,
    answers: InputResponses,
) -> Result<(), ErrorData> {
    let TaskProgress::InputRequired(open) = progress(server, task, state)? else {
        return Ok(());
    };
    let mut state: State = parse(state)?;
    let answers = answers.into_iter();
    state
        .answers
        .extend(answers.filter(|(key, _)| open.contains_key(key)));
    let engine = &server.setup.tool_context.engine;
    let changed = engine.change_task(caller, task, to_json(&state)).await;
    match changed.map_err(protocol_error)? {
        Some(_) => Ok(()),
        None => Err(changed_meanwhile()),
    }
}

impl Server {
    /// Adds tools whose calls are tasks.
    #[must_use]
    pub fn with_task_fixtures(mut self, fixtures: impl TaskFixtures + 'static) -> Self {
        self.fixtures = Some(std::sync::Arc::new(fixtures));
        self
    }

    /// Creates the task of a call of a fixture.
    pub async fn create_fixture_task(
        &self,
        tool: &str,
        arguments: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        let state = json!({ "arguments": arguments, "answers": {} });
        let engine = &self.setup.tool_context.engine;
        let task = engine.create_task(&caller, tool, None, state).await;
        Ok(created(&task.map_err(protocol_error)?))
    }
}

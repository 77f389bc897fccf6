//! `request_user_review` as a task: the row of the task is stored with the review, and the status is
//! that of the review.
//!
//! While the review is open, the task is `input_required` with the review's form if the client shows
//! forms and the caller may decide, or with the review page if it has only URL mode, and `working`
//! otherwise. The user may decide in any interface.

use onward_core::StepId;
use onward_core::id::ReviewId;
use onward_engine::task::ReviewState;
use onward_engine::{Caller, Task};
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ErrorData, InputResponses};
use rmcp::service::RequestContext;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::to_json;
use super::{Status, TaskProgress, changed_meanwhile, completed, created, error_status, parse};
use crate::mcp::form::{self, FormAnswer};
use crate::mcp::{Server, Setup, protocol_error, result};
use crate::tools::request_user_review::{self, NAME};
use crate::tools::{Call, Tool, ToolError};
use crate::wire::review::{ReviewLinks, ReviewOutcome};

/// The state of the task. The engine writes the ids, with the review.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    step_id: String,
    review_id: String,
    /// The user dismissed the form or opened the page, and decides elsewhere.
    #[serde(default)]
    declined: bool,
}

impl State {
    fn ids(&self) -> Result<(StepId, ReviewId), ErrorData> {
        let ids = self.step_id.parse().ok().zip(self.review_id.parse().ok());
        ids.ok_or_else(|| ErrorData::internal_error("invalid ids in the task", None))
    }
}

pub(super) async fn call(
    setup: &Setup,
    caller: &Caller,
    tool: &'static Tool,
    arguments: Value,
) -> Result<CallToolResponse, ErrorData> {
    let context = &setup.tool_context;
    let id = context.engine.new_task_id();
    let call = Call::parse(tool, arguments);
    let run = move |context, caller, arguments| {
        request_user_review::run_as_task(context, caller, arguments, id)
    };
    let requested = call.run_with(context, caller, run).await;
    let requested = requested.map(|mut pending| {
        if let Value::Object(fields) = &mut pending {
            fields.insert("taskId".to_owned(), json!(id.to_string()));
        }
        pending
    });
    call.log(context, caller, &requested);
    if requested.is_err() {
        return Ok(result(setup, requested).into());
    }
    let task = context.engine.task(caller, id).await;
    Ok(created(&task.map_err(protocol_error)?))
}

pub(super) async fn status(
    setup: &Setup,
    caller: &Caller,
    context: &RequestContext<RoleServer>,
    state: &Value,
) -> Result<Status, ErrorData> {
    let state: State = parse(state)?;
    let (step, review) = state.ids()?;
    let tool_context = &setup.tool_context;
    let found = tool_context.engine.review_state(caller, step, review).await;
    let outcome = match found {
        Err(why) => return error_status(setup, NAME, why),
        Ok(ReviewState::Open(review)) => {
            let form = form::input_requests(setup, caller, context, &review);
            return Ok(Status::Progress(match form.filter(|_| !state.declined) {
                Some(requests) => TaskProgress::InputRequired(requests),
                None => TaskProgress::Working {
                    message: waiting_message(
                        &tool_context.dashboard.review_links(),
                        &state.review_id,
                    ),
                },
            }));
        }
        Ok(ReviewState::Decided(decision, response)) => {
            ReviewOutcome::decided(state.review_id, decision, &response)
        }
        Ok(ReviewState::Withdrawn(current)) => {
            let (sheet, step) = *current;
            ReviewOutcome::current(state.review_id, &sheet, &step, None, &ReviewLinks::None)
        }
    };
    let outcome = serde_json::to_value(outcome).map_err(|_| ToolError::internal(NAME));
    let result = completed(setup, NAME, outcome);
    Ok(Status::Progress(TaskProgress::Completed(result)))
}

fn waiting_message(links: &ReviewLinks, review: &str) -> String {
    let place = links.url(review).or_else(|| links.command(review));
    match place {
        Some(place) => format!("waiting for a decision: {place}"),
        None => "waiting for a decision".to_owned(),
    }
}

/// Submits the user's decision, if the form is open.
pub(super) async fn answer(
    server: &Server,
    caller: &Caller,
    context: &RequestContext<RoleServer>,
    task: &Task,
    state: &Value,
    answers: InputResponses,
) -> Result<(), ErrorData> {
    let setup = &server.setup;
    let Status::Progress(TaskProgress::InputRequired(_)) =
        status(setup, caller, context, state).await?
    else {
        return Ok(());
    };
    let mut state: State = parse(state)?;
    let (step, _) = state.ids()?;
    match form::answer(setup, caller, context, step, answers).await {
        Ok(FormAnswer::Missing | FormAnswer::Decided) => Ok(()),
        Ok(FormAnswer::Elsewhere) => {
            state.declined = true;
            let engine = &setup.tool_context.engine;
            let changed = engine.change_task(caller, task, to_json(&state)).await;
            let changed = changed.map_err(protocol_error)?;
            changed.map(|_| ()).ok_or_else(changed_meanwhile)
        }
        Err(error) => {
            let details = error.to_json(&setup.tool_context);
            Err(ErrorData::invalid_params(error.message, Some(details)))
        }
    }
}

//! `get_next_project_step`: claims the most urgent step of a project, as `get_next_step` with
//! `projectKey` over MCP.

use onward_core::policy::MAX_SESSION_ID;
use onward_core::routing::{MAX_LABEL, MAX_LABELS, MAX_PROJECT_KEY};
use onward_engine::Caller;
use onward_engine::next_step::Worker;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError, get_next_step, params};
use crate::wire::next::NextStep;

pub(super) struct GetNextProjectStep;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Project
    #[schemars(length(min = 1, max = MAX_PROJECT_KEY))]
    project_key: String,
    /// Only steps without other labels
    #[schemars(length(max = MAX_LABELS), inner(length(min = 1, max = MAX_LABEL)))]
    labels: Option<Vec<String>>,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
}

impl Spec for GetNextProjectStep {
    type Input = Input;
    type Output = NextStep;

    const NAME: &'static str = "get_next_project_step";
    const TITLE: &'static str = "Get the next step of a project";
    const DESCRIPTION: &'static str = "Claim the most urgent ready step of all plans of a project.";
    const HINTS: Hints = Hints::ADDITIVE;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<NextStep, ToolError> {
        let worker = Worker {
            session: params::session_id(input.session_id),
            labels: input.labels,
            include_stalled: false,
        };
        let project = &input.project_key;
        let next = context.engine.next_step_of_project(caller, project, worker);
        Ok(get_next_step::response(context, None, &next.await?))
    }
}

//! `get_next_step`: claims the next step of a plan, or reports why no step is available.

use onward_core::PlanId;
use onward_core::policy::MAX_SESSION_ID;
use onward_core::routing::{MAX_LABEL, MAX_LABELS, MAX_PROJECT_KEY};
use onward_engine::Caller;
use onward_engine::next_step::Worker;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::next::NextStep;

pub(crate) const NAME: &str = "get_next_step";

/// The longest wait in milliseconds.
const MAX_WAIT_MS: u32 = 60_000;

pub(super) struct GetNextStep;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Plan id
    plan_id: Option<String>,
    /// Instead of `planId`: the most urgent step of the project
    #[schemars(length(min = 1, max = MAX_PROJECT_KEY))]
    project_key: Option<String>,
    /// Only steps without other labels
    #[schemars(length(max = MAX_LABELS), inner(length(min = 1, max = MAX_LABEL)))]
    labels: Option<Vec<String>>,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
    /// First resume a stalled step of another session
    include_stalled: Option<bool>,
    /// Wait for a step or a review decision
    #[schemars(range(max = MAX_WAIT_MS))]
    wait_ms: Option<u32>,
}

impl Spec for GetNextStep {
    type Input = Input;
    type Output = NextStep;

    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Get the next step (task, todo) of a plan";
    const DESCRIPTION: &'static str = "Claim the next step (task, todo) of a plan. Follow its \
        `instructions`, then call `submit_step_result` with its `claimToken`. If no step is \
        available, `status` is the reason.";
    const HINTS: Hints = Hints::ADDITIVE;
    const IN_CORE: bool = true;
    // The hint of a response without a step names it.
    const UNLISTED_IN_CORE: &'static [&'static str] = &[
        "/properties/waitMs",
        "/properties/projectKey",
        "/properties/labels",
    ];
    const REQUIRED_IN_CORE: &'static [&'static str] = &["planId"];

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<NextStep, ToolError> {
        let worker = Worker {
            session: params::session_id(input.session_id),
            labels: input.labels,
            include_stalled: input.include_stalled.unwrap_or(false),
        };
        let engine = &context.engine;
        match (input.plan_id, input.project_key) {
            (Some(plan), None) => {
                let plan = params::plan_id(&plan)?;
                let next = engine.next_step_for(caller, plan, worker);
                Ok(response(context, Some(plan), &next.await?))
            }
            (None, Some(project)) => {
                let of_plan = [
                    ("includeStalled", worker.include_stalled),
                    ("waitMs", input.wait_ms.is_some_and(|wait| wait > 0)),
                ];
                if let Some((name, _)) = of_plan.iter().find(|(_, is_set)| *is_set) {
                    return Err(ToolError::invalid(*name, "requires `planId`"));
                }
                let next = engine
                    .next_step_of_project(caller, &project, worker)
                    .await?;
                Ok(response(context, None, &next))
            }
            (None, None) => Err(ToolError::invalid(
                "planId",
                "is required unless `projectKey` is set",
            )),
            (Some(_), Some(_)) => Err(ToolError::invalid(
                "projectKey",
                "cannot be combined with `planId`",
            )),
        }
    }
}

/// The response in the terms of the caller's interface.
pub(crate) fn response(
    context: &ToolContext,
    plan: Option<PlanId>,
    next: &onward_engine::next_step::NextStep,
) -> NextStep {
    let next = NextStep::new(plan, next);
    next.for_caller(context.interface, &context.dashboard.review_links())
}

//! `get_research_context`: returns the context for resuming a plan in a new session.
//!
//! The first call with a new `sessionId` records that the session resumed the plan. The tool is
//! therefore idempotent but not read-only.

use onward_core::policy::MAX_SESSION_ID;
use onward_engine::Caller;
use onward_engine::context::MAX_CHARS;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::context::PlanContext;

pub(super) struct GetResearchContext;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Plan id
    plan_id: String,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
    /// Response size limit; default 40000
    #[schemars(range(min = 1, max = MAX_CHARS))]
    max_chars: Option<usize>,
}

impl Spec for GetResearchContext {
    type Input = Input;
    type Output = PlanContext;

    const NAME: &'static str = "get_research_context";
    const TITLE: &'static str = "Get the context to resume a plan";
    const DESCRIPTION: &'static str = "Read what you need to resume a plan of another session: \
        results, artifacts, open review, interrupted steps. Then follow `next`.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: true,
        destructive: false,
    };
    const HAS_NOTICE: bool = true;
    const IN_CORE: bool = true;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<PlanContext, ToolError> {
        let plan = params::plan_id(&input.plan_id)?;
        let session = params::session_id(input.session_id);
        let loaded = context
            .engine
            .plan_context(caller, plan, session, input.max_chars);
        Ok(PlanContext::new(loaded.await?, context.base_url.as_deref()))
    }
}

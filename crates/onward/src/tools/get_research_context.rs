//! `get_research_context`: everything that a new session needs to take a plan up.
//!
//! With a session that the plan has not seen it notes that this one takes it up, once; so it does not
//! only read, though asking again changes nothing more.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::context::PlanContext;

pub(super) struct GetResearchContext;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
    session_id: Option<String>,
    /// Default 40,000
    #[schemars(range(min = 1, max = 1_000_000))]
    max_chars: Option<usize>,
}

impl Spec for GetResearchContext {
    type Input = Input;
    type Output = PlanContext;

    const NAME: &'static str = "get_research_context";
    const TITLE: &'static str = "Get a plan's context";
    const DESCRIPTION: &'static str = "Read all you need to take up a plan that another session \
        began. Do then what `next` says.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: true,
        destructive: false,
    };
    const IN_CORE: bool = true;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<PlanContext, Refused> {
        let plan = given::plan(&input.plan_id)?;
        let session = given::session(input.session_id);
        let context = desk
            .engine
            .plan_context(caller, plan, session, input.max_chars);
        Ok(PlanContext::of(context.await?, desk.base_url.as_deref()))
    }
}

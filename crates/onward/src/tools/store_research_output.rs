//! `store_research_output`: stores a plan output, one version per call.

use onward_core::policy::{MAX_ARTIFACT_TITLE, MAX_CONTENT_BYTES};
use onward_engine::Caller;
use onward_engine::research::NewOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::research::Output;

/// Checked by the engine as well.
const MAX_MEDIA_TYPE: usize = 200;

pub(super) struct StoreResearchOutput;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Plan id
    plan_id: String,
    /// Title; an existing title gets a new version
    #[schemars(length(min = 1, max = MAX_ARTIFACT_TITLE))]
    title: String,
    /// Text to store; at most 1 MiB in UTF-8
    #[schemars(length(min = 1, max = MAX_CONTENT_BYTES))]
    content: String,
    /// Media type; default text/markdown
    #[schemars(length(min = 1, max = MAX_MEDIA_TYPE))]
    media_type: Option<String>,
}

impl Spec for StoreResearchOutput {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "store_research_output";
    const TITLE: &'static str = "Store a plan output";
    const DESCRIPTION: &'static str = "Store the output of a plan, such as its final report. \
        Call it when `get_next_step` returns plan_complete.";
    const HINTS: Hints = Hints::ADDITIVE;
    const IN_CORE: bool = true;
    const UNLISTED_IN_CORE: &'static [&'static str] = &["/properties/mediaType"];

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<Output, ToolError> {
        let output = NewOutput {
            plan: params::plan_id(&input.plan_id)?,
            title: input.title,
            content: input.content,
            media_type: input.media_type,
        };
        let stored = context.engine.store_output(caller, output).await?;
        Ok(Output::new(&stored))
    }
}

//! `store_research_output`: keeps what a plan delivers, a new version each time.

use onward_engine::Caller;
use onward_engine::research::Deliverable;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Desk, Hints, Refused, Spec, given};
use crate::wire::research::Output;

pub(super) struct StoreResearchOutput;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    plan_id: String,
    #[schemars(length(min = 1, max = 500))]
    title: String,
    /// At most 1 MiB
    #[schemars(length(min = 1))]
    content: String,
    /// Default text/markdown
    media_type: Option<String>,
}

impl Spec for StoreResearchOutput {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "store_research_output";
    const TITLE: &'static str = "Store an output";
    const DESCRIPTION: &'static str =
        "Keep what a plan delivers. The same title again makes a new version.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Output, Refused> {
        let deliverable = Deliverable {
            plan: given::plan(&input.plan_id)?,
            title: input.title,
            content: input.content,
            media_type: input.media_type,
        };
        let delivered = desk.engine.store_output(caller, deliverable).await?;
        Ok(Output::of(&delivered))
    }
}

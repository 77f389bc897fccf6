//! `get_output`: reads a plan output in pages. Agents use `get_artifact`.

use onward_core::policy::MAX_CONTENT_BYTES;
use onward_engine::{Caller, TextId};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::{Hints, Spec, ToolContext, ToolError, get_artifact};
use crate::wire::text::{MAX_PAGE, Text};

pub(super) struct GetOutput;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    output_id: String,
    /// Previous `nextOffset`
    #[schemars(range(min = 0, max = MAX_CONTENT_BYTES))]
    offset: Option<u32>,
    /// Page size; default 20000
    #[schemars(range(min = 1, max = MAX_PAGE))]
    max_chars: Option<u32>,
}

impl Spec for GetOutput {
    type Input = Input;
    type Output = Text;

    const NAME: &'static str = "get_output";
    const TITLE: &'static str = "Read a plan output";
    const DESCRIPTION: &'static str = "Read the full text of a plan output, in pages.";
    const HINTS: Hints = Hints::READ_ONLY;
    const HAS_NOTICE: bool = true;
    const HAS_MAX_CHARS: bool = true;

    async fn run(context: &ToolContext, caller: &Caller, input: Input) -> Result<Text, ToolError> {
        let id = TextId::Output(get_artifact::output_id(&input.output_id)?);
        get_artifact::read(context, caller, id, input.offset, input.max_chars).await
    }
}

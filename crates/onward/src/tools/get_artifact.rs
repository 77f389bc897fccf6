//! `get_artifact`: reads a stored text in pages.

use onward_core::id::OutputId;
use onward_core::policy::MAX_CONTENT_BYTES;
use onward_engine::{Caller, Error, ObjectKind, TextId};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::text::{DEFAULT_PAGE, MAX_PAGE, Text};

pub(super) struct GetArtifact;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Artifact id or `keptArtifactId`
    artifact_id: Option<String>,
    /// Output id, instead of `artifactId`
    output_id: Option<String>,
    /// Previous `nextOffset`
    #[schemars(range(min = 0, max = MAX_CONTENT_BYTES))]
    offset: Option<u32>,
    /// Page size; default 20000
    #[schemars(range(min = 1, max = MAX_PAGE))]
    max_chars: Option<u32>,
}

impl Spec for GetArtifact {
    type Input = Input;
    type Output = Text;

    const NAME: &'static str = "get_artifact";
    const TITLE: &'static str = "Read a stored text";
    const DESCRIPTION: &'static str = "Read the full text of an artifact or output, in pages.";
    const HINTS: Hints = Hints::READ_ONLY;
    const IN_CORE: bool = true;
    const UNLISTED_IN_CORE: &'static [&'static str] = &["/properties/maxChars"];
    const HAS_NOTICE: bool = true;

    const HAS_MAX_CHARS: bool = true;

    async fn run(context: &ToolContext, caller: &Caller, input: Input) -> Result<Text, ToolError> {
        let id = match (input.artifact_id, input.output_id) {
            (Some(id), None) => TextId::Artifact(params::artifact_id(&id)?),
            (None, Some(id)) => TextId::Output(output_id(&id)?),
            (None, None) => {
                let message = "is required unless `outputId` is set";
                return Err(ToolError::invalid("artifactId", message));
            }
            (Some(_), Some(_)) => {
                let message = "cannot be combined with `artifactId`; send only one of them";
                return Err(ToolError::invalid("outputId", message));
            }
        };
        read(context, caller, id, input.offset, input.max_chars).await
    }
}

/// Reads a page of a text.
pub(crate) async fn read(
    context: &ToolContext,
    caller: &Caller,
    id: TextId,
    offset: Option<u32>,
    max_chars: Option<u32>,
) -> Result<Text, ToolError> {
    let offset = offset.unwrap_or(0);
    let limit = max_chars.unwrap_or(DEFAULT_PAGE);
    let page = context.engine.read_text(caller, id, offset, limit).await?;
    Ok(Text::new(page, offset))
}

pub(crate) fn output_id(id: &str) -> Result<OutputId, ToolError> {
    id.parse().map_err(|_| {
        let (kind, name) = (ObjectKind::Output, params::truncated(id));
        Error::NotFound { kind, name }.into()
    })
}

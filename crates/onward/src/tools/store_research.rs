//! `store_research`: stores an artifact (source, quote, note, finding) and indexes it for search.

use onward_core::policy::{
    MAX_ARTIFACT_TITLE, MAX_CLAIM_TOKEN, MAX_CONTENT_BYTES, MAX_SESSION_ID, MAX_URL,
};
use onward_engine::Caller;
use onward_engine::research::NewArtifact;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::params::{self, ArtifactKind};
use super::{Hints, Spec, ToolContext, ToolError};
use crate::wire::research::Artifact;

pub(super) struct StoreResearch;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Title for search results
    #[schemars(length(min = 1, max = MAX_ARTIFACT_TITLE))]
    title: String,
    /// Text to store; at most 1 MiB in UTF-8
    #[schemars(length(min = 1, max = MAX_CONTENT_BYTES))]
    content: String,
    /// note (default): own text; source: document; data: tables, values; finding: conclusion; quote:
    /// excerpt; late_result: rejected step result; other: anything else
    artifact_type: Option<ArtifactKind>,
    /// Plan it belongs to
    plan_id: Option<String>,
    /// Step it belongs to; counts as activity of that step
    step_id: Option<String>,
    /// Where it comes from
    #[schemars(length(max = MAX_URL))]
    source_url: Option<String>,
    /// Any further data; at most 64 KiB as JSON
    metadata: Option<Map<String, Value>>,
    /// From `get_next_step`
    #[schemars(length(min = 1, max = MAX_CLAIM_TOKEN))]
    claim_token: Option<String>,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
}

impl Spec for StoreResearch {
    type Input = Input;
    type Output = Artifact;

    const NAME: &'static str = "store_research";
    const TITLE: &'static str = "Store research";
    const DESCRIPTION: &'static str = "Store a source, quote, note or finding (memory across \
        sessions). `search_sources` finds it, even after its plan is deleted.";
    const HINTS: Hints = Hints::ADDITIVE;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<Artifact, ToolError> {
        let artifact = NewArtifact {
            title: input.title,
            content: input.content,
            kind: input.artifact_type.map(|kind| kind.as_str().to_owned()),
            plan: input.plan_id.as_deref().map(params::plan_id).transpose()?,
            step: input.step_id.as_deref().map(params::step_id).transpose()?,
            source_url: input.source_url,
            metadata: input.metadata.unwrap_or_default(),
            token: params::claim_token(input.claim_token),
            session: params::session_id(input.session_id),
        };
        let stored = context.engine.store_research(caller, artifact).await?;
        Ok(Artifact::new(stored))
    }
}

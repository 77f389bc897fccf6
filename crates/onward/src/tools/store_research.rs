//! `store_research`: keeps something that was found or made, so that it can be searched.

use onward_engine::Caller;
use onward_engine::research::Finding;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::given::{self, ArtifactKind};
use super::{Desk, Hints, Refused, Spec};
use crate::wire::research::Artifact;

pub(super) struct StoreResearch;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    #[schemars(length(min = 1, max = 500))]
    title: String,
    /// At most 1 MiB
    #[schemars(length(min = 1))]
    content: String,
    artifact_type: Option<ArtifactKind>,
    plan_id: Option<String>,
    step_id: Option<String>,
    source_url: Option<String>,
    metadata: Option<Map<String, Value>>,
    claim_token: Option<String>,
    session_id: Option<String>,
}

impl Spec for StoreResearch {
    type Input = Input;
    type Output = Artifact;

    const NAME: &'static str = "store_research";
    const TITLE: &'static str = "Store research";
    const DESCRIPTION: &'static str = "Keep a source, quote, note or finding, searchable at once \
        with `search_sources`, also after its plan is gone.";
    const HINTS: Hints = Hints::ADDS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Artifact, Refused> {
        let finding = Finding {
            title: input.title,
            content: input.content,
            kind: input.artifact_type.map(|kind| kind.as_str().to_owned()),
            plan: input.plan_id.as_deref().map(given::plan).transpose()?,
            step: input.step_id.as_deref().map(given::step).transpose()?,
            source_url: input.source_url,
            metadata: input.metadata.unwrap_or_default(),
            token: given::token(input.claim_token),
            session: given::session(input.session_id),
        };
        let stored = desk.engine.store_research(caller, finding).await?;
        Ok(Artifact::of(stored))
    }
}

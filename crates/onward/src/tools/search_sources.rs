//! `search_sources`: finds what was stored, by words.

use std::time::Instant;

use onward_engine::Caller;
use onward_engine::search::Wanted;
use schemars::JsonSchema;
use serde::Deserialize;

use super::given::{self, ArtifactKind};
use super::{Desk, Hints, Refused, Spec};
use crate::wire::search::Results;

pub(super) struct SearchSources;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    #[schemars(length(min = 1, max = 1_000))]
    query: String,
    /// Default 20
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u32>,
    plan_id: Option<String>,
    artifact_type: Option<ArtifactKind>,
    /// RFC 3339
    created_after: Option<String>,
    created_before: Option<String>,
}

impl Spec for SearchSources {
    type Input = Input;
    type Output = Results;

    const NAME: &'static str = "search_sources";
    const TITLE: &'static str = "Search sources";
    const DESCRIPTION: &'static str = "Find stored research and outputs by plain words, best first, before you search the web again.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Results, Refused> {
        let began = Instant::now();
        let wanted = Wanted {
            query: input.query,
            limit: input.limit,
            plan: input.plan_id.as_deref().map(given::plan).transpose()?,
            kind: input.artifact_type.map(|kind| kind.as_str().to_owned()),
            created_after: given::instant(input.created_after, "createdAfter")?,
            created_before: given::instant(input.created_before, "createdBefore")?,
        };
        let found = desk.engine.search(caller, wanted).await?;
        Ok(Results::of(found, began.elapsed()))
    }
}

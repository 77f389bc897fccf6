//! `search_sources`: full-text and, where embeddings are configured, semantic search.

use std::time::Instant;

use onward_core::policy::{MAX_SEARCH, MAX_TIME};
use onward_engine::Caller;
use onward_engine::search::{RESULT, SearchRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use super::params;
use super::{Hints, Spec, ToolContext, ToolError};
use crate::wire::search::Results;

pub(super) struct SearchSources;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Words to search for
    #[schemars(length(min = 1, max = MAX_SEARCH))]
    query: String,
    /// Number of results; default 20
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u32>,
    /// Only texts of this plan
    plan_id: Option<String>,
    /// result: of a step; note: own text; source: document; data: values; finding:
    /// conclusion; quote: excerpt; late_result: rejected result; other: anything else
    artifact_type: Option<Kind>,
    /// Created at or after this RFC 3339 time
    #[schemars(length(max = MAX_TIME))]
    created_after: Option<String>,
    /// Created before this time
    #[schemars(length(max = MAX_TIME))]
    created_before: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Result,
    Note,
    Source,
    Data,
    Finding,
    Quote,
    LateResult,
    Other,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Kind::Result => RESULT,
            Kind::Note => "note",
            Kind::Source => "source",
            Kind::Data => "data",
            Kind::Finding => "finding",
            Kind::Quote => "quote",
            Kind::LateResult => "late_result",
            Kind::Other => "other",
        }
    }
}

impl Spec for SearchSources {
    type Input = Input;
    type Output = Results;

    const NAME: &'static str = "search_sources";
    const TITLE: &'static str = "Search stored research";
    const DESCRIPTION: &'static str = "Search step results, research and plan outputs by keywords \
        and meaning, best match first. Call it before you search the web again.";
    const HINTS: Hints = Hints::READ_ONLY;
    const HAS_NOTICE: bool = true;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<Results, ToolError> {
        let started = Instant::now();
        let request = SearchRequest {
            query: input.query,
            limit: input.limit,
            plan: input.plan_id.as_deref().map(params::plan_id).transpose()?,
            kind: input.artifact_type.map(|kind| kind.as_str().to_owned()),
            created_after: params::timestamp(input.created_after, "createdAfter")?,
            created_before: params::timestamp(input.created_before, "createdBefore")?,
        };
        let found = context.engine.search(caller, request).await?;
        Ok(Results::new(found, started.elapsed()))
    }
}

//! The response of `search_sources` and `onward search`.

use std::time::Duration;

use onward_engine::Source;
use onward_engine::search::{self, SearchResult, SearchResults};
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of characters of the name of a plan.
const MAX_PLAN_NAME: usize = 80;

/// Search results, best match first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Results {
    results: Vec<Hit>,
    mode: Mode,
    took_ms: u64,
}

/// The search method.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Hybrid,
    Keyword,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Hit {
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_id: Option<String>,
    /// The step of a result; `get_research_context` with it and `part: resultSummary` returns the whole
    #[serde(skip_serializing_if = "Option::is_none")]
    step_id: Option<String>,
    title: String,
    snippet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_url: Option<String>,
    score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyword_rank: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    semantic_rank: Option<u32>,
    created_at: String,
}

impl Results {
    pub(crate) fn new(searched: SearchResults, took: Duration) -> Self {
        Self {
            results: searched.results.into_iter().map(Hit::new).collect(),
            mode: match searched.mode {
                search::Mode::Hybrid => Mode::Hybrid,
                search::Mode::Keyword => Mode::Keyword,
            },
            took_ms: super::ms(took),
        }
    }
}

impl Hit {
    fn new(result: SearchResult) -> Self {
        let hit = result.hit;
        let (artifact, output, step) = match hit.source {
            Source::Artifact(id) => (Some(id.to_string()), None, None),
            Source::Output(id) => (None, Some(id.to_string()), None),
            Source::Result(id) => (None, None, Some(id.to_string())),
        };
        Self {
            artifact_id: artifact,
            output_id: output,
            step_id: step,
            title: super::line(hit.title),
            snippet: result.snippet,
            artifact_type: hit.kind,
            plan_id: hit.plan.map(|plan| plan.to_string()),
            plan_name: result.plan_name.map(|name| short_name(&name)),
            source_url: hit.source_url,
            score: result.score,
            keyword_rank: result.keyword_rank,
            semantic_rank: result.semantic_rank,
            created_at: super::at(hit.created_at),
        }
    }
}

/// The beginning of a plan's name.
fn short_name(name: &str) -> String {
    super::line(name.chars().take(MAX_PLAN_NAME).collect::<String>())
}

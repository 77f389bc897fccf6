//! What was found: the answer of `search_sources` and of `onward search`.

use std::time::Duration;

use onward_engine::Source;
use onward_engine::search::{self, Found, Searched};
use schemars::JsonSchema;
use serde::Serialize;

/// All that was found, the best first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Results {
    results: Vec<Hit>,
    mode: Mode,
    took_ms: u64,
}

/// By what it was found.
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
    title: String,
    snippet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
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
    pub(crate) fn of(searched: Searched, took: Duration) -> Self {
        Self {
            results: searched.found.into_iter().map(Hit::of).collect(),
            mode: match searched.mode {
                search::Mode::Hybrid => Mode::Hybrid,
                search::Mode::Keyword => Mode::Keyword,
            },
            took_ms: super::ms(took),
        }
    }
}

impl Hit {
    fn of(found: Found) -> Self {
        let hit = found.hit;
        let (artifact, output) = match hit.source {
            Source::Artifact(id) => (Some(id.to_string()), None),
            Source::Output(id) => (None, Some(id.to_string())),
        };
        Self {
            artifact_id: artifact,
            output_id: output,
            title: hit.title,
            snippet: found.snippet,
            artifact_type: hit.kind,
            plan_id: hit.plan.map(|plan| plan.to_string()),
            source_url: hit.source_url,
            score: found.score,
            keyword_rank: found.keyword_rank,
            semantic_rank: found.semantic_rank,
            created_at: super::at(hit.created_at),
        }
    }
}

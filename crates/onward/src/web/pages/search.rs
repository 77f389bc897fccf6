//! `/search`: full-text, semantic and combined results side by side, and the state of the index.

use std::time::Instant;

use askama::Template;
use onward_engine::search::{Mode, SearchRequest, SearchResult, SearchResults};
use onward_engine::{Artifact, Source};

use super::format::{RelativeTime, one_line};
use super::layout::{Layout, Section, render};
use super::{PageResult, Visit};
use crate::output::format;

/// Maximum results per column.
const MAX_RESULTS: usize = 20;

#[derive(Template)]
#[template(path = "search.html")]
struct Search {
    layout: Layout,
    query: String,
    kinds: Vec<(&'static str, bool)>,
    results: Option<Results>,
    index: IndexState,
}

struct Results {
    mode: &'static str,
    summary: String,
    columns: [Column; 3],
}

struct Column {
    id: &'static str,
    name: &'static str,
    rows: Vec<Row>,
    empty: String,
}

struct Row {
    rank: u32,
    link: String,
    title: String,
    kind: String,
    snippet: String,
    figures: String,
}

struct IndexState {
    chunks: u64,
    embedded: u64,
    pending: u64,
    rejected: u64,
    model: Option<String>,
    last_error: Option<(RelativeTime, String)>,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    let query = visit.fields.get("q").unwrap_or_default().to_owned();
    let kind = visit.fields.get("type").map(str::to_owned);
    let kind = kind.filter(|kind| Artifact::KINDS.contains(&kind.as_str()));
    let started = Instant::now();
    let searched = if query.is_empty() {
        None
    } else {
        let wanted = SearchRequest {
            query: query.clone(),
            kind: kind.clone(),
            ..SearchRequest::default()
        };
        Some(engine.search_all_candidates(&visit.caller, wanted).await?)
    };
    let duration = format::duration(started.elapsed());
    // Read after the search, which may have recorded a model error.
    let health = engine.search_health(&visit.caller).await?;
    let now = engine.now();
    let index = IndexState {
        chunks: health.index.chunks,
        embedded: health.index.embedded,
        pending: health.index.waiting,
        rejected: health.index.refused,
        model: health.model.map(|model| one_line(&model, 100)),
        last_error: health.last_failure.map(|trouble| {
            (
                RelativeTime::new(trouble.at, now),
                one_line(&trouble.error, 300),
            )
        }),
    };
    render(&Search {
        layout: visit.layout("Search", Section::Search).await?,
        query,
        kinds: Artifact::KINDS
            .iter()
            .map(|name| (*name, kind.as_deref() == Some(*name)))
            .collect(),
        results: searched.map(|searched| results(searched, &duration, &index)),
        index,
    })
}

fn results(searched: SearchResults, duration: &str, index: &IndexState) -> Results {
    let number = u64::try_from(searched.results.len()).unwrap_or(u64::MAX);
    let number = format::count(number, "result", "results");
    let (mode, description) = match searched.mode {
        Mode::Hybrid => ("hybrid", "text and semantic search"),
        Mode::Keyword => ("keyword", "text search only"),
    };
    let summary = format!("{number}, {description} ({duration})");
    let found = &searched.results;
    let keyword = ranked(
        found,
        |found| found.keyword_rank,
        |_, rank| format!("score {:.4}", 1.0 / (60.0 + f64::from(rank))),
    );
    let semantic = ranked(
        found,
        |found| found.semantic_rank,
        |found, _| format!("similarity {:.3}", found.similarity.unwrap_or_default()),
    );
    let position = |found: &SearchResult| {
        (1u32..)
            .zip(&searched.results)
            .find(|(_, other)| *other == found)
    };
    let fused = ranked(
        found,
        |found| position(found).map(|(rank, _)| rank),
        |found, _| {
            let rank = |rank: Option<u32>| rank.map_or("–".to_owned(), |rank| rank.to_string());
            format!(
                "score {:.4} · text rank {} · semantic rank {}",
                found.score,
                rank(found.keyword_rank),
                rank(found.semantic_rank)
            )
        },
    );
    let no_matches = "No matches.".to_owned();
    let no_semantic_matches = match (searched.mode, &index.model, &index.last_error) {
        (Mode::Keyword, None, _) => {
            "Semantic search is off. Set [embeddings] in config.toml.".to_owned()
        }
        (Mode::Keyword, Some(_), Some((_, error))) => {
            format!("The embedding model is unavailable: {error}.")
        }
        (Mode::Keyword, Some(_), None) => {
            "The model returned no embedding for this query.".to_owned()
        }
        (Mode::Hybrid, ..) => "Nothing is embedded yet.".to_owned(),
    };
    let column = |id, name, rows, empty: &str| Column {
        id,
        name,
        rows,
        empty: empty.to_owned(),
    };
    Results {
        mode,
        summary,
        columns: [
            column("keyword", "Text", keyword, &no_matches),
            column("semantic", "Semantic", semantic, &no_semantic_matches),
            column("fused", "Combined", fused, &no_matches),
        ],
    }
}

/// The results that have a rank, in rank order.
fn ranked(
    found: &[SearchResult],
    rank: impl Fn(&SearchResult) -> Option<u32>,
    figures: impl Fn(&SearchResult, u32) -> String,
) -> Vec<Row> {
    let mut ranked: Vec<(u32, &SearchResult)> = found
        .iter()
        .filter_map(|found| Some((rank(found)?, found)))
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let row = |(rank, found): (u32, &SearchResult)| {
        let (link, kind) = match found.hit.source {
            Source::Artifact(id) => (
                format!("/artifacts/{id}"),
                found.hit.kind.clone().unwrap_or_default(),
            ),
            Source::Output(id) => (format!("/outputs/{id}"), "output".to_owned()),
        };
        Row {
            rank,
            link,
            title: one_line(&found.hit.title, 120),
            kind: kind.replace('_', " "),
            snippet: one_line(&found.snippet, 300),
            figures: figures(found, rank),
        }
    };
    ranked.into_iter().take(MAX_RESULTS).map(row).collect()
}

//! `/search`: what was stored, by words, by what it means, and by both, side by side; and how much of it
//! can be found by what.

use std::time::Instant;

use askama::Template;
use onward_engine::search::{Found, Mode, Searched, Wanted};
use onward_engine::{Artifact, Source};

use super::frame::{Frame, Section, render};
use super::show::{When, gist};
use super::{Page, Visit};
use crate::output::words;

/// How many a column shows.
const SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "search.html")]
struct Search {
    frame: Frame,
    words: String,
    kinds: Vec<(&'static str, bool)>,
    answer: Option<Answer>,
    health: Health,
}

struct Answer {
    told: String,
    columns: [Column; 3],
}

struct Column {
    id: &'static str,
    name: &'static str,
    rows: Vec<Row>,
    nothing: String,
}

struct Row {
    rank: u32,
    link: String,
    title: String,
    kind: String,
    snippet: String,
    figures: String,
}

struct Health {
    chunks: u64,
    embedded: u64,
    waiting: u64,
    refused: u64,
    model: Option<String>,
    trouble: Option<(When, String)>,
}

pub(super) async fn show(visit: Visit) -> Page {
    let engine = &visit.site.engine;
    let query = visit.fields.get("q").unwrap_or_default().to_owned();
    let kind = visit.fields.get("type").map(str::to_owned);
    let kind = kind.filter(|kind| Artifact::KINDS.contains(&kind.as_str()));
    let began = Instant::now();
    let searched = match query.is_empty() {
        true => None,
        false => {
            let wanted = Wanted {
                query: query.clone(),
                kind: kind.clone(),
                ..Wanted::default()
            };
            Some(engine.search_both(&visit.caller, wanted).await?)
        }
    };
    let took = words::span(began.elapsed());
    // Asked after the search, which may have found out that the model is away.
    let health = engine.search_health(&visit.caller).await?;
    let now = engine.now();
    let health = Health {
        chunks: health.index.chunks,
        embedded: health.index.embedded,
        waiting: health.index.waiting,
        refused: health.index.refused,
        model: health.model.map(|model| gist(&model, 100)),
        trouble: health
            .trouble
            .map(|trouble| (When::new(trouble.at, now), gist(&trouble.why, 300))),
    };
    render(&Search {
        frame: visit.frame("Search", Section::Search).await?,
        words: query,
        kinds: Artifact::KINDS
            .iter()
            .map(|one| (*one, kind.as_deref() == Some(*one)))
            .collect(),
        answer: searched.map(|searched| answer(searched, &took, &health)),
        health,
    })
}

fn answer(searched: Searched, took: &str, health: &Health) -> Answer {
    let by = match searched.mode {
        Mode::Hybrid => "by words and by meaning",
        Mode::Keyword => "by words alone",
    };
    let told = format!("{} found {by}, in {took}.", searched.found.len());
    let found = &searched.found;
    let keyword = ranked(
        found,
        |found| found.keyword_rank,
        |_, rank| format!("score {:.4}", 1.0 / (60.0 + f64::from(rank))),
    );
    let semantic = ranked(
        found,
        |found| found.semantic_rank,
        |found, _| format!("likeness {:.3}", found.likeness.unwrap_or_default()),
    );
    let place = |found: &Found| {
        (1u32..)
            .zip(&searched.found)
            .find(|(_, other)| *other == found)
    };
    let fused = ranked(
        found,
        |found| place(found).map(|(rank, _)| rank),
        |found, _| {
            let rank = |rank: Option<u32>| rank.map_or("–".to_owned(), |rank| rank.to_string());
            format!(
                "score {:.4} · words {} · meaning {}",
                found.score,
                rank(found.keyword_rank),
                rank(found.semantic_rank)
            )
        },
    );
    let nothing = "Nothing that is stored holds these words.".to_owned();
    let unmeant = match (searched.mode, &health.model, &health.trouble) {
        (Mode::Keyword, None, _) => {
            "No model is configured: `[embeddings]` in `onward.toml` names one.".to_owned()
        }
        (Mode::Keyword, Some(_), Some((_, why))) => format!("The model does not answer: {why}."),
        (Mode::Keyword, Some(_), None) => "The model made nothing of these words.".to_owned(),
        (Mode::Hybrid, ..) => "Nothing is embedded yet.".to_owned(),
    };
    let column = |id, name, rows, nothing: &str| Column {
        id,
        name,
        rows,
        nothing: nothing.to_owned(),
    };
    Answer {
        told,
        columns: [
            column("keyword", "By words", keyword, &nothing),
            column("semantic", "By meaning", semantic, &unmeant),
            column("fused", "Both", fused, &nothing),
        ],
    }
}

/// What has a place in a ranking, in its order.
fn ranked(
    found: &[Found],
    rank: impl Fn(&Found) -> Option<u32>,
    figures: impl Fn(&Found, u32) -> String,
) -> Vec<Row> {
    let mut ranked: Vec<(u32, &Found)> = found
        .iter()
        .filter_map(|found| Some((rank(found)?, found)))
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let row = |(rank, found): (u32, &Found)| {
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
            title: gist(&found.hit.title, 120),
            kind: kind.replace('_', " "),
            snippet: gist(&found.snippet, 300),
            figures: figures(found, rank),
        }
    };
    ranked.into_iter().take(SHOWN).map(row).collect()
}

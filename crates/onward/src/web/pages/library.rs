//! `/library`: outputs, artifacts and results of all plans, newest first, or the results of a search in one
//! list. Skill runs are in `skills.rs`; the state of the search index is in Settings, About.

use std::collections::BTreeMap;
use std::time::Instant;

use askama::Template;
use onward_core::PlanId;
use onward_core::search::Query;
use onward_engine::search::{KINDS, Mode, RESULT, SearchRequest, SearchResult};
use onward_engine::{Excerpt, OutputExcerpt, ResultExcerpt, Source};

use super::format::{RelativeTime, one_line};
use super::layout::{Layout, Section, render};
use super::markdown_html::plain_text;
use super::{PageError, PageResult, Visit};
use crate::output::format;

/// Maximum number of results.
const MAX_RESULTS: u32 = 20;
/// Maximum number of recent outputs, of recent artifacts, and of recent results.
const MAX_RECENT: u32 = 20;
/// The type that selects outputs.
const OUTPUT: &str = "output";

#[derive(Template)]
#[template(path = "library.html")]
struct Library {
    layout: Layout,
    query: String,
    kinds: Vec<(&'static str, bool)>,
    summary: Option<Summary>,
    groups: Vec<Group>,
    is_filtered: bool,
    is_empty: bool,
}

/// The outcome of a search.
struct Summary {
    /// The kind of search, for tests and scripts.
    mode: &'static str,
    text: String,
    /// Why the search was by text only.
    note: Option<String>,
}

struct Group {
    title: &'static str,
    rows: Vec<Row>,
}

struct Row {
    link: String,
    title: String,
    kind: String,
    /// How the result was found.
    found_by: Vec<&'static str>,
    plan: Option<(String, String)>,
    at: RelativeTime,
    excerpt: Vec<Span>,
}

/// A part of an excerpt.
struct Span {
    text: String,
    is_match: bool,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let query = visit.fields.get("q").unwrap_or_default().to_owned();
    let kind = visit.fields.get("type").map(str::to_owned);
    let kinds = || [OUTPUT].into_iter().chain(KINDS);
    let kind = kind.filter(|kind| kinds().any(|known| known == kind));
    let (summary, groups) = if query.is_empty() {
        (None, recent(&visit, kind.as_deref()).await?)
    } else {
        let (summary, rows) = search(&visit, &query, kind.clone()).await?;
        let group = Group {
            title: "Results",
            rows,
        };
        (Some(summary), vec![group])
    };
    let is_empty = groups.iter().all(|group| group.rows.is_empty());
    render(&Library {
        layout: visit.layout("Library", Section::Library).await?,
        is_filtered: !query.is_empty() || kind.is_some(),
        query,
        kinds: kinds()
            .map(|name| (name, kind.as_deref() == Some(name)))
            .collect(),
        summary,
        groups: groups
            .into_iter()
            .filter(|group| !group.rows.is_empty())
            .collect(),
        is_empty,
    })
}

async fn recent(visit: &Visit, kind: Option<&str>) -> Result<Vec<Group>, PageError> {
    let (engine, caller) = (&visit.site.engine, &visit.caller);
    let outputs = engine.latest_outputs(caller, MAX_RECENT).await?;
    let artifacts = engine.latest_artifacts(caller, MAX_RECENT).await?;
    let results = engine.latest_results(caller, MAX_RECENT).await?;
    let plans = outputs.iter().map(|(plan, _)| Some(*plan));
    let plans = plans.chain(results.iter().map(|result| Some(result.plan)));
    let plans = plans.chain(artifacts.iter().map(|(plan, _)| *plan));
    let names = plan_names(visit, plans.flatten().collect()).await;
    let now = engine.now();
    let is_wanted = |name: &str| kind.is_none_or(|kind| kind == name);
    let output_row = |(plan, output): &(PlanId, OutputExcerpt)| Row {
        link: format!("/outputs/{}", output.id),
        title: one_line(&short_ids(&output.title), 120),
        kind: match output.version {
            1 => OUTPUT.to_owned(),
            version => format!("{OUTPUT}, version {version}"),
        },
        found_by: Vec::new(),
        plan: named(&names, Some(*plan)),
        at: RelativeTime::new(output.created_at, now),
        excerpt: highlight(&excerpt(&output.excerpt, 200), &[]),
    };
    let artifact_row = |(plan, artifact): &(Option<PlanId>, Excerpt)| Row {
        link: format!("/artifacts/{}", artifact.id),
        title: one_line(&short_ids(&artifact.title), 120),
        kind: artifact.kind.replace('_', " "),
        found_by: Vec::new(),
        plan: named(&names, *plan),
        at: RelativeTime::new(artifact.created_at, now),
        excerpt: highlight(&excerpt(&artifact.excerpt, 200), &[]),
    };
    let result_row = |result: &ResultExcerpt| Row {
        link: format!("/plans/{}/steps/{}", result.plan, result.step),
        title: one_line(&short_ids(&result.title), 120),
        kind: RESULT.to_owned(),
        found_by: Vec::new(),
        plan: named(&names, Some(result.plan)),
        at: RelativeTime::new(result.created_at, now),
        excerpt: highlight(&excerpt(&result.excerpt, 200), &[]),
    };
    let outputs = outputs.iter().filter(|_| is_wanted(OUTPUT));
    let results = results.iter().filter(|_| is_wanted(RESULT));
    let artifacts = artifacts
        .iter()
        .filter(|(_, artifact)| is_wanted(&artifact.kind));
    Ok(vec![
        Group {
            title: "Outputs",
            rows: outputs.map(output_row).collect(),
        },
        Group {
            title: "Artifacts",
            rows: artifacts.map(artifact_row).collect(),
        },
        Group {
            title: "Results",
            rows: results.map(result_row).collect(),
        },
    ])
}

async fn search(
    visit: &Visit,
    query: &str,
    kind: Option<String>,
) -> Result<(Summary, Vec<Row>), PageError> {
    let engine = &visit.site.engine;
    let started = Instant::now();
    let only_outputs = kind.as_deref() == Some(OUTPUT);
    let request = SearchRequest {
        query: query.to_owned(),
        limit: Some(MAX_RESULTS),
        kind: kind.filter(|_| !only_outputs),
        ..SearchRequest::default()
    };
    let searched = engine.search(&visit.caller, request).await?;
    let duration = format::duration(started.elapsed());
    // Read after the search, which may have recorded a model error.
    let health = engine.search_health(&visit.caller).await?;
    let (mode, by) = match searched.mode {
        Mode::Hybrid => ("hybrid", "text and meaning"),
        Mode::Keyword => ("keyword", "text only"),
    };
    let note = match (searched.mode, &health.model, &health.last_failure) {
        (Mode::Hybrid, ..) => None,
        (Mode::Keyword, None, _) => {
            Some("Search by meaning is off. Set [embeddings] in config.toml.".to_owned())
        }
        (Mode::Keyword, Some(_), Some(failure)) => Some(format!(
            "The embedding model is unavailable: {}.",
            one_line(&failure.error, 300)
        )),
        (Mode::Keyword, Some(_), None) => {
            Some("The model returned no embedding for this query.".to_owned())
        }
    };
    let is_output = |found: &&SearchResult| matches!(found.hit.source, Source::Output(_));
    let mut found: Vec<&SearchResult> = searched.results.iter().collect();
    found.retain(|found| !only_outputs || is_output(found));
    // Outputs first; the sort keeps the ranks.
    found.sort_by_key(|found| !is_output(found));
    let plans = found.iter().filter_map(|found| found.hit.plan);
    let names = plan_names(visit, plans.collect()).await;
    let now = engine.now();
    let parsed = Query::parse(query);
    let row = |found: &&SearchResult| {
        let (link, kind) = match found.hit.source {
            Source::Artifact(id) => {
                let kind = found.hit.kind.clone().unwrap_or_default();
                (format!("/artifacts/{id}"), kind.replace('_', " "))
            }
            Source::Output(id) => (format!("/outputs/{id}"), OUTPUT.to_owned()),
            Source::Result(id) => {
                let plan = found.hit.plan.map(|plan| plan.to_string());
                let plan = plan.unwrap_or_default();
                (format!("/plans/{plan}/steps/{id}"), RESULT.to_owned())
            }
        };
        let by = [
            found.keyword_rank.map(|_| "text"),
            found.semantic_rank.map(|_| "meaning"),
        ];
        Row {
            link,
            title: one_line(&short_ids(&found.hit.title), 120),
            kind,
            found_by: by.into_iter().flatten().collect(),
            plan: named(&names, found.hit.plan),
            at: RelativeTime::new(found.hit.created_at, now),
            excerpt: highlight(&excerpt(&found.snippet, 300), parsed.words()),
        }
    };
    let number = format::count(found.len() as u64, "result", "results");
    let summary = Summary {
        mode,
        text: format!("{number}, {by} ({duration})"),
        note,
    };
    Ok((summary, found.iter().map(row).collect()))
}

/// The names of plans. A plan that was deleted in the meantime has none.
async fn plan_names(visit: &Visit, plans: Vec<PlanId>) -> BTreeMap<PlanId, String> {
    let mut names = BTreeMap::new();
    for plan in plans {
        if names.contains_key(&plan) {
            continue;
        }
        if let Ok(sheet) = visit.site.engine.sheet(&visit.caller, plan).await {
            names.insert(plan, one_line(&sheet.brief.name, 80));
        }
    }
    names
}

fn named(names: &BTreeMap<PlanId, String>, plan: Option<PlanId>) -> Option<(String, String)> {
    let plan = plan?;
    let name = names.get(&plan)?;
    Some((format!("/plans/{plan}"), name.clone()))
}

/// An excerpt on one line without Markdown. It may start inside a block or have no line breaks, so
/// marks remain that the parser does not recognize.
fn excerpt(text: &str, max_columns: usize) -> String {
    let plain = plain_text(text);
    let parts = plain.split(|c: char| c.is_whitespace() || c == '|');
    let is_word = |part: &&str| part.contains(|c| !"#*->=:`~_".contains(c));
    let words: Vec<&str> = parts.filter(is_word).collect();
    one_line(&short_ids(&words.join(" ")), max_columns)
}

/// A text with the first eight characters of each UUID. The page of the item has the whole text.
fn short_ids(text: &str) -> String {
    let short = |word: &str| {
        let is_id = word.len() == 36 && word.parse::<PlanId>().is_ok();
        word.get(..8).filter(|_| is_id).unwrap_or(word).to_owned()
    };
    let words: Vec<String> = text.split(' ').map(short).collect();
    words.join(" ")
}

/// Splits a text into words that begin with a searched word, and the text between them.
fn highlight(text: &str, words: &[String]) -> Vec<Span> {
    let is_match = |word: &str| {
        let word = word.to_lowercase();
        words.iter().any(|wanted| word.starts_with(wanted.as_str()))
    };
    let mut spans: Vec<Span> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = first.is_alphanumeric();
        let end = rest.find(|c: char| c.is_alphanumeric() != is_word);
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        let is_match = is_word && is_match(part);
        match spans.last_mut() {
            Some(last) if last.is_match == is_match => last.text.push_str(part),
            _ => spans.push(Span {
                text: part.to_owned(),
                is_match,
            }),
        }
        rest = after;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_contain_no_markdown() {
        let text = "# Tariffs\n\n| tariff | cents |\n|---|---:|\n| **day** | 31.4 |\n\n- [one](https://x.y)";
        let plain = "Tariffs tariff cents day 31.4 one";
        assert_eq!(excerpt(text, 200), plain);
        // A snippet of a search has no line breaks.
        let snippet = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(excerpt(&snippet, 200), plain);
    }

    #[test]
    fn words_of_the_query_are_highlighted() {
        let words = vec!["heat".to_owned(), "pump".to_owned()];
        let spans = highlight("A Heat-pump: two pumps, über all", &words);
        let marked: Vec<&str> = spans
            .iter()
            .filter(|span| span.is_match)
            .map(|span| span.text.as_str())
            .collect();
        assert_eq!(marked, ["Heat", "pump", "pumps"]);
        let all: String = spans.iter().map(|span| span.text.as_str()).collect();
        assert_eq!(all, "A Heat-pump: two pumps, über all");
    }
}

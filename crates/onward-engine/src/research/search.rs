//! Hybrid search over artifacts, plan outputs and step results: full-text and semantic, the best chunk of each,
//! best first.
//!
//! Full-text search ranks chunks that contain all words above chunks that contain some of the rarer
//! words. The two rankings are combined by reciprocal rank only, because the scores of the two
//! databases are not comparable. Each ranking is limited to the requested number of results; with
//! longer ones, a result at the end of both would rank above the first result of one. If no
//! embedding of the query is available, the search is full-text only, and the response reports it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onward_core::policy::MAX_SEARCH;
use onward_core::role::Permission;
use onward_core::search::{Query, Vector, fuse_ranks, snippet};
use onward_core::{PlanId, Timestamp};
use onward_store::{Artifact, Hit, Near, Plans, Search, SearchIndex, Source, Tx};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// The kinds of artifacts, and the results of steps.
pub const KINDS: [&str; Artifact::KINDS.len() + 1] = {
    let [note, source, data, finding, quote, late_result, other] = Artifact::KINDS;
    [
        note,
        source,
        data,
        finding,
        quote,
        late_result,
        other,
        RESULT,
    ]
};
/// The kind of the results of steps.
pub const RESULT: &str = "result";
/// Default number of results.
pub const DEFAULT_LIMIT: u32 = 20;
/// Maximum number of results.
pub const MAX_LIMIT: u32 = 50;
/// Number of best chunks that are examined, and the number if these yield too few results: one long
/// text may have hundreds of chunks, and filters may exclude others.
const CANDIDATE_LIMITS: [u32; 2] = [1_000, u32::MAX];

/// A word that occurs in this many chunks is not searched on its own if the query also contains a
/// rarer word: ranking all its chunks takes too long.
const COMMON_WORD_CHUNKS: u32 = 2_000;

/// A search request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchRequest {
    /// The query text.
    pub query: String,
    /// Maximum number of results; the default is [`DEFAULT_LIMIT`].
    pub limit: Option<u32>,
    /// Only results of this plan.
    pub plan: Option<PlanId>,
    /// Only artifacts of this kind, or results: one of [`KINDS`].
    pub kind: Option<String>,
    /// Only results stored at or after this time.
    pub created_after: Option<Timestamp>,
    /// Only results stored before this time.
    pub created_before: Option<Timestamp>,
}

/// The kind of search that was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Full-text and semantic.
    Hybrid,
    /// Full-text only.
    Keyword,
}

/// Search results, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResults {
    /// The results.
    pub results: Vec<SearchResult>,
    /// The kind of search.
    pub mode: Mode,
}

/// A search result.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The artifact, output or result, and the chunk that matched.
    pub hit: Hit,
    /// The name of its plan.
    pub plan_name: Option<String>,
    /// An excerpt of the matching text.
    pub snippet: String,
    /// Rank in the full-text search, from 1.
    pub keyword_rank: Option<u32>,
    /// Rank in the semantic search, from 1.
    pub semantic_rank: Option<u32>,
    /// Cosine similarity to the query; 1 is identical.
    pub similarity: Option<f64>,
    /// Combined score.
    pub score: f64,
}

impl Engine {
    /// Searches artifacts, plan outputs and results.
    pub async fn search(
        &self,
        caller: &Caller,
        request: SearchRequest,
    ) -> Result<SearchResults, Error> {
        self.search_ranked(caller, request, false).await
    }

    /// [`Self::search`] with all results of either ranking, to compare them.
    pub async fn search_all_candidates(
        &self,
        caller: &Caller,
        request: SearchRequest,
    ) -> Result<SearchResults, Error> {
        self.search_ranked(caller, request, true).await
    }

    async fn search_ranked(
        &self,
        caller: &Caller,
        request: SearchRequest,
        all: bool,
    ) -> Result<SearchResults, Error> {
        caller.allow(Permission::Read)?;
        let limit = request.limit.unwrap_or(DEFAULT_LIMIT);
        check(&request, limit)?;
        self.index_results(&caller.tenant).await?;
        let query = Query::parse(&request.query);
        let query_vector = self.embed_query(&request.query).await;
        let mode = match query_vector {
            Some(_) => Mode::Hybrid,
            None => Mode::Keyword,
        };
        let max_results = if all { limit * 2 } else { limit };
        let search = Search {
            words: query.words().to_vec(),
            all: true,
            plan: request.plan,
            kind: request.kind,
            created_after: request.created_after,
            created_before: request.created_before,
        };
        let same = search.clone();
        let words = self.store.read(&caller.tenant, move |tx| {
            let search = search.clone();
            Box::pin(async move {
                if let Some(plan) = search.plan {
                    let found = Plans(tx).sheet(plan).await?;
                    found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                }
                hits(tx, search, limit).await
            })
        });
        // Concurrently: the rankings are independent.
        let (words, near) = tokio::join!(words, self.nearest(caller, same, query_vector, limit));
        let ranked = combine(words?, near?, max_results);
        let found = self.store.read(&caller.tenant, move |tx| {
            let (ranked, query) = (ranked.clone(), query.clone());
            Box::pin(async move {
                let hits: Vec<Hit> = ranked.iter().map(|found| found.hit.clone()).collect();
                let texts = SearchIndex(tx).pieces(&hits).await?;
                let names = plan_names(tx, &hits).await?;
                let found = ranked
                    .into_iter()
                    .zip(texts)
                    .map(|(found, text)| SearchResult {
                        snippet: snippet(&text, &query),
                        plan_name: found.hit.plan.and_then(|plan| names.get(&plan).cloned()),
                        ..found
                    });
                Ok::<Vec<SearchResult>, Error>(found.collect())
            })
        });
        let found = found.await?;
        Ok(SearchResults {
            results: found,
            mode,
        })
    }

    /// Nearest neighbours of the query. Empty without an embedding.
    async fn nearest(
        &self,
        caller: &Caller,
        search: Search,
        query_vector: Option<(Vector, Arc<str>)>,
        limit: u32,
    ) -> Result<Vec<Near>, Error> {
        let Some((vector, model)) = query_vector else {
            return Ok(Vec::new());
        };
        let near = self.store.read(&caller.tenant, move |tx| {
            let (search, vector) = (search.clone(), vector.clone());
            let model = Arc::clone(&model);
            Box::pin(async move {
                SearchIndex(tx)
                    .nearest(&vector, &model, &search, limit)
                    .await
            })
        });
        Ok(near.await?)
    }
}

/// The names of the plans of these hits.
async fn plan_names(tx: &mut Tx, hits: &[Hit]) -> Result<BTreeMap<PlanId, String>, Error> {
    let plans: BTreeSet<PlanId> = hits.iter().filter_map(|hit| hit.plan).collect();
    let mut names = BTreeMap::new();
    for plan in plans {
        if let Some(sheet) = Plans(tx).sheet(plan).await? {
            names.insert(plan, sheet.brief.name);
        }
    }
    Ok(names)
}

/// Combines the rankings. The snippets and the names of the plans are filled in later.
fn combine(words: Vec<Hit>, near: Vec<Near>, limit: u32) -> Vec<SearchResult> {
    let by_words: Vec<Source> = words.iter().map(|hit| hit.source).collect();
    let by_meaning: Vec<Source> = near.iter().map(|near| near.hit.source).collect();
    let likeness: BTreeMap<Source, f64> = near
        .iter()
        .map(|near| (near.hit.source, near.likeness))
        .collect();
    let mut by_source: BTreeMap<Source, Hit> = BTreeMap::new();
    // A result in both rankings shows the chunk that contains the words.
    for hit in words
        .into_iter()
        .chain(near.into_iter().map(|near| near.hit))
    {
        by_source.entry(hit.source).or_insert(hit);
    }
    let max_results = usize::try_from(limit).unwrap_or(usize::MAX);
    let ranked = fuse_ranks(&by_words, &by_meaning)
        .into_iter()
        .take(max_results);
    let found = ranked.filter_map(|fused| {
        Some(SearchResult {
            hit: by_source.remove(&fused.item)?,
            snippet: String::new(),
            plan_name: None,
            keyword_rank: fused.keyword_rank,
            semantic_rank: fused.semantic_rank,
            similarity: likeness.get(&fused.item).copied(),
            score: fused.score,
        })
    });
    found.collect()
}

/// Sources that contain all words, then, up to the limit, sources that contain some of them.
async fn hits(tx: &mut Tx, mut search: Search, limit: u32) -> Result<Vec<Hit>, Error> {
    let max_results = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found = best(tx, &search, limit).await?;
    if found.len() < max_results && search.words.len() > 1 {
        search.all = false;
        search.words = distinctive_words(tx, search.words).await?;
        let seen: BTreeSet<_> = found.iter().map(|hit| hit.source).collect();
        let others = best(tx, &search, limit).await?.into_iter();
        found.extend(others.filter(|hit| !seen.contains(&hit.source)));
        found.truncate(max_results);
    }
    Ok(found)
}

/// The words that are worth searching on their own: words that occur in some chunks, but not in
/// many. All words if there are no such words.
async fn distinctive_words(tx: &mut Tx, words: Vec<String>) -> Result<Vec<String>, Error> {
    let counts = SearchIndex(tx)
        .word_counts(&words, COMMON_WORD_CHUNKS)
        .await?;
    let rare = words.iter().zip(counts);
    let rare = rare.filter(|(_, count)| (1..u64::from(COMMON_WORD_CHUNKS)).contains(count));
    let rare: Vec<String> = rare.map(|(word, _)| word.clone()).collect();
    Ok(if rare.is_empty() { words } else { rare })
}

async fn best(tx: &mut Tx, search: &Search, limit: u32) -> Result<Vec<Hit>, Error> {
    let mut found = Vec::new();
    for candidates in CANDIDATE_LIMITS {
        found = SearchIndex(tx).search(search, candidates, limit).await?;
        if found.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            break;
        }
    }
    Ok(found)
}

fn check(request: &SearchRequest, limit: u32) -> Result<(), Error> {
    let characters = request.query.chars().count();
    if characters == 0 || characters > MAX_SEARCH {
        let message = format!("has {characters} characters, must have 1 to {MAX_SEARCH}");
        return Err(Error::invalid("query", message));
    }
    if limit == 0 || limit > MAX_LIMIT {
        return Err(Error::invalid(
            "limit",
            format!("must be between 1 and {MAX_LIMIT}"),
        ));
    }
    if let Some(kind) = &request.kind
        && !KINDS.contains(&kind.as_str())
    {
        let kinds = KINDS.map(|kind| format!("`{kind}`")).join(", ");
        let message = format!("must be one of {kinds}");
        return Err(Error::invalid("artifactType", message));
    }
    Ok(())
}

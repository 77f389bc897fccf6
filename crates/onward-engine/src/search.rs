//! What was stored is found again: by words and by what it means, the best chunk of each artifact and
//! output, the best first.
//!
//! By words, what holds all of them comes before what holds some of the rarer ones. Both rankings are
//! fused by rank alone: the two databases weigh words differently, and their numbers mean nothing outside
//! of them. Each is as long as what is asked for and no longer: else what stands at the end of both would
//! come before what is first in one. Where no model says in time what a query means, words have to do, and
//! the answer says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onward_core::policy::MAX_SEARCH;
use onward_core::role::Permission;
use onward_core::search::{Query, Vector, fuse, snippet};
use onward_core::{PlanId, Timestamp};
use onward_store::{Artifact, Hit, Near, Search, Source, Tx};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// How many are shown, where nobody said otherwise.
pub const USUAL: u32 = 20;
/// The most that can be asked for.
pub const MOST: u32 = 50;
/// Among how many of the best chunks is looked, and among how many where these give too few: one
/// long text may have hundreds, and others may not fit.
const AMONG: [u32; 2] = [1_000, u32::MAX];

/// A word that so many chunks hold is not looked for alone, where a rarer one is asked for, too: to
/// rank all of them takes longer than anybody waits.
const COMMON: u32 = 2_000;

/// What somebody looks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// In their words.
    pub query: String,
    /// How many at most; [`USUAL`] where nobody said otherwise.
    pub limit: Option<u32>,
    /// Only what belongs to this plan.
    pub plan: Option<PlanId>,
    /// Only artifacts of this kind.
    pub kind: Option<String>,
    /// Only what was stored then or later.
    pub created_after: Option<Timestamp>,
    /// Only what was stored earlier.
    pub created_before: Option<Timestamp>,
}

/// By what things were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By words and by what they mean.
    Hybrid,
    /// By words alone.
    Keyword,
}

/// All that was found, the best first.
#[derive(Debug, Clone, PartialEq)]
pub struct Searched {
    /// What.
    pub found: Vec<Found>,
    /// By what.
    pub mode: Mode,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What.
    pub hit: Hit,
    /// The piece of its text that shows why.
    pub snippet: String,
    /// The how many-th it is by its words.
    pub keyword_rank: Option<u32>,
    /// The how many-th it is by what it means.
    pub semantic_rank: Option<u32>,
    /// How near it is by what it means: 1 is the same.
    pub likeness: Option<f64>,
    /// How well it fits, of all that was found.
    pub score: f64,
}

impl Engine {
    /// Searches what was found, made or delivered.
    pub async fn search(&self, caller: &Caller, wanted: Wanted) -> Result<Searched, Error> {
        self.ranked(caller, wanted, false).await
    }

    /// The same, with everything that either ranking found, for whoever wants to see them side by side.
    pub async fn search_both(&self, caller: &Caller, wanted: Wanted) -> Result<Searched, Error> {
        self.ranked(caller, wanted, true).await
    }

    async fn ranked(&self, caller: &Caller, wanted: Wanted, all: bool) -> Result<Searched, Error> {
        caller.allow(Permission::Read)?;
        let limit = wanted.limit.unwrap_or(USUAL);
        check(&wanted, limit)?;
        let query = Query::of(&wanted.query);
        let meaning = self.meaning_of(&wanted.query).await;
        let mode = match meaning {
            Some(_) => Mode::Hybrid,
            None => Mode::Keyword,
        };
        let most = if all { limit * 2 } else { limit };
        let search = Search {
            words: query.words().to_vec(),
            all: true,
            plan: wanted.plan,
            kind: wanted.kind,
            created_after: wanted.created_after,
            created_before: wanted.created_before,
        };
        let same = search.clone();
        let words = self.store.read(&caller.tenant, move |tx| {
            let search = search.clone();
            Box::pin(async move {
                if let Some(plan) = search.plan {
                    let known = tx.sheet(plan).await?;
                    known.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                }
                hits(tx, search, limit).await
            })
        });
        // Beside each other: neither ranking needs the other's.
        let (words, near) = tokio::join!(words, self.near(caller, same, meaning, limit));
        let ranked = fused(words?, near?, most);
        let found = self.store.read(&caller.tenant, move |tx| {
            let (ranked, query) = (ranked.clone(), query.clone());
            Box::pin(async move {
                let shown: Vec<Hit> = ranked.iter().map(|found| found.hit.clone()).collect();
                let pieces = tx.pieces(&shown).await?;
                let found = ranked.into_iter().zip(pieces).map(|(found, piece)| Found {
                    snippet: snippet(&piece, &query),
                    ..found
                });
                Ok::<Vec<Found>, Error>(found.collect())
            })
        });
        let found = found.await?;
        Ok(Searched { found, mode })
    }

    /// What is nearest by what it means, where that is known.
    async fn near(
        &self,
        caller: &Caller,
        search: Search,
        meaning: Option<(Vector, Arc<str>)>,
        limit: u32,
    ) -> Result<Vec<Near>, Error> {
        let Some((vector, model)) = meaning else {
            return Ok(Vec::new());
        };
        let near = self.store.read(&caller.tenant, move |tx| {
            let (search, vector) = (search.clone(), vector.clone());
            let model = Arc::clone(&model);
            Box::pin(async move { tx.nearest(&vector, &model, &search, limit).await })
        });
        Ok(near.await?)
    }
}

/// Both rankings as one, without the pieces that are shown.
fn fused(words: Vec<Hit>, near: Vec<Near>, limit: u32) -> Vec<Found> {
    let by_words: Vec<Source> = words.iter().map(|hit| hit.source).collect();
    let by_meaning: Vec<Source> = near.iter().map(|near| near.hit.source).collect();
    let likeness: BTreeMap<Source, f64> = near
        .iter()
        .map(|near| (near.hit.source, near.likeness))
        .collect();
    let mut known: BTreeMap<Source, Hit> = BTreeMap::new();
    // What was found by its words is shown by them.
    for hit in words
        .into_iter()
        .chain(near.into_iter().map(|near| near.hit))
    {
        known.entry(hit.source).or_insert(hit);
    }
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let ranked = fuse(&by_words, &by_meaning).into_iter().take(most);
    let found = ranked.filter_map(|fused| {
        Some(Found {
            hit: known.remove(&fused.item)?,
            snippet: String::new(),
            keyword_rank: fused.keyword_rank,
            semantic_rank: fused.semantic_rank,
            likeness: likeness.get(&fused.item).copied(),
            score: fused.score,
        })
    });
    found.collect()
}

/// What holds all of the words, then, where there is room left, what holds some of them.
async fn hits(tx: &mut Tx, mut search: Search, limit: u32) -> Result<Vec<Hit>, Error> {
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found = best(tx, &search, limit).await?;
    if found.len() < most && search.words.len() > 1 {
        search.all = false;
        search.words = telling(tx, search.words).await?;
        let known: BTreeSet<_> = found.iter().map(|hit| hit.source).collect();
        let others = best(tx, &search, limit).await?.into_iter();
        found.extend(others.filter(|hit| !known.contains(&hit.source)));
        found.truncate(most);
    }
    Ok(found)
}

/// The words that say something: those that stand in many chunks are left out, unless no other one
/// stands in any.
async fn telling(tx: &mut Tx, words: Vec<String>) -> Result<Vec<String>, Error> {
    let counts = tx.word_counts(&words, COMMON).await?;
    let rare = words.iter().zip(counts);
    let rare = rare.filter(|(_, count)| (1..u64::from(COMMON)).contains(count));
    let rare: Vec<String> = rare.map(|(word, _)| word.clone()).collect();
    Ok(if rare.is_empty() { words } else { rare })
}

async fn best(tx: &mut Tx, search: &Search, limit: u32) -> Result<Vec<Hit>, Error> {
    let mut found = Vec::new();
    for among in AMONG {
        found = tx.search(search, among, limit).await?;
        if found.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            break;
        }
    }
    Ok(found)
}

fn check(wanted: &Wanted, limit: u32) -> Result<(), Error> {
    let characters = wanted.query.chars().count();
    if characters == 0 || characters > MAX_SEARCH {
        let message = format!("has {characters} characters, must have 1 to {MAX_SEARCH}");
        return Err(Error::invalid("query", message));
    }
    if limit == 0 || limit > MOST {
        return Err(Error::invalid("limit", format!("must be 1 to {MOST}")));
    }
    if let Some(kind) = &wanted.kind
        && !Artifact::KINDS.contains(&kind.as_str())
    {
        let kinds = Artifact::KINDS.map(|kind| format!("`{kind}`")).join(", ");
        let message = format!("must be one of {kinds}");
        return Err(Error::invalid("artifactType", message));
    }
    Ok(())
}

//! What was stored is found again: by words, the best chunk of each artifact and output, the best
//! first.
//!
//! What holds all of the words comes before what holds some of the rarer ones. How good a hit is, is said by its
//! rank alone, as if it were fused with others (`1 / (60 + rank)`): the two databases weigh words
//! differently, and their numbers mean nothing outside of them.

use std::collections::BTreeSet;

use onward_core::policy::MAX_SEARCH;
use onward_core::role::Permission;
use onward_core::search::{Query, snippet};
use onward_core::{PlanId, Timestamp};
use onward_store::{Artifact, Hit, Search, Tx};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// How many are shown, where nobody said otherwise.
pub const USUAL: u32 = 20;
/// The most that can be asked for.
pub const MOST: u32 = 50;
/// The constant of reciprocal rank fusion.
const K: f64 = 60.0;
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

/// Something that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What.
    pub hit: Hit,
    /// The piece of its text that shows why.
    pub snippet: String,
    /// The how many-th it is by its words.
    pub keyword_rank: u32,
    /// How well it fits, of all that was found.
    pub score: f64,
}

impl Engine {
    /// Searches what was found, made or delivered.
    pub async fn search(&self, caller: &Caller, wanted: Wanted) -> Result<Vec<Found>, Error> {
        caller.allow(Permission::Read)?;
        let limit = wanted.limit.unwrap_or(USUAL);
        check(&wanted, limit)?;
        let query = Query::of(&wanted.query);
        let found = self.store.read(&caller.tenant, move |tx| {
            let (query, wanted) = (query.clone(), wanted.clone());
            Box::pin(async move {
                if let Some(plan) = wanted.plan {
                    let known = tx.sheet(plan).await?;
                    known.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                }
                let hits = hits(tx, &query, wanted, limit).await?;
                let pieces = tx.pieces(&hits).await?;
                let shown = pieces.iter().map(|piece| snippet(piece, &query));
                Ok::<_, Error>(hits.into_iter().zip(shown).collect::<Vec<_>>())
            })
        });
        let ranked = found.await?.into_iter().zip(1u32..);
        let ranked = ranked.map(|((hit, snippet), rank)| Found {
            hit,
            snippet,
            keyword_rank: rank,
            score: 1.0 / (K + f64::from(rank)),
        });
        Ok(ranked.collect())
    }
}

/// What holds all of the words, then, where there is room left, what holds some of them.
async fn hits(tx: &mut Tx, query: &Query, wanted: Wanted, limit: u32) -> Result<Vec<Hit>, Error> {
    let mut search = Search {
        words: query.words().to_vec(),
        all: true,
        plan: wanted.plan,
        kind: wanted.kind,
        created_after: wanted.created_after,
        created_before: wanted.created_before,
    };
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

//! Ended plans with a question that is similar to that of a new plan: their results can be reused.
//!
//! The words of names and questions are indexed for lists. The rarest specific words of the new
//! question select few candidates; the core compares them.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::plan::Origin;
use onward_core::role::Permission;
use onward_core::search::{similarity, specific_words};
use onward_core::{PlanId, PlanStatus};
use onward_store::{Listed, PlanLists, Tx};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// Maximum number of similar plans.
const MAX_SIMILAR: usize = 3;
/// Number of words that are looked up, and number of the rarest ones that select candidates.
const MAX_WORDS: usize = 16;
const MAX_SELECTIVE: usize = 4;
/// A word that occurs in this many plans selects no candidates.
const MAX_PLANS: u32 = 50;
const ENDED: [PlanStatus; 2] = [PlanStatus::Completed, PlanStatus::Failed];

/// An ended plan with a similar question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimilarPlan {
    /// The plan.
    pub plan: PlanId,
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: PlanStatus,
    /// Number of its results.
    pub results: u32,
}

impl Engine {
    /// Ended plans with a similar name and question, most similar first. Plans that mirror task lists
    /// have no results.
    pub(crate) async fn similar_plans(
        &self,
        caller: &Caller,
        question: String,
    ) -> Result<Vec<SimilarPlan>, Error> {
        let wanted = specific_words(&question);
        if caller.allow(Permission::Read).is_err() || wanted.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now();
        let found = self.store.read(&caller.tenant, move |tx| {
            let wanted = wanted.clone();
            Box::pin(async move {
                let mut candidates: BTreeMap<PlanId, (f64, SimilarPlan)> = BTreeMap::new();
                for word in selective_words(tx, &wanted).await? {
                    let listed = PlanLists(tx)
                        .plans_with(&[word], &ENDED, None, now, MAX_PLANS)
                        .await?;
                    for listed in listed {
                        if let Some(found) = compare(&wanted, &listed) {
                            candidates.insert(listed.sheet.head.id, found);
                        }
                    }
                }
                Ok::<_, Error>(candidates)
            })
        });
        let mut found: Vec<(f64, SimilarPlan)> = found.await?.into_values().collect();
        found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let plans = found.into_iter().map(|(_, plan)| plan);
        Ok(plans.take(MAX_SIMILAR).collect())
    }
}

/// The rarest words that occur in other plans.
async fn selective_words(tx: &mut Tx, words: &BTreeSet<String>) -> Result<Vec<String>, Error> {
    let mut counted = Vec::new();
    for word in words.iter().take(MAX_WORDS) {
        let count = PlanLists(tx)
            .count_plans_with(std::slice::from_ref(word), MAX_PLANS)
            .await?;
        if count > 0 && count < u64::from(MAX_PLANS) {
            counted.push((count, word.clone()));
        }
    }
    counted.sort();
    counted.truncate(MAX_SELECTIVE);
    Ok(counted.into_iter().map(|(_, word)| word).collect())
}

fn compare(wanted: &BTreeSet<String>, listed: &Listed) -> Option<(f64, SimilarPlan)> {
    let (head, brief) = (&listed.sheet.head, &listed.sheet.brief);
    let results = head.counts.completed;
    if results == 0 || head.origin == Origin::Agent {
        return None;
    }
    let text = format!("{} {}", brief.name, brief.research_question);
    let similarity = similarity(wanted, &specific_words(&text))?;
    let plan = SimilarPlan {
        plan: head.id,
        name: brief.name.clone(),
        status: head.status(),
        results,
    };
    Some((similarity, plan))
}

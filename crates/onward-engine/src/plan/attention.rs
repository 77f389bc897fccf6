//! The attention of all plans of a tenant: counts per word, and the open plans. The core decides the
//! word of each plan.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use onward_core::attention::{Attention, Word, archived_before, attention};
use onward_core::role::Permission;
use onward_core::{PlanId, StepStatus, Timestamp};
use onward_store::{AuditTrail, HourCount, OpenPlan, PlanLists, StepLine, StepMark, Steps, Which};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// Maximum number of open plans per status that are evaluated.
const MAX_OPEN: u32 = 20_000;

/// Maximum number of steps per plan and status.
const MAX_STEPS: u32 = 100;

/// Number of plans with the same word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionCount {
    /// The word.
    pub word: Word,
    /// Number of plans.
    pub plans: u64,
}

/// Which archived plans a list contains. A search by text always includes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Archived {
    /// None.
    #[default]
    Without,
    /// All, among the others.
    With,
    /// Only them.
    Only,
}

impl Archived {
    /// Whether a list of all plans, or of open ones, contains them.
    pub const fn when(all: bool) -> Self {
        if all {
            Archived::With
        } else {
            Archived::Without
        }
    }
}

impl Engine {
    /// Sets how long a plan with a ready step may be without agent activity.
    #[must_use]
    pub fn with_no_agent_after(mut self, limit: Duration) -> Self {
        self.no_agent_after = limit;
        self
    }

    /// How long a plan with a ready step may be without agent activity.
    pub fn no_agent_after(&self) -> Duration {
        self.no_agent_after
    }

    /// Sets how long after its last activity a captured plan is archived.
    #[must_use]
    pub fn with_archive_after(mut self, limit: Duration) -> Self {
        self.archive_after = limit;
        self
    }

    /// The time before which the last activity of an archived plan was.
    pub(crate) fn archived_before(&self) -> Timestamp {
        archived_before(self.now(), self.archive_after)
    }

    /// Number of archived plans.
    pub async fn count_archived(&self, caller: &Caller) -> Result<u64, Error> {
        caller.allow(Permission::Read)?;
        let archived_before = self.archived_before();
        let count = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { PlanLists(tx).count_archived(archived_before).await })
        });
        Ok(count.await?)
    }

    /// The open plans with what they need; for each word, the longest in that state first. Without
    /// archived plans.
    pub async fn open_plans(&self, caller: &Caller) -> Result<Vec<(OpenPlan, Attention)>, Error> {
        caller.allow(Permission::Read)?;
        let (now, limit) = (self.now(), self.no_agent_after);
        let archived_before = self.archived_before();
        let plans = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                PlanLists(tx)
                    .open_plans(now, archived_before, MAX_OPEN)
                    .await
            })
        });
        let mut plans: Vec<(OpenPlan, Attention)> = plans
            .await?
            .into_iter()
            .map(|plan| {
                let attention = attention(&plan.head, &plan.facts, now, limit);
                (plan, attention)
            })
            .collect();
        plans.sort_by_key(|(plan, attention)| (attention.word, attention.since, plan.head.id));
        Ok(plans)
    }

    /// Number of stuck plans.
    pub async fn count_stuck(&self, caller: &Caller) -> Result<usize, Error> {
        caller.allow(Permission::Read)?;
        let (now, limit) = (self.now(), self.no_agent_after);
        let plans = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { PlanLists(tx).maybe_stuck_plans(now, MAX_OPEN).await })
        });
        let is_stuck =
            |plan: &&OpenPlan| attention(&plan.head, &plan.facts, now, limit).word == Word::Stuck;
        Ok(plans.await?.iter().filter(is_stuck).count())
    }

    /// Number of plans per word, for all words. Without archived plans.
    pub async fn count_attention(&self, caller: &Caller) -> Result<Vec<AttentionCount>, Error> {
        let open = self.open_plans(caller).await?;
        let ended = self.store.read(&caller.tenant, |tx| {
            Box::pin(async { PlanLists(tx).count_outcomes().await })
        });
        let mut counts: BTreeMap<Word, u64> = BTreeMap::new();
        for (_, attention) in &open {
            *counts.entry(attention.word).or_default() += 1;
        }
        for outcome in ended.await? {
            let word =
                Word::for_ended_plan(outcome.status, outcome.has_failures, outcome.cancelled);
            if let Some(word) = word {
                *counts.entry(word).or_default() += outcome.plans;
            }
        }
        let count = |word| AttentionCount {
            word,
            plans: counts.get(&word).copied().unwrap_or_default(),
        };
        Ok(Word::ALL.map(count).to_vec())
    }

    /// The steps of these plans that are in progress or awaiting review, a few of each plan.
    pub async fn open_steps(
        &self,
        caller: &Caller,
        plans: Vec<PlanId>,
    ) -> Result<HashMap<PlanId, Vec<StepLine>>, Error> {
        caller.allow(Permission::Read)?;
        let steps = self.store.read(&caller.tenant, move |tx| {
            let plans = plans.clone();
            Box::pin(async move {
                let mut open = HashMap::new();
                for plan in plans {
                    let mut lines = Vec::new();
                    for status in [StepStatus::InProgress, StepStatus::AwaitingInput] {
                        let which = Which::In(status);
                        lines.extend(Steps(tx).step_lines(plan, which, 0, MAX_STEPS).await?);
                    }
                    open.insert(plan, lines);
                }
                Ok::<_, onward_store::Error>(open)
            })
        });
        Ok(steps.await?)
    }

    /// The state of every step of a plan, without texts.
    pub async fn step_states(&self, caller: &Caller, plan: PlanId) -> Result<Vec<StepMark>, Error> {
        caller.allow(Permission::Read)?;
        let states = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Steps(tx).states(plan).await })
        });
        Ok(states.await?)
    }

    /// Finished steps, stalls and review requests per hour since an instant.
    pub async fn events_by_hour(
        &self,
        caller: &Caller,
        since: Timestamp,
    ) -> Result<Vec<HourCount>, Error> {
        caller.allow(Permission::Read)?;
        let counts = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { AuditTrail(tx).by_hour(since).await })
        });
        Ok(counts.await?)
    }

    /// What a plan needs.
    pub async fn attention(&self, caller: &Caller, plan: PlanId) -> Result<Attention, Error> {
        caller.allow(Permission::Read)?;
        let (now, limit) = (self.now(), self.no_agent_after);
        let listed = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { PlanLists(tx).listed(plan, now).await })
        });
        let listed = listed.await?;
        let listed = listed.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
        Ok(attention(&listed.sheet.head, &listed.facts, now, limit))
    }
}

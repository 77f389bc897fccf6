//! Totals over all tenants and the state of this process, for the metrics of a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use onward_core::PlanStatus;
use onward_core::attention::{Word, attention};
use onward_store::{Connections, Lead};

use crate::engine::Engine;
use crate::error::Error;
use crate::plan::attention::AttentionCount;

/// Totals over all tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// Number of plans in each status.
    pub statuses: Vec<(PlanStatus, u64)>,
    /// Number of plans per word, for all words. Without archived plans.
    pub attention: Vec<AttentionCount>,
    /// Bytes of all tables and indexes.
    pub bytes: u64,
}

impl Engine {
    /// Totals over all tenants. Takes time in proportion to the number of plans. For the server's
    /// operator.
    pub async fn totals(&self) -> Result<Totals, Error> {
        let (now, limit) = (self.now(), self.no_agent_after);
        // An idle plan is past the limit, not exactly at it.
        let idle_before = now.saturating_sub(limit);
        let archived_before = self.archived_before();
        let no_tenant = Arc::from("");
        let read = self.store.read(&no_tenant, move |tx| {
            Box::pin(async move {
                let mut totals = onward_store::Totals(tx);
                let groups = totals.plan_groups(now, idle_before, archived_before);
                Ok::<_, onward_store::Error>((groups.await?, totals.bytes().await?))
            })
        });
        let (groups, bytes) = read.await?;
        let mut words: BTreeMap<Word, u64> = BTreeMap::new();
        for group in groups.iter().filter(|group| !group.archived) {
            let word = attention(&group.head, &group.facts, now, limit).word;
            *words.entry(word).or_default() += group.plans;
        }
        let in_status = |status| {
            let groups = groups.iter();
            let groups = groups.filter(|group| group.head.status() == status);
            (status, groups.map(|group| group.plans).sum())
        };
        let with_word = |word| AttentionCount {
            word,
            plans: words.get(&word).copied().unwrap_or_default(),
        };
        Ok(Totals {
            statuses: PlanStatus::ALL.map(in_status).to_vec(),
            attention: Word::ALL.map(with_word).to_vec(),
            bytes,
        })
    }

    /// Whether this process runs the sweep, as far as it knows.
    pub fn leads_sweep(&self) -> bool {
        self.store.leads(Lead::Sweep)
    }

    /// The connections to a PostgreSQL server; `None` on SQLite, and before the first one.
    pub fn connections(&self) -> Option<Connections> {
        self.store.connections()
    }
}

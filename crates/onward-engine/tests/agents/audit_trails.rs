//! Reads the audit trails of a database through the engine.

use std::collections::BTreeMap;

use onward_core::PlanId;
use onward_engine::list::PlanQuery;
use onward_engine::{Caller, Engine};
use onward_store::Entry;

const PAGE: u32 = 1000;

/// The audit trail of each plan, oldest entry first.
pub type AuditTrails = BTreeMap<PlanId, Vec<Entry>>;

pub async fn read(engine: &Engine, caller: &Caller) -> AuditTrails {
    let query = PlanQuery {
        limit: 100_000,
        finished: true,
        ..PlanQuery::default()
    };
    let page = engine
        .list_plans(caller, query)
        .await
        .expect("plans were listed");
    let mut audit_trails = AuditTrails::new();
    for listed in page.plans {
        let plan = listed.sheet.head.id;
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let after = entries.last().map_or(0, |last| last.seq);
            let page = engine.audit_trail(caller, plan, after, PAGE).await;
            let page = page.expect("audit trail was read");
            let full = page.len() >= usize::try_from(PAGE).unwrap_or(usize::MAX);
            entries.extend(page.into_iter().map(|view| view.entry));
            if !full {
                break;
            }
        }
        audit_trails.insert(plan, entries);
    }
    audit_trails
}

/// The entries of each commit.
pub fn commits(entries: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    entries.chunk_by(|one, other| one.commit_seq == other.commit_seq)
}

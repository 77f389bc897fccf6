//! The audit trails of a database, read whole through the engine, commit by commit.

use std::collections::BTreeMap;

use onward_core::PlanId;
use onward_engine::list::PlanQuery;
use onward_engine::{Caller, Engine};
use onward_store::Entry;

const PAGE: u32 = 1000;

/// Every plan's trail, oldest entry first.
pub type Trails = BTreeMap<PlanId, Vec<Entry>>;

pub async fn read(engine: &Engine, caller: &Caller) -> Trails {
    let query = PlanQuery {
        limit: 100_000,
        finished: true,
        ..PlanQuery::default()
    };
    let page = engine
        .list_plans(caller, query)
        .await
        .expect("plans can be listed");
    let mut trails = Trails::new();
    for listed in page.plans {
        let plan = listed.sheet.head.id;
        let mut trail: Vec<Entry> = Vec::new();
        loop {
            let behind = trail.last().map_or(0, |last| last.seq);
            let page = engine.trail(caller, plan, behind, PAGE).await;
            let page = page.expect("a trail can be read");
            let full = page.len() >= usize::try_from(PAGE).unwrap_or(usize::MAX);
            trail.extend(page.into_iter().map(|shown| shown.entry));
            if !full {
                break;
            }
        }
        trails.insert(plan, trail);
    }
    trails
}

/// The entries of each commit.
pub fn commits(trail: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    trail.chunk_by(|one, other| one.commit_seq == other.commit_seq)
}

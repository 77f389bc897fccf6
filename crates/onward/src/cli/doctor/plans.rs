//! Replays the audit trail of every plan of every tenant, and checks the search index.

use onward_core::Timestamp;
use onward_engine::list::PlanQuery;
use onward_engine::{Engine, Error};

use super::findings::{Findings, Passed};
use super::{Check, operator};
use crate::output::format;

/// Returns the time of the last update.
pub(super) async fn check(
    engine: &Engine,
    checks: &mut Vec<Check>,
) -> Result<Option<Timestamp>, Error> {
    let mut newest = None;
    let (mut plans, mut search) = (Passed::new("plans"), Passed::new("search"));
    let restore = "copy the database, restore a backup, and report this";
    let mut inconsistencies = Findings::new("plans", restore);
    let mut index_errors = Findings::new("search", "rebuild the index with `onward reindex`");
    for tenant in engine.tenants().await? {
        let caller = operator(engine, &tenant.name).await?;
        let query = PlanQuery {
            limit: 1,
            finished: true,
            ..PlanQuery::default()
        };
        // `verify` reports a plan that cannot be listed.
        let page = engine.list_plans(&caller, query).await.ok();
        let last = page.and_then(|page| page.plans.into_iter().next());
        newest = newest.max(last.map(|last| last.sheet.updated_at));
        let checked = engine.verify(&caller).await?;
        if checked.inconsistencies.is_empty() {
            plans.add(&tenant.name, [checked.plans, checked.events]);
        }
        if checked.index_errors.is_empty() && checked.chunks > 0 {
            search.add(&tenant.name, [checked.chunks]);
        }
        let name = format!("tenant `{}`", tenant.name);
        for problem in &checked.index_errors {
            index_errors.add(Some(&name), problem);
        }
        for problem in checked.inconsistencies {
            let subject = problem.plan.map(|plan| format!("{name}, plan {plan}"));
            inconsistencies.add(subject.as_deref(), &problem.message);
        }
    }
    checks.extend(plans.into_checks(|[plans, events]| {
        let plans = format::count(plans, "plan", "plans");
        let events = format::count(events, "event", "events");
        format!("{plans}, {events}, all audit trails replay")
    }));
    checks.extend(inconsistencies.into_checks());
    checks.extend(search.into_checks(|[chunks]| {
        let chunks = format::count(chunks, "chunk", "chunks");
        format!("{chunks}, index complete")
    }));
    checks.extend(index_errors.into_checks());
    Ok(newest)
}

//! What the database says, laid beside the model: every row of every plan, its trail and what is kept
//! beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use onward_core::Event;
use onward_core::Timestamp;
use onward_core::step::StepState;
use onward_engine::Engine;
use onward_engine::list::PlanQuery;
use onward_engine::transfer::Whole;

use crate::ask::caller;
use crate::history;
use crate::model::{Entry, Model, Plan};
use crate::said::Key;

/// Everything that the database says about the plans of some tenants.
pub(crate) struct Rows(pub(crate) BTreeMap<Key, Whole>);

impl Rows {
    pub(crate) async fn read(engine: &Engine, tenants: &[Arc<str>]) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for tenant in tenants {
            let reader = caller(tenant, "reader");
            let query = PlanQuery {
                limit: 1000,
                finished: true,
                ..PlanQuery::default()
            };
            let page = engine.list_plans(&reader, query).await;
            let page = page.map_err(|why| format!("the plans cannot be listed: {why}"))?;
            for listed in page.plans {
                let id = listed.sheet.head.id;
                let whole = engine.whole_plan(&reader, id).await;
                let whole = whole.map_err(|why| format!("plan {id} cannot be read: {why}"))?;
                if whole.plan.sheet != listed.sheet {
                    return Err(format!("plan {id} is listed as another than it is"));
                }
                all.insert((Arc::clone(tenant), id), whole);
            }
        }
        Ok(Rows(all))
    }

    /// Whether this is what the model says. What nobody was told, the model learns here.
    pub(crate) fn fit(&self, model: &mut Model) -> Result<(), String> {
        for key in model.plans.keys() {
            if !self.0.contains_key(key) {
                return Err(format!("plan {} of {} is gone", key.1, key.0));
            }
        }
        for (key, whole) in &self.0 {
            let plan = model.plans.get_mut(key);
            let plan = plan.ok_or_else(|| format!("there is a plan {} of {}", key.1, key.0))?;
            fit(plan, whole)?;
            history::is_lawful(whole)?;
        }
        Ok(())
    }
}

/// Whether these rows are this plan's.
pub(crate) fn fit(plan: &mut Plan, whole: &Whole) -> Result<(), String> {
    learn(plan, whole);
    let says = |what: &str, rows: &dyn std::fmt::Debug, model: &dyn std::fmt::Debug| {
        let id = plan.id;
        Err(format!(
            "plan {id}: {what}\n  the rows say {rows:?}\n the model says {model:?}"
        ))
    };
    let sheet = &whole.plan.sheet;
    if sheet.head != plan.head() {
        return says("the head", &sheet.head, &plan.head());
    }
    if sheet.brief != plan.brief || sheet.created_at != plan.created_at {
        return says("the brief", &sheet.brief, &plan.brief);
    }
    let last = plan.trail.last().map(|entry| entry.at);
    if Some(sheet.updated_at) != last {
        return says("when it changed last", &sheet.updated_at, &last);
    }
    if whole.plan.steps.len() != plan.steps.len() {
        return says("the steps", &whole.plan.steps, &plan.steps);
    }
    for (place, (row, step)) in whole.plan.steps.iter().zip(&plan.steps).enumerate() {
        let mut row = row.clone();
        row.updated_at = Timestamp::MIN;
        let expected = step.row(plan.order(place));
        if row != expected {
            return says("a step (tokens are not shown)", &row, &expected);
        }
    }
    fit_branches(plan, whole)?;
    let resumed: Vec<String> = plan.resumed.iter().cloned().collect();
    let mut known = whole.plan.resumed.clone();
    known.sort();
    if known != resumed {
        return says("who resumed it", &known, &resumed);
    }
    fit_trail(plan, whole)?;
    fit_artifacts(plan, whole)
}

/// Tokens and ids that were given out when nobody heard.
fn learn(plan: &mut Plan, whole: &Whole) {
    for step in &mut plan.steps {
        let row = whole.plan.steps.iter().find(|row| row.id() == step.id());
        let Some(row) = row else { continue };
        let tokens = row
            .superseded
            .iter()
            .chain(row.claim().map(|claim| &claim.token));
        for (held, token) in step.claims.iter_mut().zip(tokens) {
            held.token.get_or_insert(token.clone());
        }
        if let (Some(review), StepState::AwaitingInput { review: row, .. }) =
            (&mut step.review, &row.state)
            && review.id.as_uuid().is_nil()
        {
            review.id = row.id;
        }
        if let (Some(onward_core::step::SkipCause::Review(id)), StepState::Skipped { by, .. }) =
            (&mut step.skipped_by, &row.state)
            && id.as_uuid().is_nil()
        {
            step.skipped_by = Some(*by);
        }
    }
    let kept = whole.trail.iter().filter_map(|entry| match &entry.event {
        Event::LateResultKept { artifact, .. } => Some(*artifact),
        _ => None,
    });
    for (late, artifact) in plan.late.iter_mut().zip(kept) {
        late.id.get_or_insert(artifact);
    }
}

fn fit_branches(plan: &Plan, whole: &Whole) -> Result<(), String> {
    let rows: Vec<_> = whole.plan.branches.iter().collect();
    let fits = rows.len() == plan.branches.len()
        && rows.iter().zip(&plan.branches).all(|(row, branch)| {
            row.id == branch.id
                && row.after == branch.after
                && row.condition.source() == branch.condition
                && row.action == branch.action
        });
    match fits {
        true => Ok(()),
        false => Err(format!(
            "plan {}: the branches\n  the rows say {rows:?}\n the model says {:?}",
            plan.id, plan.branches
        )),
    }
}

fn fit_trail(plan: &Plan, whole: &Whole) -> Result<(), String> {
    let trail: Vec<Entry> = whole
        .trail
        .iter()
        .map(|entry| Entry {
            name: entry.event.name(),
            action: entry.event.action(),
            step: entry.event.step(),
            at: entry.at,
            commit: entry.commit_seq,
            who: entry.author.name.clone(),
            session: entry.author.session.clone(),
        })
        .collect();
    if trail == plan.trail {
        return Ok(());
    }
    let same = trail
        .iter()
        .zip(&plan.trail)
        .take_while(|(row, own)| row == own);
    let from = same.count();
    Err(format!(
        "plan {}: the trail from entry {}\n  the rows say {:#?}\n the model says {:#?}",
        plan.id,
        from + 1,
        &trail[from..],
        &plan.trail[from..]
    ))
}

/// Every refused result is there, with its words, and its entry says where.
fn fit_artifacts(plan: &Plan, whole: &Whole) -> Result<(), String> {
    let entries: Vec<_> = whole
        .trail
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::LateResultKept {
                step,
                artifact,
                refused,
            } => Some((*step, *artifact, *refused)),
            _ => None,
        })
        .collect();
    if whole.artifacts.len() != entries.len() {
        let (kept, said) = (whole.artifacts.len(), entries.len());
        return Err(format!(
            "{kept} refused results are kept, and {said} entries say so"
        ));
    }
    for (late, (step, artifact, refused)) in plan.late.iter().zip(&entries) {
        if (late.step, late.code) != (*step, *refused) || late.id != Some(*artifact) {
            return Err(format!(
                "a refused result is kept as {artifact} for {step}, {refused}, and not as {late:?}"
            ));
        }
        let found = whole.artifacts.iter().find(|found| found.id == *artifact);
        let found = found.ok_or_else(|| format!("the refused result {artifact} is not kept"))?;
        let content: serde_json::Value =
            serde_json::from_str(&found.content).map_err(|why| why.to_string())?;
        if found.kind != "late_result" || content["resultSummary"] != *late.summary {
            return Err(format!("{found:?} does not hold {late:?}"));
        }
    }
    Ok(())
}

//! What the engine shows of the plans, laid beside the model: status, lists, open reviews, what comes
//! next. Showing changes nothing, which the rows that are read afterwards say.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use onward_core::{PlanStatus, StepStatus, Timestamp};
use onward_engine::Engine;
use onward_engine::list::PlanQuery;
use onward_engine::next::Peek;
use onward_engine::status::StalledStep;
use onward_store::StepLine;

use crate::ask::caller;
use crate::model::{Held, Model, Plan, Step};
use crate::said::{Key, plain};

fn same<T: PartialEq + Debug>(what: &str, shown: &T, expected: &T) -> Result<(), String> {
    match shown == expected {
        true => Ok(()),
        false => Err(format!(
            "{what}\n  is shown as {shown:?}\n the model says {expected:?}"
        )),
    }
}

fn lines(shown: Vec<StepLine>) -> Vec<StepLine> {
    shown.into_iter().map(plain).collect()
}

/// Whether the status of a plan, its steps and what comes next are shown as they are.
pub(crate) async fn shown(engine: &Engine, key: &Key, plan: &Plan) -> Result<(), String> {
    let reader = caller(&key.0, "reader");
    let now = engine.now();
    let status = engine.status(&reader, key.1, None).await;
    let status = status.map_err(|why| format!("no status: {why}"))?;
    same("the head", &status.sheet.head, &plan.head())?;
    same("the derived status", &status.derived, &plan.derived())?;
    let of = |fits: &dyn Fn(&StepLine) -> bool| -> Vec<StepLine> {
        plan.lines().into_iter().filter(fits).collect()
    };
    let is = |status: StepStatus| of(&|line| line.status == status);
    same(
        "the pending steps",
        &lines(status.pending),
        &is(StepStatus::Pending),
    )?;
    same(
        "the failed steps",
        &lines(status.failed),
        &is(StepStatus::Failed),
    )?;
    let done = of(&|line| matches!(line.status, StepStatus::Completed | StepStatus::Skipped));
    same("the steps that are done", &lines(status.completed), &done)?;
    let open = of(&|line| {
        matches!(
            line.status,
            StepStatus::InProgress | StepStatus::AwaitingInput
        )
    });
    let current = status.current.map(plain);
    same("the current step", &current, &open.into_iter().next())?;
    let (stalled, next) = stalls(plan, None, now);
    same("the stalled steps", &status.stalled, &stalled)?;
    same("the next stall", &status.next_stall_at, &next)?;
    for given in brinks(plan, now) {
        let status = engine.status(&reader, key.1, Some(given)).await;
        let status = status.map_err(|why| format!("no status: {why}"))?;
        let (stalled, next) = stalls(plan, Some(given), now);
        same(
            "the steps stalled by another threshold",
            &status.stalled,
            &stalled,
        )?;
        same("their next stall", &status.next_stall_at, &next)?;
    }
    let steps = engine.list_steps(&reader, key.1, None, 0, 100).await;
    let steps = steps.map_err(|why| format!("no steps: {why}"))?;
    same("the list of steps", &lines(steps.steps), &plan.lines())?;
    peeked(engine, key, plan).await
}

/// Thresholds that the first step in progress has reached to the millisecond, and not quite.
fn brinks(plan: &Plan, now: Timestamp) -> Vec<Duration> {
    let mut steps = plan.steps.iter();
    let working = steps.find(|step| step.status == StepStatus::InProgress);
    let since = working.and_then(Step::held).map(Held::silent_since);
    let spans = since.map(|since| now.since(since)).into_iter();
    spans
        .flat_map(|span| [span, span.saturating_sub(Duration::from_millis(1))])
        .filter(|span| !span.is_zero())
        .collect()
}

/// Which steps are past their threshold, or the given one, and when the next one will be.
fn stalls(
    plan: &Plan,
    given: Option<Duration>,
    now: Timestamp,
) -> (Vec<StalledStep>, Option<Timestamp>) {
    let (mut stalled, mut next) = (Vec::new(), None);
    for (place, step) in plan.steps.iter().enumerate() {
        if plan.is_over() || step.status != StepStatus::InProgress {
            continue;
        }
        let threshold = given.unwrap_or(step.threshold(plan.threshold));
        let since = step.held().expect("somebody works on it").silent_since();
        let until = since.checked_add(threshold).expect("no run lasts so long");
        if now > until {
            stalled.push(StalledStep {
                step: step.id(),
                order: plan.order(place),
                since,
                elapsed: now.since(since),
                threshold,
            });
        } else {
            next = Some(next.map_or(until, |next: Timestamp| next.min(until)));
        }
    }
    (stalled, next)
}

async fn peeked(engine: &Engine, key: &Key, plan: &Plan) -> Result<(), String> {
    let reader = caller(&key.0, "reader");
    let peek = engine.peek(&reader, key.1).await;
    let peek = peek.map_err(|why| format!("no peek: {why}"))?;
    let untold = |step: &Step| {
        step.status == StepStatus::InProgress && step.held().is_some_and(|held| held.untold)
    };
    let free = |step: &Step| step.status == StepStatus::Pending && !plan.is_blocked(step);
    let first = |fits: &dyn Fn(&Step) -> bool| plan.steps.iter().position(fits);
    let hands_out = matches!(
        plan.status,
        PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled
    );
    let ready = first(&untold).or(first(&free)).filter(|_| hands_out);
    match (peek, ready) {
        (Peek::Step(mut step), Some(place)) => {
            step.updated_at = Timestamp::MIN;
            let expected = plan.steps[place].row(plan.order(place));
            same("what comes next", &*step, &expected)
        }
        (Peek::None(next), None) => {
            let expected = plan.nothing(engine.now());
            same("why nothing comes next", &next, &expected)
        }
        (peek, ready) => Err(format!("{peek:?} comes next, not {ready:?}")),
    }
}

/// Whether a tenant's lists are as they should be.
pub(crate) async fn listed(
    engine: &Engine,
    tenant: &Arc<str>,
    model: &Model,
) -> Result<(), String> {
    let reader = caller(tenant, "reader");
    let now = engine.now();
    let own = || model.plans.iter().filter(|((of, _), _)| of == tenant);
    let mut expected: BTreeMap<PlanStatus, u64> = BTreeMap::new();
    for (_, plan) in own() {
        *expected.entry(plan.status).or_default() += 1;
    }
    let counted = engine.count_plans(&reader).await;
    let counted = counted.map_err(|why| format!("no counts: {why}"))?;
    let mut counts: BTreeMap<_, _> = counted
        .into_iter()
        .map(|counted| (counted.status, counted.plans))
        .collect();
    counts.retain(|_, count| *count > 0);
    same("how many plans there are", &counts, &expected)?;
    let query = PlanQuery {
        limit: 100,
        ..PlanQuery::default()
    };
    let page = engine.list_plans(&reader, query).await;
    let page = page.map_err(|why| format!("no list: {why}"))?;
    let mut shown: Vec<_> = page
        .plans
        .iter()
        .map(|listed| (listed.sheet.head.id, listed.stalled))
        .collect();
    shown.sort_by_key(|(id, _)| *id);
    let open = own().filter(|(_, plan)| !plan.is_over());
    let expected: Vec<_> = open
        .map(|(key, plan)| (key.1, !stalls(plan, None, now).0.is_empty()))
        .collect();
    same("the list of plans", &shown, &expected)?;
    let reviews = engine.open_reviews(&reader, 100).await;
    let reviews = reviews.map_err(|why| format!("no reviews: {why}"))?;
    let mut shown: Vec<_> = reviews.iter().map(|open| (open.plan, open.step)).collect();
    shown.sort();
    let waits = |plan: &Plan| plan.status == PlanStatus::AwaitingReview;
    let mut expected = Vec::new();
    for (key, plan) in own().filter(|(_, plan)| waits(plan)) {
        let asked = plan
            .steps
            .iter()
            .filter(|step| step.status == StepStatus::AwaitingInput);
        expected.extend(asked.map(|step| (key.1, step.id())));
    }
    expected.sort();
    same("the open reviews", &shown, &expected)
}

//! Compares the engine's read operations with the model: status, lists, open reviews and the next
//! step. The check of the rows that follows shows that reads change nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use onward_core::step::Undelivered;
use onward_core::{PlanStatus, StepStatus, Timestamp};
use onward_engine::Engine;
use onward_engine::list::PlanQuery;
use onward_engine::peek::Peek;
use onward_engine::status::StalledStep;
use onward_store::StepLine;

use crate::model::{ClaimRecord, Model, Plan, Step};
use crate::request::caller;
use crate::response::{PlanKey, without_updated_at};

fn expect_equal<T: PartialEq + Debug>(name: &str, actual: &T, expected: &T) -> Result<(), String> {
    if actual == expected {
        return Ok(());
    }
    Err(format!(
        "{name}\n  actual: {actual:?}\n  expected: {expected:?}"
    ))
}

fn lines(steps: Vec<StepLine>) -> Vec<StepLine> {
    steps.into_iter().map(without_updated_at).collect()
}

/// Checks the status, the steps and the next step of a plan.
pub(crate) async fn check_plan(engine: &Engine, key: &PlanKey, plan: &Plan) -> Result<(), String> {
    let reader = caller(&key.0, "reader");
    let now = engine.now();
    let status = engine.status(&reader, key.1, None).await;
    let status = status.map_err(|error| format!("status failed: {error}"))?;
    expect_equal("head", &status.sheet.head, &plan.head())?;
    expect_equal("derived status", &status.derived, &plan.derived())?;
    let lines_where = |filter: &dyn Fn(&StepLine) -> bool| -> Vec<StepLine> {
        let active = plan.step_lines().into_iter();
        let active = active.filter(|line| line.superseded_by.is_none());
        active.filter(filter).collect()
    };
    let with_status = |status: StepStatus| lines_where(&|line| line.status == status);
    expect_equal(
        "pending steps",
        &lines(status.pending),
        &with_status(StepStatus::Pending),
    )?;
    expect_equal(
        "failed steps",
        &lines(status.failed),
        &with_status(StepStatus::Failed),
    )?;
    let done =
        lines_where(&|line| matches!(line.status, StepStatus::Completed | StepStatus::Skipped));
    expect_equal(
        "completed and skipped steps",
        &lines(status.completed),
        &done,
    )?;
    let open = lines_where(&|line| {
        matches!(
            line.status,
            StepStatus::InProgress | StepStatus::AwaitingInput
        )
    });
    let current = status.current.map(without_updated_at);
    expect_equal("current step", &current, &open.into_iter().next())?;
    let (stalled, next) = stalls(plan, None, now);
    expect_equal("stalled steps", &status.stalled, &stalled)?;
    expect_equal("next stall", &status.next_stall_at, &next)?;
    for threshold in exact_thresholds(plan, now) {
        let status = engine.status(&reader, key.1, Some(threshold)).await;
        let status = status.map_err(|error| format!("status failed: {error}"))?;
        let (stalled, next) = stalls(plan, Some(threshold), now);
        expect_equal(
            "stalled steps with a given threshold",
            &status.stalled,
            &stalled,
        )?;
        expect_equal(
            "next stall with a given threshold",
            &status.next_stall_at,
            &next,
        )?;
    }
    let steps = engine.list_steps(&reader, key.1, None, 0, 100).await;
    let steps = steps.map_err(|error| format!("list of steps failed: {error}"))?;
    expect_equal("list of steps", &lines(steps.steps), &plan.step_lines())?;
    check_peek(engine, key, plan).await
}

/// The exact inactivity of the first step in progress, and one millisecond less.
fn exact_thresholds(plan: &Plan, now: Timestamp) -> Vec<Duration> {
    let mut steps = plan.steps.iter();
    let in_progress = steps.find(|step| step.status == StepStatus::InProgress);
    let since = in_progress
        .and_then(Step::current_claim)
        .map(ClaimRecord::inactive_since);
    let spans = since.map(|since| now.since(since)).into_iter();
    spans
        .flat_map(|span| [span, span.saturating_sub(Duration::from_millis(1))])
        .filter(|span| !span.is_zero())
        .collect()
}

/// The steps past their threshold, or the given one, and the time of the next stall.
fn stalls(
    plan: &Plan,
    given: Option<Duration>,
    now: Timestamp,
) -> (Vec<StalledStep>, Option<Timestamp>) {
    let (mut stalled, mut next) = (Vec::new(), None);
    for (index, step) in plan.steps.iter().enumerate() {
        if plan.has_ended() || step.status != StepStatus::InProgress {
            continue;
        }
        let threshold = given.unwrap_or(step.threshold(plan.threshold));
        let since = step
            .current_claim()
            .expect("step in progress has a claim")
            .inactive_since();
        let until = match given {
            Some(given) => since.checked_add(given),
            None => step.active_until(plan.threshold),
        };
        let until = until.expect("timestamp is in range");
        if now > until {
            stalled.push(StalledStep {
                step: step.id(),
                order: plan.order(index),
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

async fn check_peek(engine: &Engine, key: &PlanKey, plan: &Plan) -> Result<(), String> {
    let reader = caller(&key.0, "reader");
    let peek = engine.peek(&reader, key.1).await;
    let peek = peek.map_err(|error| format!("peek failed: {error}"))?;
    let feedback_pending = |step: &Step| {
        step.status == StepStatus::InProgress
            && step.current_claim().is_some_and(|claim| {
                claim.undelivered == Some(Undelivered::Feedback) && claim.session.is_none()
            })
    };
    let ready = |step: &Step| step.status == StepStatus::Pending && !plan.is_blocked(step);
    let first = |filter: &dyn Fn(&Step) -> bool| plan.steps.iter().position(filter);
    let assigns_steps = matches!(
        plan.status,
        PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled
    );
    let next = first(&feedback_pending)
        .or_else(|| {
            let is_exhausted = plan.exhausted(engine.now()).is_some();
            let steps = plan.steps.iter().enumerate();
            let ready = steps.filter(|(_, step)| !is_exhausted && ready(step));
            let first = ready.min_by_key(|(index, step)| (Reverse(step.spec.priority), *index));
            first.map(|(index, _)| index)
        })
        .filter(|_| assigns_steps);
    match (peek, next) {
        (Peek::Step(mut step), Some(index)) => {
            step.updated_at = Timestamp::MIN;
            let expected = plan.steps[index].row(plan.order(index));
            expect_equal("next step", &*step, &expected)
        }
        (Peek::None(reason), None) => {
            let expected = plan.no_step_response(engine.now());
            expect_equal("reason for no next step", &reason, &expected)
        }
        (peek, next) => Err(format!("next step is {peek:?}, expected index {next:?}")),
    }
}

/// Checks a tenant's counts, plan list and open reviews.
pub(crate) async fn check_lists(
    engine: &Engine,
    tenant: &Arc<str>,
    model: &Model,
) -> Result<(), String> {
    let reader = caller(tenant, "reader");
    let now = engine.now();
    let own = || model.plans.iter().filter(|((owner, _), _)| owner == tenant);
    let mut expected: BTreeMap<PlanStatus, u64> = BTreeMap::new();
    for (_, plan) in own() {
        *expected.entry(plan.status).or_default() += 1;
    }
    let counted = engine.count_plans(&reader).await;
    let counted = counted.map_err(|error| format!("count of plans failed: {error}"))?;
    let mut counts: BTreeMap<_, _> = counted
        .into_iter()
        .map(|counted| (counted.status, counted.plans))
        .collect();
    counts.retain(|_, count| *count > 0);
    expect_equal("number of plans per status", &counts, &expected)?;
    let query = PlanQuery {
        limit: 100,
        ..PlanQuery::default()
    };
    let page = engine.list_plans(&reader, query).await;
    let page = page.map_err(|error| format!("list of plans failed: {error}"))?;
    let mut actual: Vec<_> = page
        .plans
        .iter()
        .map(|listed| (listed.sheet.head.id, listed.stalled))
        .collect();
    actual.sort_by_key(|(id, _)| *id);
    let open = own().filter(|(_, plan)| !plan.has_ended());
    let expected: Vec<_> = open
        .map(|(key, plan)| {
            let has_stalls = !stalls(plan, None, now).0.is_empty();
            (key.1, has_stalls || plan.is_stopped_by_budget(now))
        })
        .collect();
    expect_equal("list of plans", &actual, &expected)?;
    let reviews = engine.open_reviews(&reader, 100).await;
    let reviews = reviews.map_err(|error| format!("list of reviews failed: {error}"))?;
    let mut actual: Vec<_> = reviews.iter().map(|open| (open.plan, open.step)).collect();
    actual.sort();
    let mut expected = Vec::new();
    for (key, plan) in own().filter(|(_, plan)| !plan.has_ended()) {
        let awaiting = plan
            .steps
            .iter()
            .filter(|step| step.status == StepStatus::AwaitingInput);
        expected.extend(awaiting.map(|step| (key.1, step.id())));
    }
    expected.sort();
    expect_equal("open reviews", &actual, &expected)
}

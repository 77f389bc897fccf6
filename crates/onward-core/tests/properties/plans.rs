//! Generates valid plans: steps with forward or backward dependencies, thresholds, few attempts,
//! and branches with every action. Invalid ones are in `dependencies.rs` and `invalid_commands.rs`.

use std::sync::Arc;
use std::time::Duration;

use onward_core::budget::Budget;
use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef, StepSpec};
use onward_core::id::{PlanId, SessionId};
use onward_core::policy::{OnDependencyFailure, OnStall};
use onward_core::step::{FieldKind, FieldOption, Gates, ReviewBy, ReviewField, StepType};
use serde_json::json;

use crate::ids::IdSource;
use crate::rng::Rng;

/// A valid plan.
pub(crate) fn create(ids: &mut IdSource, rng: &mut Rng<'_>) -> CreatePlan {
    let total = 1 + rng.order_below(7);
    let forward = rng.one_in(4);
    let steps = (1..=total)
        .map(|order| {
            let mut step = spec(ids, rng);
            let others = if forward { total - order } else { order - 1 };
            let first = if forward { order + 1 } else { 1 };
            step.depends_on = some_orders(rng, first, others);
            step
        })
        .collect();
    let branches = (0..rng.below(9))
        .map(|_| {
            let after = 1 + rng.order_below(total);
            branch(ids, rng, after, total)
        })
        .collect();
    CreatePlan {
        branches,
        stall_threshold: rng
            .pick(&[None, None, Some(millis(60_000))])
            .copied()
            .flatten(),
        on_stall: rng.pick(&OnStall::ALL).copied().unwrap_or_default(),
        on_dependency_failure: if rng.one_in(3) {
            OnDependencyFailure::Block
        } else {
            OnDependencyFailure::Continue
        },
        session: session(rng),
        approval: rng.one_in(4).then(|| ids.review()),
        budget: rng.one_in(5).then(|| budget(rng)),
        ..CreatePlan::new(PlanId::from_u128(0), "test plan", "test question", steps)
    }
}

/// A budget that a walk may exhaust.
pub(crate) fn budget(rng: &mut Rng<'_>) -> Budget {
    let mut limit = |most: usize| {
        let max = u64::try_from(1 + rng.below(most)).unwrap_or(1);
        rng.one_in(2).then_some(max)
    };
    Budget {
        max_attempts: limit(6),
        max_duration_ms: limit(600_000),
        max_tokens: limit(1_000),
        max_steps: limit(8).or(Some(5)),
    }
}

/// A step without dependencies.
pub(crate) fn spec(ids: &mut IdSource, rng: &mut Rng<'_>) -> StepSpec {
    let step_type = rng
        .pick(&StepType::ALL)
        .copied()
        .unwrap_or(StepType::Custom);
    let mut spec = StepSpec::new(ids.step(), step_type, "test instructions");
    let thresholds = [None, None, None, Some(1), Some(1_000), Some(3_600_000)];
    spec.stall_threshold = rng.pick(&thresholds).copied().flatten().map(millis);
    let attempts = [None, Some(1), Some(2), Some(5)];
    spec.max_attempts = rng.pick(&attempts).copied().flatten();
    if rng.one_in(6) {
        spec.gates = Some(Arc::new(gates(rng)));
    }
    if rng.one_in(4) {
        spec.priority = u8::try_from(rng.below(10)).unwrap_or(0);
    }
    if rng.one_in(8) {
        spec.labels = labels(rng);
    }
    spec
}

fn labels(rng: &mut Rng<'_>) -> Vec<String> {
    let labels = ["linux", "gpu"].iter().filter(|_| rng.one_in(2));
    labels.map(|label| (*label).to_owned()).collect()
}

/// The labels that an agent offers: usually all.
pub(crate) fn offered_labels(rng: &mut Rng<'_>) -> Option<Vec<String>> {
    rng.one_in(4).then(|| labels(rng))
}

/// A typed question: one of two colours.
pub(crate) fn field(rng: &mut Rng<'_>) -> ReviewField {
    let option = |value: &str| FieldOption {
        value: value.to_owned(),
        title: None,
    };
    ReviewField {
        name: "colour".to_owned(),
        title: None,
        kind: FieldKind::Choice,
        options: vec![option("red"), option("blue")],
        default: rng.one_in(2).then(|| json!("blue").into()),
    }
}

fn gates(rng: &mut Rng<'_>) -> Gates {
    let schema = json!({ "type": "object", "required": ["n"] });
    let criteria = ["The tests pass.", "The text is short."];
    Gates {
        result_schema: rng.one_in(2).then(|| schema.into()),
        acceptance_criteria: criteria
            .iter()
            .take(rng.below(3))
            .map(|text| (*text).to_owned())
            .collect(),
        review_by: rng
            .pick(&[None, Some(ReviewBy::Person), Some(ReviewBy::OtherSession)])
            .copied()
            .flatten(),
    }
}

/// Up to three of the `count` orders from `first`, often none, possibly with duplicates.
fn some_orders(rng: &mut Rng<'_>, first: u32, count: u32) -> Vec<u32> {
    if count == 0 || rng.below(2) == 0 {
        return Vec::new();
    }
    (0..1 + rng.below(3))
        .map(|_| first + rng.order_below(count))
        .collect()
}

/// Steps to insert into a plan of `total` steps. They may depend on existing steps and on each other.
pub(crate) fn steps_to_insert(ids: &mut IdSource, rng: &mut Rng<'_>, total: u32) -> Vec<StepSpec> {
    let count = 1 + rng.order_below(2);
    (1..=count)
        .map(|index| {
            let mut step = spec(ids, rng);
            step.depends_on = if rng.one_in(4) {
                some_orders(rng, total + 1, index - 1)
            } else {
                some_orders(rng, 1, total)
            };
            step
        })
        .collect()
}

/// A valid branch.
pub(crate) fn branch(
    ids: &mut IdSource,
    rng: &mut Rng<'_>,
    after_order: u32,
    total: u32,
) -> BranchSpec {
    let conditions = ["true", "confidence >= 0.8", "true", "false", "result.n > 3"];
    let condition = rng.pick(&conditions).copied().unwrap_or("true").to_owned();
    let following = total.saturating_sub(after_order);
    let action = match rng.below(10) {
        0 => ActionSpec::Continue,
        1..=5 if following > 0 => {
            ActionSpec::SkipTo(StepRef::Order(after_order + 1 + rng.order_below(following)))
        }
        9 => ActionSpec::Fail {
            reason: rng.one_in(2).then(|| "test reason".to_owned()),
        },
        _ => ActionSpec::AddSteps(steps_to_insert(ids, rng, total)),
    };
    BranchSpec {
        id: ids.branch(),
        after_order,
        condition,
        action,
    }
}

/// One of three sessions, or none.
pub(crate) fn session(rng: &mut Rng<'_>) -> Option<SessionId> {
    let names = [
        None,
        Some("session 1"),
        Some("session 2"),
        Some("session 3"),
    ];
    rng.pick(&names).copied().flatten().map(SessionId::new)
}

/// A duration in milliseconds.
pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

//! Plans that can be made: steps with dependencies either way, thresholds, few attempts, and branches
//! with every action. What cannot be made stands in `dependencies.rs` and `nonsense.rs`.

use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef, StepSpec};
use onward_core::id::{PlanId, SessionId};
use onward_core::policy::OnStall;
use onward_core::step::StepType;

use crate::dice::Dice;
use crate::walk::{Fresh, millis};

/// A plan that can be made.
pub(crate) fn sound(fresh: &mut Fresh, dice: &mut Dice<'_>) -> CreatePlan {
    let total = 1 + dice.order_below(7);
    let upwards = dice.one_in(4);
    let steps = (1..=total)
        .map(|order| {
            let mut step = spec(fresh, dice);
            let others = if upwards { total - order } else { order - 1 };
            let first = if upwards { order + 1 } else { 1 };
            step.depends_on = some_of(dice, first, others);
            step
        })
        .collect();
    let branches = (0..dice.below(9))
        .map(|_| {
            let after = 1 + dice.order_below(total);
            branch(fresh, dice, after, total)
        })
        .collect();
    CreatePlan {
        branches,
        stall_threshold: dice
            .pick(&[None, None, Some(millis(60_000))])
            .copied()
            .flatten(),
        on_stall: dice.pick(&OnStall::ALL).copied().unwrap_or_default(),
        session: session(dice),
        ..CreatePlan::new(PlanId::from_u128(0), "a plan", "why?", steps)
    }
}

/// A step that depends on nothing.
pub(crate) fn spec(fresh: &mut Fresh, dice: &mut Dice<'_>) -> StepSpec {
    let step_type = dice
        .pick(&StepType::ALL)
        .copied()
        .unwrap_or(StepType::Custom);
    let mut spec = StepSpec::new(fresh.step(), step_type, "find out");
    let thresholds = [None, None, None, Some(1), Some(1_000), Some(3_600_000)];
    spec.stall_threshold = dice.pick(&thresholds).copied().flatten().map(millis);
    let attempts = [None, Some(1), Some(2), Some(5)];
    spec.max_attempts = dice.pick(&attempts).copied().flatten();
    spec
}

/// Up to three of the `count` orders from `first`, mostly none; one may be named twice.
fn some_of(dice: &mut Dice<'_>, first: u32, count: u32) -> Vec<u32> {
    if count == 0 || dice.below(2) == 0 {
        return Vec::new();
    }
    (0..1 + dice.below(3))
        .map(|_| first + dice.order_below(count))
        .collect()
}

/// Steps to be inserted after an order of a plan of so many steps: they may depend on those before
/// them, on each other, and on those behind.
pub(crate) fn inserted(
    fresh: &mut Fresh,
    dice: &mut Dice<'_>,
    after: u32,
    total: u32,
) -> Vec<StepSpec> {
    let count = 1 + dice.order_below(2);
    (1..=count)
        .map(|place| {
            let mut step = spec(fresh, dice);
            step.depends_on = if dice.one_in(4) {
                some_of(dice, after + count + 1, total.saturating_sub(after))
            } else {
                some_of(dice, 1, after + place - 1)
            };
            step
        })
        .collect()
}

/// A branch that can be made.
pub(crate) fn branch(
    fresh: &mut Fresh,
    dice: &mut Dice<'_>,
    after_order: u32,
    total: u32,
) -> BranchSpec {
    let conditions = ["true", "confidence >= 0.8", "true", "false", "result.n > 3"];
    let condition = dice.pick(&conditions).copied().unwrap_or("true").to_owned();
    let behind = total.saturating_sub(after_order);
    let action = match dice.below(10) {
        0 => ActionSpec::Continue,
        1..=5 if behind > 0 => {
            ActionSpec::SkipTo(StepRef::Order(after_order + 1 + dice.order_below(behind)))
        }
        9 => ActionSpec::Fail {
            reason: dice.one_in(2).then(|| "no use".to_owned()),
        },
        _ => ActionSpec::AddSteps(inserted(fresh, dice, after_order, total)),
    };
    BranchSpec {
        id: fresh.branch(),
        after_order,
        condition,
        action,
    }
}

/// One of a few sessions, or none.
pub(crate) fn session(dice: &mut Dice<'_>) -> Option<SessionId> {
    let names = [None, Some("one"), Some("two"), Some("three")];
    dice.pick(&names).copied().flatten().map(SessionId::new)
}

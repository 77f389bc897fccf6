//! Plans to work on, with dependencies and branches of every kind.

use std::time::Duration;

use onward_core::StepType;
use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef, StepSpec};
use onward_core::policy::OnStall;
use onward_engine::Engine;
use serde_json::json;

use crate::dice::Dice;
use onward_core::step::StepResult;

/// A step that says this.
pub fn step(engine: &Engine, instructions: &str) -> StepSpec {
    StepSpec::new(engine.fresh_step(), StepType::Custom, instructions)
}

/// A plan of about this many steps, each of which may wait for some before it, with branches.
pub fn branching(engine: &Engine, dice: &mut Dice, name: &str, steps: u32) -> CreatePlan {
    let specs = (1..=steps).map(|order| {
        let mut spec = step(engine, &format!("Do part {order} of {name}."));
        for back in [2, 5] {
            if order > back && dice.percent(30) {
                spec.depends_on.push(order - back);
            }
        }
        spec
    });
    let specs = specs.collect();
    let mut plan = CreatePlan::new(engine.fresh_plan(), name, "What holds?", specs);
    for order in 1..=steps {
        let far = 1 + u32::try_from(dice.below(5)).unwrap_or(0);
        let action = match dice.below(8) {
            0 if order + far <= steps => ActionSpec::SkipTo(StepRef::Order(order + far)),
            1 => ActionSpec::AddSteps(vec![step(engine, "Look closer."), step(engine, "Again.")]),
            2 => ActionSpec::Continue,
            _ => continue,
        };
        for condition in ["result.absent.path > 1", "confidence > 0.5"] {
            plan.branches.push(BranchSpec {
                id: engine.fresh_branch(),
                after_order: order,
                condition: condition.to_owned(),
                action: match &action {
                    // Ids are used once.
                    ActionSpec::AddSteps(_) => ActionSpec::AddSteps(vec![step(engine, "More.")]),
                    other => other.clone(),
                },
            });
        }
    }
    plan
}

/// The same, of a kind that stalls soon, and may fail.
pub fn restless(engine: &Engine, dice: &mut Dice, name: &str) -> CreatePlan {
    let steps = 6 + u32::try_from(dice.below(8)).unwrap_or(0);
    let mut plan = branching(engine, dice, name, steps);
    plan.branches.push(BranchSpec {
        id: engine.fresh_branch(),
        after_order: steps,
        condition: "confidence < 0.1".to_owned(),
        action: ActionSpec::Fail { reason: None },
    });
    let thresholds = [5, 50, 1000].map(Duration::from_millis);
    plan.stall_threshold = dice.one_of(&thresholds);
    plan.on_stall = dice.one_of(&OnStall::ALL).unwrap_or_default();
    plan
}

/// A result that no other has.
pub fn result(dice: &mut Dice, text: &str) -> StepResult {
    let size = usize::try_from(dice.below(600)).unwrap_or(0);
    StepResult {
        confidence: Some(dice.below(1000) as f64 / 1000.0),
        data: Some(json!({ "found": "x".repeat(size), "sources": [1, 2, 3] })),
        ..StepResult::of_summary(text)
    }
}

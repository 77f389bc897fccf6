//! Random plans with dependencies and branches, and random results.

use std::time::Duration;

use onward_core::StepType;
use onward_core::budget::Budget;
use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, StepRef, StepSpec};
use onward_core::policy::{OnDependencyFailure, OnStall};
use onward_engine::Engine;
use onward_testbed::Rng;
use serde_json::json;

use onward_core::step::StepResult;

pub fn step(engine: &Engine, instructions: &str) -> StepSpec {
    StepSpec::new(engine.new_step_id(), StepType::Custom, instructions)
}

/// A plan with random dependencies and branches. Taken branches add or skip steps.
pub fn branching(engine: &Engine, rng: &mut Rng, name: &str, steps: u32) -> CreatePlan {
    let specs = (1..=steps).map(|order| {
        let mut spec = step(engine, &format!("Do part {order} of {name}."));
        for back in [2, 5] {
            if order > back && rng.percent(30) {
                spec.depends_on.push(order - back);
            }
        }
        spec
    });
    let specs = specs.collect();
    let mut plan = CreatePlan::new(engine.new_plan_id(), name, "What is true?", specs);
    for order in 1..=steps {
        let distance = 1 + u32::try_from(rng.below(5)).unwrap_or(0);
        let action = match rng.below(8) {
            0 if order + distance <= steps => ActionSpec::SkipTo(StepRef::Order(order + distance)),
            1 => ActionSpec::AddSteps(vec![
                step(engine, "Check the details."),
                step(engine, "Repeat."),
            ]),
            2 => ActionSpec::Continue,
            _ => continue,
        };
        for condition in ["result.absent.path > 1", "confidence > 0.5"] {
            plan.branches.push(BranchSpec {
                id: engine.new_branch_id(),
                after_order: order,
                condition: condition.to_owned(),
                action: match &action {
                    // Step ids must be unique.
                    ActionSpec::AddSteps(_) => ActionSpec::AddSteps(vec![step(engine, "More.")]),
                    other => other.clone(),
                },
            });
        }
    }
    plan
}

/// Like [`branching`], with short stall thresholds and a branch that fails the plan. Some require
/// approval before the start, or have a budget.
pub fn stalling(engine: &Engine, rng: &mut Rng, name: &str) -> CreatePlan {
    let steps = 6 + u32::try_from(rng.below(8)).unwrap_or(0);
    let mut plan = branching(engine, rng, name, steps);
    plan.branches.push(BranchSpec {
        id: engine.new_branch_id(),
        after_order: steps,
        condition: "confidence < 0.1".to_owned(),
        action: ActionSpec::Fail { reason: None },
    });
    let thresholds = [5, 50, 1000].map(Duration::from_millis);
    plan.stall_threshold = rng.pick(&thresholds).copied();
    plan.on_stall = rng.pick(&OnStall::ALL).copied().unwrap_or_default();
    // So that every plan ends without a person.
    plan.on_dependency_failure = OnDependencyFailure::Continue;
    plan.approval = rng.percent(25).then(|| engine.new_review_id());
    plan.budget = rng.percent(25).then(|| Budget {
        max_attempts: Some(3 + rng.below(6)),
        ..Budget::default()
    });
    plan
}

/// A result of random size and confidence.
pub fn result(rng: &mut Rng, text: &str) -> StepResult {
    let size = usize::try_from(rng.below(600)).unwrap_or(0);
    StepResult {
        confidence: Some(rng.below(1000) as f64 / 1000.0),
        data: Some(json!({ "found": "x".repeat(size), "sources": [1, 2, 3] }).into()),
        ..StepResult::from_summary(text)
    }
}

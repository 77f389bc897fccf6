//! Random plans; some are invalid.

use std::sync::Arc;
use std::time::Duration;

use onward_core::StepType;
use onward_core::budget::Budget;
use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, Modification, StepRef, StepSpec};
use onward_core::id::{BranchId, PlanId, ReviewId, StepId};
use onward_core::policy::{OnDependencyFailure, OnStall};
use onward_core::step::{Gates, ReviewBy};
use onward_testbed::Rng;
use serde_json::json;

use super::Agents;
use crate::conditions;
use crate::request::{Operation, Request};

/// Stall thresholds in milliseconds, from minimal to longer than most runs.
const THRESHOLDS: [u64; 6] = [1, 997, 10_000, 60_000, 1_800_000, 86_400_000];

impl Agents {
    /// Creates a plan, or repeats an earlier creation with the same key.
    pub(super) fn create(&mut self, agent: usize) -> Request {
        let rng = &mut self.rng;
        let repeated = if rng.percent(25) {
            rng.pick(&self.keyed_plans).cloned()
        } else {
            None
        };
        let (plan, key) = match repeated {
            Some((mut plan, key)) => {
                if rng.percent(20) {
                    plan.name.push('!');
                }
                (with_new_ids(plan, rng), Some(key))
            }
            None => {
                self.created_plans += 1;
                let mut plan = plan(rng);
                plan.session = self.agents[agent].session.clone();
                let key = rng
                    .percent(40)
                    .then(|| format!("key{}", self.created_plans));
                if let Some(key) = &key {
                    self.keyed_plans.push((plan.clone(), key.clone()));
                }
                (plan, key)
            }
        };
        let tenant = Arc::clone(&self.tenants[0]);
        self.request(agent, &tenant, Operation::Create(Box::new(plan), key))
    }
}

fn plan(rng: &mut Rng) -> CreatePlan {
    let max = rng.between(1, 12);
    let count = rng.between(1, max);
    let steps = specs(rng, 0, count, count);
    let total = u32::try_from(count).unwrap_or(0);
    let id = PlanId::from_u128(rng.id());
    let mut plan = CreatePlan::new(id, "Tides", "Why are there tides?", steps);
    let branches = rng.below(5);
    plan.branches = (0..branches).map(|_| branch(rng, total)).collect();
    plan.stall_threshold = threshold(rng, 75);
    plan.on_stall = rng.weighted(&[
        (45, OnStall::Mark),
        (30, OnStall::Requeue),
        (15, OnStall::Fail),
        (10, OnStall::Ignore),
    ]);
    plan.on_dependency_failure = rng.weighted(&[
        (50, OnDependencyFailure::Block),
        (50, OnDependencyFailure::Continue),
    ]);
    plan.routing.priority = u8::try_from(rng.below(10)).unwrap_or(0);
    plan.routing.project_key = rng.percent(30).then(|| "site".to_owned());
    plan.output_formatting_notes = rng.percent(20).then(|| "in two columns".to_owned());
    plan.approval = approval(plan.plan);
    plan.budget = rng.percent(20).then(|| budget(rng));
    if rng.percent(2) {
        plan.steps.clear();
    }
    plan
}

/// A budget that the agents may exhaust.
pub(super) fn budget(rng: &mut Rng) -> Budget {
    Budget {
        max_steps: rng.percent(50).then(|| rng.between(1, 12)),
        max_attempts: rng.percent(50).then(|| rng.between(1, 15)),
        max_duration_ms: rng.percent(40).then(|| rng.between(1, 3_600_000)),
        max_tokens: Some(1_000_000),
    }
}

/// One plan in eight requires approval.
fn approval(plan: PlanId) -> Option<ReviewId> {
    let is_required = plan.as_uuid().as_u128().is_multiple_of(8);
    is_required.then(|| review_of(plan))
}

/// The id of the review of a plan's start.
fn review_of(plan: PlanId) -> ReviewId {
    ReviewId::from_u128(!plan.as_uuid().as_u128())
}

fn threshold(rng: &mut Rng, percent: u64) -> Option<Duration> {
    let millis = rng.pick(&THRESHOLDS).copied().unwrap_or(1);
    rng.percent(percent).then(|| Duration::from_millis(millis))
}

/// `count` steps after `preceding` existing ones, in a plan with `total` steps in the end.
pub(super) fn specs(rng: &mut Rng, preceding: u64, count: u64, total: u64) -> Vec<StepSpec> {
    let spec = |number: u64| {
        let id = StepId::from_u128(rng.id());
        let kind = *rng.pick(&StepType::ALL).unwrap_or(&StepType::Search);
        let mut spec = StepSpec::new(id, kind, format!("Do part {number}."));
        spec.title = rng.percent(30).then(|| format!("Part {number}"));
        spec.stall_threshold = threshold(rng, 15);
        spec.max_attempts = rng.percent(50).then(|| rng.order_below(4) + 1);
        while rng.percent(25) {
            // Usually an earlier step; sometimes any order, also an invalid one.
            let order = if !rng.percent(96) {
                rng.between(0, total + 1)
            } else if preceding + number > 1 {
                rng.between(1, preceding + number - 1)
            } else {
                continue;
            };
            spec.depends_on.push(u32::try_from(order).unwrap_or(0));
        }
        if rng.percent(15) {
            spec.gates = Some(Arc::new(gates(rng)));
        }
        if rng.percent(20) {
            spec.priority = u8::try_from(rng.below(10)).unwrap_or(0);
        }
        if rng.percent(4) {
            spec.labels = vec!["linux".to_owned(), "gpu".to_owned()];
        }
        if rng.percent(1) {
            spec.instructions = " ".to_owned();
        }
        spec
    };
    (1..=count).map(spec).collect()
}

/// The model knows this schema: the data has a verdict.
fn gates(rng: &mut Rng) -> Gates {
    let schema = json!({ "type": "object", "required": ["verdict"] });
    let criteria = ["It is merged.", "It is short."];
    Gates {
        result_schema: rng.percent(40).then(|| schema.into()),
        acceptance_criteria: (criteria.iter().take(rng.index(3)))
            .map(|text| (*text).to_owned())
            .collect(),
        review_by: rng.percent(50).then_some(ReviewBy::Person),
    }
}

pub(super) fn branch(rng: &mut Rng, total: u32) -> BranchSpec {
    let after_order = if rng.percent(97) {
        rng.order_below(total.max(1)) + 1
    } else {
        rng.order_below(total + 3)
    };
    let condition = if rng.percent(97) {
        rng.pick(&conditions::ALL).map(|(source, _)| *source)
    } else {
        rng.pick(&conditions::INVALID).copied()
    };
    let action = match rng.below(100) {
        0..15 => ActionSpec::Continue,
        15..50 => {
            let following = total.saturating_sub(after_order).max(1);
            let order = if rng.percent(95) {
                after_order + 1 + rng.order_below(following)
            } else {
                rng.order_below(total + 2)
            };
            ActionSpec::SkipTo(StepRef::Order(order))
        }
        50..84 => {
            let count = rng.between(1, 2);
            let preceding = u64::from(after_order);
            ActionSpec::AddSteps(specs(rng, preceding, count, u64::from(total) + count))
        }
        _ => ActionSpec::Fail {
            reason: rng.percent(50).then(|| "not useful".to_owned()),
        },
    };
    BranchSpec {
        id: BranchId::from_u128(rng.id()),
        after_order,
        condition: condition.unwrap_or("true").to_owned(),
        action,
    }
}

/// The same content with new ids, as in a retried call.
fn with_new_ids(mut plan: CreatePlan, rng: &mut Rng) -> CreatePlan {
    plan.plan = PlanId::from_u128(rng.id());
    plan.approval = plan.approval.map(|_| review_of(plan.plan));
    renew_step_ids(&mut plan.steps, rng);
    for branch in &mut plan.branches {
        renew_branch_ids(branch, rng);
    }
    plan
}

fn renew_step_ids(steps: &mut [StepSpec], rng: &mut Rng) {
    for step in steps {
        step.id = StepId::from_u128(rng.id());
    }
}

fn renew_branch_ids(branch: &mut BranchSpec, rng: &mut Rng) {
    branch.id = BranchId::from_u128(rng.id());
    if let ActionSpec::AddSteps(steps) = &mut branch.action {
        renew_step_ids(steps, rng);
    }
}

impl Request {
    /// The same request with new ids, as the server generates them for a retried call.
    pub(crate) fn retry(&self, rng: &mut Rng) -> Request {
        let mut request = self.clone();
        match &mut request.operation {
            Operation::Create(plan, _) => **plan = with_new_ids(plan.as_ref().clone(), rng),
            Operation::Modify { modification, .. } => match modification {
                Modification::AddSteps { steps, .. } => renew_step_ids(steps, rng),
                Modification::AddBranch { branch } => renew_branch_ids(branch, rng),
                _ => {}
            },
            _ => {}
        }
        request
    }
}

//! Plans as agents write them, by chance; some cannot be.

use std::sync::Arc;
use std::time::Duration;

use onward_core::StepType;
use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, Modification, StepRef, StepSpec};
use onward_core::id::{BranchId, PlanId, StepId};
use onward_core::policy::OnStall;

use super::Crowd;
use crate::ask::{Ask, What};
use crate::conditions;
use crate::dice::Dice;

/// Thresholds, in milliseconds: from hardly any to longer than most runs.
const THRESHOLDS: [u64; 6] = [1, 997, 10_000, 60_000, 1_800_000, 86_400_000];

impl Crowd {
    /// A plan; or one that was made before, under the same key.
    pub(super) fn create(&mut self, agent: usize) -> Ask {
        let dice = &mut self.dice;
        let again = match dice.percent(25) {
            true => dice.pick(&self.keyed).cloned(),
            false => None,
        };
        let (plan, key) = match again {
            Some((mut plan, key)) => {
                if dice.percent(20) {
                    plan.name.push('!');
                }
                (renamed(plan, dice), Some(key))
            }
            None => {
                self.begun += 1;
                let mut plan = plan(dice);
                plan.session = self.agents[agent].session.clone();
                let key = dice.percent(40).then(|| format!("key{}", self.begun));
                if let Some(key) = &key {
                    self.keyed.push((plan.clone(), key.clone()));
                }
                (plan, key)
            }
        };
        let tenant = Arc::clone(&self.tenants[0]);
        self.ask(agent, &tenant, What::Create(Box::new(plan), key))
    }
}

fn plan(dice: &mut Dice) -> CreatePlan {
    let most = dice.between(1, 12);
    let count = dice.between(1, most);
    let steps = specs(dice, 0, count, count);
    let total = u32::try_from(count).unwrap_or(0);
    let id = PlanId::from_u128(dice.id());
    let mut plan = CreatePlan::new(id, "Tides", "Why are there tides?", steps);
    let branches = dice.below(5);
    plan.branches = (0..branches).map(|_| branch(dice, total)).collect();
    plan.stall_threshold = threshold(dice, 75);
    plan.on_stall = dice.weighed(&[
        (45, OnStall::Mark),
        (30, OnStall::Requeue),
        (15, OnStall::Fail),
        (10, OnStall::Ignore),
    ]);
    plan.output_formatting_notes = dice.percent(20).then(|| "in two columns".to_owned());
    if dice.percent(2) {
        plan.steps.clear();
    }
    plan
}

fn threshold(dice: &mut Dice, often: u64) -> Option<Duration> {
    let millis = dice.pick(&THRESHOLDS).copied().unwrap_or(1);
    dice.percent(often).then(|| Duration::from_millis(millis))
}

/// So many steps, which come behind so many others, into a plan that has so many in the end.
pub(super) fn specs(dice: &mut Dice, behind: u64, count: u64, total: u64) -> Vec<StepSpec> {
    let spec = |number: u64| {
        let id = StepId::from_u128(dice.id());
        let kind = *dice.pick(&StepType::ALL).unwrap_or(&StepType::Search);
        let mut spec = StepSpec::new(id, kind, format!("Do part {number}."));
        spec.title = dice.percent(30).then(|| format!("Part {number}"));
        spec.stall_threshold = threshold(dice, 15);
        spec.max_attempts = dice.percent(50).then(|| dice.order_below(4) + 1);
        while dice.percent(25) {
            // Mostly what stands before it; now and then anything.
            let order = match dice.percent(96) {
                true if behind + number > 1 => dice.between(1, behind + number - 1),
                true => continue,
                false => dice.between(0, total + 1),
            };
            spec.depends_on.push(u32::try_from(order).unwrap_or(0));
        }
        if dice.percent(1) {
            spec.instructions = " ".to_owned();
        }
        spec
    };
    (1..=count).map(spec).collect()
}

pub(super) fn branch(dice: &mut Dice, total: u32) -> BranchSpec {
    let after_order = match dice.percent(97) {
        true => dice.order_below(total.max(1)) + 1,
        false => dice.order_below(total + 3),
    };
    let condition = match dice.percent(97) {
        true => dice.pick(&conditions::ALL).map(|(source, _)| *source),
        false => dice.pick(&conditions::NONE).copied(),
    };
    let action = match dice.below(100) {
        0..15 => ActionSpec::Continue,
        15..50 => {
            let behind = total.saturating_sub(after_order).max(1);
            let order = match dice.percent(95) {
                true => after_order + 1 + dice.order_below(behind),
                false => dice.order_below(total + 2),
            };
            ActionSpec::SkipTo(StepRef::Order(order))
        }
        50..84 => {
            let count = dice.between(1, 2);
            let behind = u64::from(after_order);
            ActionSpec::AddSteps(specs(dice, behind, count, u64::from(total) + count))
        }
        _ => ActionSpec::Fail {
            reason: dice.percent(50).then(|| "not worth it".to_owned()),
        },
    };
    BranchSpec {
        id: BranchId::from_u128(dice.id()),
        after_order,
        condition: condition.unwrap_or("true").to_owned(),
        action,
    }
}

/// The same content under fresh ids, as a call that is sent again has.
fn renamed(mut plan: CreatePlan, dice: &mut Dice) -> CreatePlan {
    plan.plan = PlanId::from_u128(dice.id());
    rename_steps(&mut plan.steps, dice);
    for branch in &mut plan.branches {
        rename_branch(branch, dice);
    }
    plan
}

fn rename_steps(steps: &mut [StepSpec], dice: &mut Dice) {
    for step in steps {
        step.id = StepId::from_u128(dice.id());
    }
}

fn rename_branch(branch: &mut BranchSpec, dice: &mut Dice) {
    branch.id = BranchId::from_u128(dice.id());
    if let ActionSpec::AddSteps(steps) = &mut branch.action {
        rename_steps(steps, dice);
    }
}

impl Ask {
    /// The same call once more: whoever speaks for an agent gives what it makes fresh ids each time.
    pub(crate) fn again(&self, dice: &mut Dice) -> Ask {
        let mut ask = self.clone();
        match &mut ask.what {
            What::Create(plan, _) => **plan = renamed(plan.as_ref().clone(), dice),
            What::Modify { modification, .. } => match modification {
                Modification::AddSteps { steps, .. } => rename_steps(steps, dice),
                Modification::AddBranch { branch } => rename_branch(branch, dice),
                _ => {}
            },
            _ => {}
        }
        ask
    }
}

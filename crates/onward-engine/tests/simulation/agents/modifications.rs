//! Random modifications of a plan; some are invalid.

use std::time::Duration;

use onward_core::command::{ActionSpec, Modification, PlanUpdate, StepRef, StepUpdate};
use onward_core::{StepId, StepStatus, StepType};

use super::Agents;
use super::plans::{branch, budget, specs};
use crate::model::{Plan, Step};

impl Agents {
    pub(super) fn modification(&mut self, plan: &Plan) -> Modification {
        let rng = &mut self.rng;
        let all: Vec<StepId> = plan.steps.iter().map(Step::id).collect();
        let ids = |status: StepStatus| -> Vec<StepId> {
            let steps = plan.steps.iter().filter(|step| step.status == status);
            steps.map(Step::id).collect()
        };
        let (pending, in_progress) = (ids(StepStatus::Pending), ids(StepStatus::InProgress));
        let unknown = StepId::from_u128(rng.id());
        // Usually a step in a state that allows the modification.
        let candidates = if rng.percent(50) {
            &in_progress
        } else {
            &pending
        };
        let pool = if rng.percent(80) && !candidates.is_empty() {
            candidates
        } else {
            &all
        };
        let step = rng.pick(pool).copied().unwrap_or(unknown);
        let step = if rng.percent(5) { unknown } else { step };
        let total = plan.total();
        match rng.below(100) {
            0..20 => {
                let insert_after = rng.percent(70).then(|| rng.order_below(total + 1));
                let insert_after = if rng.percent(3) {
                    Some(total + 5)
                } else {
                    insert_after
                };
                let count = rng.between(1, 3);
                let preceding = u64::from(insert_after.unwrap_or(total));
                let steps = if rng.percent(2) {
                    Vec::new()
                } else {
                    specs(rng, preceding, count, u64::from(total) + count)
                };
                Modification::AddSteps {
                    steps,
                    insert_after,
                }
            }
            20..34 => {
                let pool = if rng.percent(55) { &pending } else { &all };
                let step = rng.pick(pool).copied().unwrap_or(step);
                Modification::RemoveStep { step }
            }
            34..47 => {
                let mut steps = all;
                for index in (1..steps.len()).rev() {
                    steps.swap(index, rng.index(index + 1));
                }
                match rng.below(12) {
                    0 => steps.truncate(1),
                    1 => steps.push(unknown),
                    2 => steps.extend(steps.first().copied()),
                    _ => {}
                }
                Modification::ReorderSteps { steps }
            }
            47..50 => Modification::UpdatePlan {
                update: PlanUpdate {
                    project_key: rng.percent(50).then(|| "site".to_owned()),
                    labels: rng.percent(30).then(|| vec!["urgent".to_owned()]),
                    priority: rng
                        .percent(50)
                        .then(|| 1 + u8::try_from(rng.below(10)).unwrap_or(0)),
                },
            },
            50..53 => self.update_step(plan, step),
            53..57 => Modification::UpdateInstructions {
                step,
                instructions: if rng.percent(5) {
                    String::new()
                } else {
                    format!("Use method {}.", rng.below(9))
                },
            },
            57..60 => {
                let ended: Vec<StepId> = (plan.steps.iter())
                    .filter(|step| step.has_ended())
                    .map(Step::id)
                    .collect();
                let step = rng.pick(&ended).copied().unwrap_or(step);
                Modification::RedoStep {
                    step,
                    reason: if rng.percent(5) {
                        String::new()
                    } else {
                        "wrong source".to_owned()
                    },
                    cascade: rng.percent(50),
                    ids: (0..plan.steps.len())
                        .map(|_| StepId::from_u128(rng.id()))
                        .collect(),
                }
            }
            60..68 => Modification::FailStep {
                step,
                reason: rng.percent(50).then(|| "not needed".to_owned()),
            },
            68..84 => {
                let step = rng.pick(&in_progress).copied().unwrap_or(step);
                Modification::RequeueStep { step }
            }
            84..94 => Modification::SetBudget {
                budget: rng.percent(60).then(|| budget(rng)),
                by_person: rng.percent(25),
            },
            _ => {
                let mut branch = branch(rng, total);
                if let ActionSpec::SkipTo(target) = &mut branch.action
                    && rng.percent(40)
                {
                    *target = StepRef::Id(step);
                }
                Modification::AddBranch { branch }
            }
        }
    }

    fn update_step(&mut self, plan: &Plan, step: StepId) -> Modification {
        let rng = &mut self.rng;
        let pending: Vec<StepId> = (plan.steps.iter())
            .filter(|step| step.status == StepStatus::Pending)
            .map(Step::id)
            .collect();
        let step = rng.pick(&pending).copied().unwrap_or(step);
        let all: Vec<StepId> = plan.steps.iter().map(Step::id).collect();
        let mut update = StepUpdate::default();
        if rng.percent(70) {
            let count = rng.between(0, 2);
            let needed = (0..count).map(|_| {
                if rng.percent(50) {
                    StepRef::Order(rng.order_below(plan.total() + 2))
                } else {
                    StepRef::Id(rng.pick(&all).copied().unwrap_or(step))
                }
            });
            update.depends_on = Some(needed.collect());
        }
        if rng.percent(30) {
            update.title = Some(["", "Sources", "Notes"][rng.index(3)].to_owned());
            update.step_type = Some(StepType::Critique);
        }
        if rng.percent(20) {
            update.instructions = Some(if rng.percent(10) { "" } else { "Use both." }.to_owned());
        }
        if rng.percent(30) {
            update.stall_threshold = Some(rng.percent(50).then(|| Duration::from_secs(600)));
        }
        if rng.percent(30) {
            update.priority = Some(u8::try_from(rng.below(10)).unwrap_or(0));
            update.labels = Some(vec!["gpu".to_owned()]).filter(|_| rng.percent(20));
        }
        Modification::UpdateStep { step, update }
    }
}

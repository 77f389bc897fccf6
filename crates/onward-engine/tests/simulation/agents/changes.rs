//! Changes of a plan's list, by chance; some cannot be.

use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::{StepId, StepStatus};

use super::Crowd;
use super::plans::{branch, specs};
use crate::model::{Plan, Step};

impl Crowd {
    pub(super) fn modification(&mut self, plan: &Plan) -> Modification {
        let dice = &mut self.dice;
        let all: Vec<StepId> = plan.steps.iter().map(Step::id).collect();
        let of = |status: StepStatus| -> Vec<StepId> {
            let steps = plan.steps.iter().filter(|step| step.status == status);
            steps.map(Step::id).collect()
        };
        let (pending, working) = (of(StepStatus::Pending), of(StepStatus::InProgress));
        let unknown = StepId::from_u128(dice.id());
        // Mostly a step that it can be done to.
        let fitting = match dice.percent(50) {
            true => &working,
            false => &pending,
        };
        let pool = match dice.percent(80) && !fitting.is_empty() {
            true => fitting,
            false => &all,
        };
        let step = dice.pick(pool).copied().unwrap_or(unknown);
        let step = if dice.percent(5) { unknown } else { step };
        let total = plan.total();
        match dice.below(100) {
            0..20 => {
                let insert_after = dice.percent(70).then(|| dice.order_below(total + 1));
                let insert_after = match dice.percent(3) {
                    true => Some(total + 5),
                    false => insert_after,
                };
                let count = dice.between(1, 3);
                let behind = u64::from(insert_after.unwrap_or(total));
                let steps = match dice.percent(2) {
                    true => Vec::new(),
                    false => specs(dice, behind, count, u64::from(total) + count),
                };
                Modification::AddSteps {
                    steps,
                    insert_after,
                }
            }
            20..34 => {
                let pool = match dice.percent(55) {
                    true => &pending,
                    false => &all,
                };
                let step = dice.pick(pool).copied().unwrap_or(step);
                Modification::RemoveStep { step }
            }
            34..47 => {
                let mut steps = all;
                for place in (1..steps.len()).rev() {
                    steps.swap(place, dice.place(place + 1));
                }
                match dice.below(12) {
                    0 => steps.truncate(1),
                    1 => steps.push(unknown),
                    2 => steps.extend(steps.first().copied()),
                    _ => {}
                }
                Modification::ReorderSteps { steps }
            }
            47..57 => Modification::UpdateInstructions {
                step,
                instructions: match dice.percent(5) {
                    true => String::new(),
                    false => format!("Do it otherwise, way {}.", dice.below(9)),
                },
            },
            57..68 => Modification::FailStep {
                step,
                reason: dice.percent(50).then(|| "no use".to_owned()),
            },
            68..84 => {
                let step = dice.pick(&working).copied().unwrap_or(step);
                Modification::RequeueStep { step }
            }
            _ => {
                let mut branch = branch(dice, total);
                if let ActionSpec::SkipTo(target) = &mut branch.action
                    && dice.percent(40)
                {
                    *target = StepRef::Id(step);
                }
                Modification::AddBranch { branch }
            }
        }
    }
}

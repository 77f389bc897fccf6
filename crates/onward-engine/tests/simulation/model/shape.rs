//! From what an author writes to what a plan holds, by the model: the list of steps is laid out as it
//! will be, and orders are looked up in it.

use onward_core::branch::Action;
use onward_core::command::{ActionSpec, BranchSpec, StepRef, StepSpec};
use onward_core::step::NewStep;
use onward_core::{Code, StepId};

use super::plan::Branch;
use crate::conditions;

/// 3, where nobody said otherwise.
const ORDINARY_ATTEMPTS: u32 = 3;

/// Whether steps can be written like this at all.
pub(super) fn check(specs: &[StepSpec]) -> Result<(), Code> {
    let sound = |spec: &StepSpec| {
        !spec.instructions.trim().is_empty()
            && spec
                .max_attempts
                .is_none_or(|most| (1..=100).contains(&most))
            && spec.stall_threshold.is_none_or(|span| !span.is_zero())
    };
    match !specs.is_empty() && specs.iter().all(sound) {
        true => Ok(()),
        false => Err(Code::InvalidInput),
    }
}

pub(super) fn check_branch(spec: &BranchSpec) -> Result<(), Code> {
    match &spec.action {
        ActionSpec::AddSteps(steps) => check(steps),
        ActionSpec::Continue | ActionSpec::SkipTo(_) | ActionSpec::Fail { .. } => Ok(()),
    }
}

/// The steps, inserted behind so many others of this list.
pub(super) fn steps(
    list: &[StepId],
    behind: usize,
    specs: &[StepSpec],
) -> Result<Vec<NewStep>, Code> {
    let mut whole = list.to_vec();
    let new = specs.iter().map(|spec| spec.id);
    whole.splice(behind..behind, new);
    let at = |order: u32| -> Option<StepId> {
        let place = usize::try_from(order).ok()?.checked_sub(1)?;
        whole.get(place).copied()
    };
    let mut made = Vec::new();
    for spec in specs {
        let mut depends_on = Vec::new();
        for order in &spec.depends_on {
            let needed = at(*order).ok_or(Code::InvalidDependency)?;
            if !depends_on.contains(&needed) {
                depends_on.push(needed);
            }
        }
        made.push(NewStep {
            id: spec.id,
            step_type: spec.step_type,
            title: spec.title.clone(),
            instructions: spec.instructions.clone(),
            depends_on,
            stall_threshold: spec.stall_threshold,
            max_attempts: spec.max_attempts.unwrap_or(ORDINARY_ATTEMPTS),
        });
    }
    match can_end(&made) {
        true => Ok(made),
        false => Err(Code::InvalidDependency),
    }
}

/// Whether one can be done after the other until all are.
fn can_end(steps: &[NewStep]) -> bool {
    let mut left: Vec<&NewStep> = steps.iter().collect();
    loop {
        let before = left.len();
        let waiting: Vec<StepId> = left.iter().map(|step| step.id).collect();
        left.retain(|step| {
            step.depends_on
                .iter()
                .any(|needed| waiting.contains(needed))
        });
        if left.len() == before {
            return left.is_empty();
        }
    }
}

pub(super) fn branch(list: &[StepId], spec: &BranchSpec) -> Result<Branch, Code> {
    let at = |order: u32| -> Option<usize> {
        let place = usize::try_from(order).ok()?.checked_sub(1)?;
        (place < list.len()).then_some(place)
    };
    let after = at(spec.after_order).ok_or(Code::InvalidStepReference)?;
    if !conditions::ALL
        .iter()
        .any(|(known, _)| *known == spec.condition)
    {
        return Err(Code::InvalidCondition);
    }
    let action = match &spec.action {
        ActionSpec::Continue => Action::Continue,
        ActionSpec::Fail { reason } => Action::Fail {
            reason: reason.clone(),
        },
        ActionSpec::SkipTo(target) => {
            let place = match target {
                StepRef::Order(order) => at(*order),
                StepRef::Id(id) => list.iter().position(|own| own == id),
            };
            let behind = place.filter(|place| *place > after);
            let place = behind.ok_or(Code::InvalidStepReference)?;
            let target = list[place];
            Action::SkipTo { target }
        }
        ActionSpec::AddSteps(specs) => Action::AddSteps {
            steps: steps(list, after + 1, specs)?.into(),
        },
    };
    Ok(Branch {
        id: spec.id,
        after: list[after],
        condition: spec.condition.clone(),
        action,
    })
}

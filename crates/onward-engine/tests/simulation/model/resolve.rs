//! Validates step and branch specs, and resolves orders to step ids. New steps are numbered after
//! the last existing one.

use onward_core::branch::Action;
use onward_core::command::{ActionSpec, BranchSpec, StepRef, StepSpec};
use onward_core::policy::OnDependencyFailure;
use onward_core::step::NewStep;
use onward_core::{Code, StepId};

use super::plan::Branch;
use crate::conditions;

const DEFAULT_MAX_ATTEMPTS: u32 = 3;

pub(super) fn check(specs: &[StepSpec]) -> Result<(), Code> {
    let is_valid = |spec: &StepSpec| {
        !spec.instructions.trim().is_empty()
            && spec.max_attempts.is_none_or(|max| (1..=100).contains(&max))
            && spec.stall_threshold.is_none_or(|span| !span.is_zero())
            && spec.priority <= 9
    };
    if !specs.is_empty() && specs.iter().all(is_valid) {
        Ok(())
    } else {
        Err(Code::InvalidInput)
    }
}

pub(super) fn check_branch(spec: &BranchSpec) -> Result<(), Code> {
    match &spec.action {
        ActionSpec::AddSteps(steps) => check(steps),
        ActionSpec::Continue | ActionSpec::SkipTo(_) | ActionSpec::Fail { .. } => Ok(()),
    }
}

/// Resolves steps that are added to the list.
pub(super) fn steps(
    list: &[StepId],
    specs: &[StepSpec],
    policy: OnDependencyFailure,
) -> Result<Vec<NewStep>, Code> {
    let mut all = list.to_vec();
    all.extend(specs.iter().map(|spec| spec.id));
    let id_at = |order: u32| -> Option<StepId> {
        let index = usize::try_from(order).ok()?.checked_sub(1)?;
        all.get(index).copied()
    };
    let mut resolved = Vec::new();
    for spec in specs {
        let mut depends_on = Vec::new();
        for order in &spec.depends_on {
            let dependency = id_at(*order).ok_or(Code::InvalidDependency)?;
            if !depends_on.contains(&dependency) {
                depends_on.push(dependency);
            }
        }
        resolved.push(NewStep {
            id: spec.id,
            step_type: spec.step_type,
            title: spec.title.clone(),
            instructions: spec.instructions.clone(),
            depends_on,
            stall_threshold: spec.stall_threshold,
            max_attempts: spec.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS),
            gates: spec.gates.clone().filter(|gates| !gates.is_empty()),
            supersedes: None,
            labels: {
                let mut labels = spec.labels.clone();
                labels.sort();
                labels.dedup();
                labels
            },
            priority: spec.priority,
            on_dependency_failure: policy,
        });
    }
    if is_acyclic(&resolved) {
        Ok(resolved)
    } else {
        Err(Code::InvalidDependency)
    }
}

fn is_acyclic(steps: &[NewStep]) -> bool {
    let mut left: Vec<&NewStep> = steps.iter().collect();
    loop {
        let before = left.len();
        let waiting: Vec<StepId> = left.iter().map(|step| step.id).collect();
        left.retain(|step| {
            step.depends_on
                .iter()
                .any(|dependency| waiting.contains(dependency))
        });
        if left.len() == before {
            return left.is_empty();
        }
    }
}

pub(super) fn branch(
    list: &[StepId],
    spec: &BranchSpec,
    policy: OnDependencyFailure,
) -> Result<Branch, Code> {
    let index_at = |order: u32| -> Option<usize> {
        let index = usize::try_from(order).ok()?.checked_sub(1)?;
        (index < list.len()).then_some(index)
    };
    let after = index_at(spec.after_order).ok_or(Code::InvalidStepReference)?;
    if !conditions::ALL
        .iter()
        .any(|(source, _)| *source == spec.condition)
    {
        return Err(Code::InvalidCondition);
    }
    let action = match &spec.action {
        ActionSpec::Continue => Action::Continue,
        ActionSpec::Fail { reason } => Action::Fail {
            reason: reason.clone(),
        },
        ActionSpec::SkipTo(target) => {
            let index = match target {
                StepRef::Order(order) => index_at(*order),
                StepRef::Id(id) => list.iter().position(|own| own == id),
            };
            let index = index.filter(|index| *index > after);
            let index = index.ok_or(Code::InvalidStepReference)?;
            let target = list[index];
            Action::SkipTo { target }
        }
        ActionSpec::AddSteps(specs) => Action::AddSteps {
            steps: steps(list, specs, policy)?.into(),
        },
    };
    Ok(Branch {
        id: spec.id,
        after: list[after],
        condition: spec.condition.clone(),
        action,
    })
}

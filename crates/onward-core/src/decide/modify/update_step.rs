//! Changes the definition of a pending step: dependencies, type, title, instructions, stall threshold,
//! gates, labels and priority.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::check::Check;
use super::super::resolve;
use super::facts::Facts;
use crate::command::StepUpdate;
use crate::event::{Change, Event};
use crate::id::{StepId, StepRef};
use crate::policy::{MAX_INSTRUCTIONS, MAX_TITLE};
use crate::refusal::{BadDependency, Refusal};
use crate::routing::sorted_labels;
use crate::step::{Step, StepStatus};

pub(super) fn decide(
    facts: &Facts,
    id: StepId,
    update: &StepUpdate,
) -> Result<(Change, Option<Event>), Refusal> {
    let mut check = Check::default();
    if let Some(instructions) = &update.instructions {
        check.text("instructions", instructions, MAX_INSTRUCTIONS);
    }
    if let Some(title) = &update.title {
        check.length("title", title, MAX_TITLE);
    }
    check.threshold("stallThresholdMs", update.stall_threshold.flatten());
    let step = facts.step(id);
    let gates = step
        .as_ref()
        .ok()
        .and_then(|step| step.spec.gates.as_deref());
    let mut gates = gates.cloned().unwrap_or_default();
    if let Some(schema) = &update.result_schema {
        gates.result_schema.clone_from(schema);
    }
    if let Some(criteria) = &update.acceptance_criteria {
        gates.acceptance_criteria.clone_from(criteria);
    }
    if let Some(review_by) = update.review_by {
        gates.review_by = review_by;
    }
    check.gates("", &gates);
    check.labels("labels", update.labels.as_deref().unwrap_or_default());
    check.priority("priority", update.priority.unwrap_or_default());
    check.finish()?;
    let step = step?;
    if step.status() != StepStatus::Pending {
        return Err(Refusal::StepNotPending(step.status()));
    }
    let mut spec = step.spec.clone();
    spec.gates = (!gates.is_empty()).then(|| Arc::new(gates));
    if let Some(step_type) = update.step_type {
        spec.step_type = step_type;
    }
    if let Some(title) = &update.title {
        spec.title = Some(title.clone()).filter(|title| !title.trim().is_empty());
    }
    if let Some(instructions) = &update.instructions {
        spec.instructions.clone_from(instructions);
    }
    if let Some(threshold) = update.stall_threshold {
        spec.stall_threshold = threshold;
    }
    if let Some(labels) = &update.labels {
        spec.labels = sorted_labels(labels);
    }
    if let Some(priority) = update.priority {
        spec.priority = priority;
    }
    if let Some(policy) = update.on_dependency_failure {
        spec.on_dependency_failure = policy;
    }
    if let Some(depends_on) = &update.depends_on {
        spec.depends_on = dependencies(facts, step, depends_on)?;
    }
    let step = Arc::new(spec);
    Ok((Change::StepUpdated { step }, None))
}

/// The ids of the steps, without duplicates. Rejects unknown steps and a dependency cycle.
fn dependencies(facts: &Facts, step: &Step, refs: &[StepRef]) -> Result<Vec<StepId>, Refusal> {
    let outline = &facts.outline;
    let positions: BTreeMap<StepId, usize> = (outline.iter())
        .map(|outline| outline.spec.id)
        .zip(0..)
        .collect();
    let position = |needed: &StepRef| match needed {
        StepRef::Id(id) => positions.get(id).copied(),
        StepRef::Order(order) => {
            let position = usize::try_from(*order).ok()?.checked_sub(1)?;
            (position < outline.len()).then_some(position)
        }
    };
    let (mut depends_on, mut seen) = (Vec::with_capacity(refs.len()), BTreeSet::new());
    for needed in refs {
        let found = position(needed).and_then(|position| outline.get(position));
        let found = found.ok_or(Refusal::InvalidDependency(BadDependency::Unknown {
            step: step.order,
            needed: *needed,
        }))?;
        if seen.insert(found.spec.id) {
            depends_on.push(found.spec.id);
        }
    }
    let waits_for: Vec<Vec<usize>> = (outline.iter())
        .map(|outline| {
            let needed = if outline.spec.id == step.id() {
                &depends_on
            } else {
                &outline.spec.depends_on
            };
            (needed.iter())
                .filter_map(|id| positions.get(id).copied())
                .collect()
        })
        .collect();
    match resolve::cycle(&waits_for) {
        None => Ok(depends_on),
        Some(positions) => {
            let orders = positions.into_iter();
            let orders = orders.filter_map(|position| Some(outline.get(position)?.order));
            let cycle = BadDependency::Cycle(orders.collect());
            Err(Refusal::InvalidDependency(cycle))
        }
    }
}

//! Resolves an author's input (orders, CEL source) to a plan's data (ids, parsed conditions).
//!
//! Orders refer to the plan before the insertion, regardless of the insertion point. New steps are
//! numbered after the last existing step: in a plan of 5 steps, the first new step is 6.

use std::collections::{BTreeMap, BTreeSet};

use crate::branch::{Action, Branch};
use crate::command::{ActionSpec, BranchSpec, StepRef, StepSpec};
use crate::condition::Condition;
use crate::id::StepId;
use crate::policy::{DEFAULT_MAX_ATTEMPTS, MAX_DEPENDENCIES, OnDependencyFailure};
use crate::refusal::{BadDependency, Refusal};
use crate::routing::sorted_labels;
use crate::step::{NewStep, Step, StepStatus};

/// The required facts about a referenced step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferencedStep {
    /// The step's id.
    pub id: StepId,
    /// The step's order.
    pub order: u32,
    /// The step's status.
    pub status: StepStatus,
}

impl ReferencedStep {
    /// The facts about this step.
    pub fn new(step: &Step) -> Self {
        Self {
            id: step.id(),
            order: step.order,
            status: step.status(),
        }
    }
}

/// The steps that a command references by order. A missing order does not exist.
pub type OrderFacts = BTreeMap<u32, ReferencedStep>;

/// The steps that a command references by id. A missing id does not exist.
pub type IdFacts = BTreeMap<StepId, ReferencedStep>;

enum Target {
    /// An existing step, by its order.
    Existing(u32),
    /// A new step, by its index.
    New(usize),
}

/// The step with this order, if new steps are added to a plan with `total` steps.
fn target(total: u32, order: u32) -> Target {
    match order.checked_sub(total.saturating_add(1)) {
        None => Target::Existing(order),
        Some(index) => Target::New(usize::try_from(index).unwrap_or(usize::MAX)),
    }
}

/// The orders of existing steps that these specs reference.
pub(super) fn existing_orders(total: u32, specs: &[StepSpec]) -> BTreeSet<u32> {
    let referenced = specs.iter().flat_map(|spec| spec.depends_on.iter());
    referenced
        .copied()
        .filter(|order| *order <= total)
        .collect()
}

/// The ids of existing steps that these specs reference.
pub(super) fn existing_ids(specs: &[StepSpec]) -> BTreeSet<StepId> {
    let referenced = specs.iter().flat_map(|spec| spec.depends_on_ids.iter());
    referenced.copied().collect()
}

/// The existing steps to which new steps are added.
pub(super) struct ExistingSteps<'a> {
    /// Their number.
    pub(super) total: u32,
    /// Looks up a step by order.
    pub(super) by_order: &'a dyn Fn(u32) -> Option<ReferencedStep>,
    /// Whether new steps wait for dependencies that have failed.
    pub(super) on_dependency_failure: OnDependencyFailure,
    /// Looks up a step by id.
    pub(super) by_id: &'a dyn Fn(StepId) -> Option<ReferencedStep>,
}

/// The new steps with their dependencies as ids. Rejects orders that do not exist and dependency
/// cycles.
pub(super) fn steps(
    specs: &[StepSpec],
    existing: &ExistingSteps<'_>,
) -> Result<Vec<NewStep>, Refusal> {
    let count = |spec: &StepSpec| spec.depends_on.len() + spec.depends_on_ids.len();
    let referenced: usize = specs.iter().map(count).sum();
    if referenced > MAX_DEPENDENCIES {
        return Err(Refusal::LimitExceeded {
            what: "dependencies",
            limit: MAX_DEPENDENCIES,
            actual: referenced,
        });
    }
    let first = existing.total.saturating_add(1);
    let mut new_dependencies = vec![Vec::new(); specs.len()];
    let mut steps = Vec::with_capacity(specs.len());
    for (spec, (order, waits_for)) in specs.iter().zip((first..).zip(&mut new_dependencies)) {
        let mut depends_on = Vec::with_capacity(count(spec));
        let mut seen = BTreeSet::new();
        let unknown = |needed: StepRef| {
            Refusal::InvalidDependency(BadDependency::Unknown {
                step: order,
                needed,
            })
        };
        for referenced in &spec.depends_on {
            let id = match target(existing.total, *referenced) {
                Target::Existing(order) => (existing.by_order)(order).map(|step| step.id),
                Target::New(index) => specs.get(index).map(|spec| {
                    waits_for.push(index);
                    spec.id
                }),
            };
            let id = id.ok_or_else(|| unknown(StepRef::Order(*referenced)))?;
            if seen.insert(id) {
                depends_on.push(id);
            }
        }
        for id in &spec.depends_on_ids {
            (existing.by_id)(*id).ok_or_else(|| unknown(StepRef::Id(*id)))?;
            if seen.insert(*id) {
                depends_on.push(*id);
            }
        }
        steps.push(NewStep {
            id: spec.id,
            step_type: spec.step_type,
            title: spec.title.clone(),
            instructions: spec.instructions.clone(),
            depends_on,
            stall_threshold: spec.stall_threshold,
            max_attempts: spec.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS),
            gates: spec.gates.clone().filter(|gates| !gates.is_empty()),
            supersedes: None,
            labels: sorted_labels(&spec.labels),
            priority: spec.priority,
            on_dependency_failure: existing.on_dependency_failure,
        });
    }
    for waits_for in &mut new_dependencies {
        waits_for.sort_unstable();
        waits_for.dedup();
    }
    match cycle(&new_dependencies) {
        None => Ok(steps),
        Some(indexes) => {
            let order =
                |index: usize| first.saturating_add(u32::try_from(index).unwrap_or(u32::MAX));
            let orders = indexes.into_iter().map(order).collect();
            Err(Refusal::InvalidDependency(BadDependency::Cycle(orders)))
        }
    }
}

/// A dependency cycle, if there is one: the indexes along it, starting and ending with the lowest.
/// Iterative, because a chain may have 10,000 steps.
pub(super) fn cycle(waits_for: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut waiting: Vec<usize> = waits_for.iter().map(Vec::len).collect();
    let mut dependents = vec![Vec::new(); waits_for.len()];
    for (index, needed) in waits_for.iter().enumerate() {
        for needed in needed {
            dependents.get_mut(*needed)?.push(index);
        }
    }
    let mut free: Vec<usize> = (0..waiting.len())
        .filter(|index| waiting.get(*index) == Some(&0))
        .collect();
    while let Some(done) = free.pop() {
        for dependent in dependents.get(done)? {
            let left = waiting.get_mut(*dependent)?;
            *left -= 1;
            if *left == 0 {
                free.push(*dependent);
            }
        }
    }
    // Every remaining step is on a cycle or depends on one, so following dependencies ends in it.
    let mut at = waiting.iter().position(|left| *left > 0)?;
    let mut path = Vec::new();
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    loop {
        if let Some(begin) = seen.get(&at) {
            let mut round = path.split_off(*begin);
            let lowest = round
                .iter()
                .enumerate()
                .min_by_key(|(_, index)| **index)
                .map(|(i, _)| i)?;
            round.rotate_left(lowest);
            round.push(*round.first()?);
            return Some(round);
        }
        seen.insert(at, path.len());
        path.push(at);
        at = *waits_for
            .get(at)?
            .iter()
            .find(|needed| waiting.get(**needed).is_some_and(|left| *left > 0))?;
    }
}

/// The branch with resolved steps and a parsed condition.
pub(super) fn branch(
    spec: &BranchSpec,
    path: &str,
    existing: &ExistingSteps<'_>,
) -> Result<Branch, Refusal> {
    let after = (existing.by_order)(spec.after_order);
    let after = after.ok_or_else(|| Refusal::InvalidStepReference {
        path: format!("{path}.afterStepOrder"),
        actual: format!("order {}", spec.after_order),
        expected: format!("the order of a step, 1 to {}", existing.total),
    })?;
    let condition = Condition::parse_boolean(&spec.condition);
    let condition = condition.map_err(|why| Refusal::InvalidCondition {
        path: format!("{path}.conditionExpression"),
        error: why,
    })?;
    let action = match &spec.action {
        ActionSpec::Continue => Action::Continue,
        ActionSpec::Fail { reason } => Action::Fail {
            reason: reason.clone(),
        },
        ActionSpec::SkipTo(target) => {
            let (referenced, field, found) = match target {
                StepRef::Order(order) => (
                    format!("order {order}"),
                    "targetStepOrder",
                    (existing.by_order)(*order),
                ),
                StepRef::Id(id) => (
                    format!("step `{id}`"),
                    "targetStepId",
                    (existing.by_id)(*id),
                ),
            };
            let found = found.filter(|target| target.order > after.order);
            let target = found.ok_or_else(|| Refusal::InvalidStepReference {
                path: format!("{path}.actionParams.{field}"),
                actual: referenced,
                expected: format!("a step after step {}", after.order),
            })?;
            Action::SkipTo { target: target.id }
        }
        ActionSpec::AddSteps(specs) => Action::AddSteps {
            steps: steps(specs, existing)?.into(),
        },
    };
    Ok(Branch {
        id: spec.id,
        after: after.id,
        condition,
        action,
    })
}

/// The orders of existing steps that this branch references.
pub(super) fn branch_orders(total: u32, spec: &BranchSpec) -> BTreeSet<u32> {
    let mut orders = match &spec.action {
        ActionSpec::Continue | ActionSpec::Fail { .. } | ActionSpec::SkipTo(StepRef::Id(_)) => {
            BTreeSet::new()
        }
        ActionSpec::SkipTo(StepRef::Order(order)) => BTreeSet::from([*order]),
        ActionSpec::AddSteps(specs) => existing_orders(total, specs),
    };
    orders.insert(spec.after_order);
    orders
}

/// The ids of existing steps that this branch references.
pub(super) fn branch_ids(spec: &BranchSpec) -> BTreeSet<StepId> {
    match &spec.action {
        ActionSpec::Continue | ActionSpec::Fail { .. } | ActionSpec::SkipTo(StepRef::Order(_)) => {
            BTreeSet::new()
        }
        ActionSpec::SkipTo(StepRef::Id(id)) => BTreeSet::from([*id]),
        ActionSpec::AddSteps(specs) => existing_ids(specs),
    }
}

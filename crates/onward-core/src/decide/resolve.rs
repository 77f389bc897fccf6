//! Resolves an author's input (orders, CEL source) to a plan's data (ids, parsed conditions).
//!
//! Orders refer to the plan after the insertion. If `count` steps are inserted after order `after`,
//! orders up to `after` are existing steps, the next `count` orders are the new steps, and later
//! orders are existing steps again, shifted by `count`.

use std::collections::{BTreeMap, BTreeSet};

use crate::branch::{Action, Branch};
use crate::command::{ActionSpec, BranchSpec, StepRef, StepSpec};
use crate::condition::Condition;
use crate::id::StepId;
use crate::policy::{DEFAULT_MAX_ATTEMPTS, MAX_DEPENDENCIES};
use crate::refusal::{BadDependency, Refusal};
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

/// The position and number of inserted steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Insertion {
    /// The order of the step before them.
    pub(super) after: u32,
    /// The number of steps.
    pub(super) count: u32,
}

enum Target {
    /// An existing step, by its order before the insertion.
    Existing(u32),
    /// A new step, by its index.
    New(usize),
}

impl Insertion {
    pub(super) fn new(after: u32, specs: &[StepSpec]) -> Self {
        Self {
            after,
            count: u32::try_from(specs.len()).unwrap_or(u32::MAX),
        }
    }

    fn target(self, order: u32) -> Target {
        if order <= self.after {
            Target::Existing(order)
        } else if order - self.after <= self.count {
            Target::New((order - self.after - 1) as usize)
        } else {
            Target::Existing(order - self.count)
        }
    }

    /// The orders of existing steps that these specs reference.
    pub(super) fn existing_orders(self, specs: &[StepSpec]) -> BTreeSet<u32> {
        let referenced = specs.iter().flat_map(|spec| spec.depends_on.iter());
        referenced
            .filter_map(|order| match self.target(*order) {
                Target::Existing(order) => Some(order),
                Target::New(_) => None,
            })
            .collect()
    }
}

/// The new steps with their dependencies as ids. Rejects orders that do not exist and dependency
/// cycles.
pub(super) fn steps(
    specs: &[StepSpec],
    insertion: Insertion,
    existing: impl Fn(u32) -> Option<StepId>,
) -> Result<Vec<NewStep>, Refusal> {
    let referenced: usize = specs.iter().map(|spec| spec.depends_on.len()).sum();
    if referenced > MAX_DEPENDENCIES {
        return Err(Refusal::LimitExceeded {
            what: "dependencies",
            limit: MAX_DEPENDENCIES,
            actual: referenced,
        });
    }
    let mut new_dependencies = vec![Vec::new(); specs.len()];
    let mut steps = Vec::with_capacity(specs.len());
    for (spec, (order, waits_for)) in specs
        .iter()
        .zip((insertion.after.saturating_add(1)..).zip(&mut new_dependencies))
    {
        let mut depends_on = Vec::with_capacity(spec.depends_on.len());
        let mut seen = BTreeSet::new();
        for referenced in &spec.depends_on {
            if !seen.insert(*referenced) {
                continue;
            }
            let unknown = || {
                Refusal::InvalidDependency(BadDependency::Unknown {
                    step: order,
                    order: *referenced,
                })
            };
            depends_on.push(match insertion.target(*referenced) {
                Target::Existing(order) => existing(order).ok_or_else(unknown)?,
                Target::New(index) => {
                    waits_for.push(index);
                    specs.get(index).map(|spec| spec.id).ok_or_else(unknown)?
                }
            });
        }
        steps.push(NewStep {
            id: spec.id,
            step_type: spec.step_type,
            title: spec.title.clone(),
            instructions: spec.instructions.clone(),
            depends_on,
            stall_threshold: spec.stall_threshold,
            max_attempts: spec.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS),
        });
    }
    match cycle(&new_dependencies) {
        None => Ok(steps),
        Some(indexes) => {
            let order = |index: usize| {
                insertion
                    .after
                    .saturating_add(1)
                    .saturating_add(u32::try_from(index).unwrap_or(u32::MAX))
            };
            let orders = indexes.into_iter().map(order).collect();
            Err(Refusal::InvalidDependency(BadDependency::Cycle(orders)))
        }
    }
}

/// A dependency cycle, if there is one: the indexes along it, starting and ending with the lowest.
/// Iterative, because a chain may have 10,000 steps.
fn cycle(waits_for: &[Vec<usize>]) -> Option<Vec<usize>> {
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

/// The steps that a branch may reference.
pub(super) struct BranchFacts<'a> {
    /// The step before the branch.
    pub(super) after: Option<ReferencedStep>,
    /// The number of steps in the plan.
    pub(super) total: u32,
    /// Looks up an existing step by order.
    pub(super) existing: &'a dyn Fn(u32) -> Option<ReferencedStep>,
    /// Looks up an existing step by id.
    pub(super) by_id: &'a dyn Fn(StepId) -> Option<ReferencedStep>,
}

/// The branch with resolved steps and a parsed condition.
pub(super) fn branch(
    spec: &BranchSpec,
    path: &str,
    facts: &BranchFacts<'_>,
) -> Result<Branch, Refusal> {
    let within = || format!("the order of a step, 1 to {}", facts.total);
    let after = facts.after.ok_or_else(|| Refusal::InvalidStepReference {
        path: format!("{path}.afterStepOrder"),
        actual: format!("order {}", spec.after_order),
        expected: within(),
    })?;
    let condition = Condition::parse(&spec.condition).map_err(|why| Refusal::InvalidCondition {
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
                    (facts.existing)(*order),
                ),
                StepRef::Id(id) => (format!("step `{id}`"), "targetStepId", (facts.by_id)(*id)),
            };
            let found = found.filter(|target| target.order > after.order);
            let target = found.ok_or_else(|| Refusal::InvalidStepReference {
                path: format!("{path}.actionParams.{field}"),
                actual: referenced,
                expected: format!("a step after step {}", after.order),
            })?;
            Action::SkipTo { target: target.id }
        }
        ActionSpec::AddSteps(specs) => {
            let insertion = Insertion::new(after.order, specs);
            let existing = |order| (facts.existing)(order).map(|step| step.id);
            Action::AddSteps {
                steps: steps(specs, insertion, existing)?.into(),
            }
        }
    };
    Ok(Branch {
        id: spec.id,
        after: after.id,
        condition,
        action,
    })
}

/// The orders of existing steps that this branch references.
pub(super) fn branch_orders(spec: &BranchSpec) -> BTreeSet<u32> {
    let mut orders = match &spec.action {
        ActionSpec::Continue | ActionSpec::Fail { .. } | ActionSpec::SkipTo(StepRef::Id(_)) => {
            BTreeSet::new()
        }
        ActionSpec::SkipTo(StepRef::Order(order)) => BTreeSet::from([*order]),
        ActionSpec::AddSteps(specs) => {
            Insertion::new(spec.after_order, specs).existing_orders(specs)
        }
    };
    orders.insert(spec.after_order);
    orders
}

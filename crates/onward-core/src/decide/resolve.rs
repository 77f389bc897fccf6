//! From what an author writes (orders, CEL) to what a plan holds (ids, parsed conditions).
//!
//! Orders are those of the plan as it will be once the steps are in: of `count` steps inserted after
//! order `after`, the orders up to `after` are the plan's own, the next `count` are the new steps
//! themselves, and those behind are the plan's own again, shifted.

use std::collections::{BTreeMap, BTreeSet};

use crate::branch::{Action, Branch};
use crate::command::{ActionSpec, BranchSpec, StepRef, StepSpec};
use crate::condition::Condition;
use crate::id::StepId;
use crate::policy::{DEFAULT_MAX_ATTEMPTS, MAX_DEPENDENCIES};
use crate::refusal::{BadDependency, Refusal};
use crate::step::{NewStep, Step, StepStatus};

/// What must be known of a step that is named by its order or its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Referenced {
    /// Which step.
    pub id: StepId,
    /// Its place.
    pub order: u32,
    /// Where it stands.
    pub status: StepStatus,
}

impl Referenced {
    /// What must be known of this step.
    pub fn of(step: &Step) -> Self {
        Self {
            id: step.id(),
            order: step.order,
            status: step.status(),
        }
    }
}

/// The steps that a command names by their order. What is missing does not exist.
pub type OrderFacts = BTreeMap<u32, Referenced>;

/// Where steps are inserted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Insertion {
    /// After the step with this order.
    pub(super) after: u32,
    /// So many steps.
    pub(super) count: u32,
}

enum Place {
    /// One of the plan's own steps, by its order before the insertion.
    Own(u32),
    /// One of the new steps, from 0.
    New(usize),
}

impl Insertion {
    pub(super) fn new(after: u32, specs: &[StepSpec]) -> Self {
        Self {
            after,
            count: u32::try_from(specs.len()).unwrap_or(u32::MAX),
        }
    }

    fn place(self, order: u32) -> Place {
        if order <= self.after {
            Place::Own(order)
        } else if order - self.after <= self.count {
            Place::New((order - self.after - 1) as usize)
        } else {
            Place::Own(order - self.count)
        }
    }

    /// The orders of the plan's own steps that these specs name.
    pub(super) fn own_orders(self, specs: &[StepSpec]) -> BTreeSet<u32> {
        let named = specs.iter().flat_map(|spec| spec.depends_on.iter());
        named
            .filter_map(|order| match self.place(*order) {
                Place::Own(order) => Some(order),
                Place::New(_) => None,
            })
            .collect()
    }
}

/// The specs as they come into the plan, each dependency an id. Refuses an order that no step has,
/// and steps that wait for each other.
pub(super) fn steps(
    specs: &[StepSpec],
    insertion: Insertion,
    own: impl Fn(u32) -> Option<StepId>,
) -> Result<Vec<NewStep>, Refusal> {
    let named: usize = specs.iter().map(|spec| spec.depends_on.len()).sum();
    if named > MAX_DEPENDENCIES {
        return Err(Refusal::LimitExceeded {
            what: "dependencies",
            limit: MAX_DEPENDENCIES,
            asked: named,
        });
    }
    let mut among = vec![Vec::new(); specs.len()];
    let mut steps = Vec::with_capacity(specs.len());
    for (spec, (order, waits_for)) in specs
        .iter()
        .zip((insertion.after.saturating_add(1)..).zip(&mut among))
    {
        let mut depends_on = Vec::with_capacity(spec.depends_on.len());
        let mut seen = BTreeSet::new();
        for named in &spec.depends_on {
            if !seen.insert(*named) {
                continue;
            }
            let unknown = || {
                Refusal::InvalidDependency(BadDependency::Unknown {
                    step: order,
                    order: *named,
                })
            };
            depends_on.push(match insertion.place(*named) {
                Place::Own(own_order) => own(own_order).ok_or_else(unknown)?,
                Place::New(place) => {
                    waits_for.push(place);
                    specs.get(place).map(|spec| spec.id).ok_or_else(unknown)?
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
    match cycle(&among) {
        None => Ok(steps),
        Some(places) => {
            let order = |place: usize| {
                insertion
                    .after
                    .saturating_add(1)
                    .saturating_add(u32::try_from(place).unwrap_or(u32::MAX))
            };
            let orders = places.into_iter().map(order).collect();
            Err(Refusal::InvalidDependency(BadDependency::Cycle(orders)))
        }
    }
}

/// A cycle in "waits for", if there is one: the places along it, beginning and ending with the lowest
/// one. Without recursion: a chain may be 10,000 long.
fn cycle(waits_for: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut waiting: Vec<usize> = waits_for.iter().map(Vec::len).collect();
    let mut dependents = vec![Vec::new(); waits_for.len()];
    for (place, needed) in waits_for.iter().enumerate() {
        for needed in needed {
            dependents.get_mut(*needed)?.push(place);
        }
    }
    let mut free: Vec<usize> = (0..waiting.len())
        .filter(|place| waiting.get(*place) == Some(&0))
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
    // What still waits is on a cycle, or behind one: walking along what it waits for must come back.
    let mut at = waiting.iter().position(|left| *left > 0)?;
    let mut path = Vec::new();
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    loop {
        if let Some(begin) = seen.get(&at) {
            let mut round = path.split_off(*begin);
            let lowest = round
                .iter()
                .enumerate()
                .min_by_key(|(_, place)| **place)
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

/// What a branch may name.
pub(super) struct BranchFacts<'a> {
    /// The step that the branch stands after.
    pub(super) after: Option<Referenced>,
    /// How many steps the plan has.
    pub(super) total: u32,
    /// The plan's own steps by their order.
    pub(super) own: &'a dyn Fn(u32) -> Option<Referenced>,
    /// The plan's own steps by their id.
    pub(super) by_id: &'a dyn Fn(StepId) -> Option<Referenced>,
}

/// The branch as it comes into the plan: steps as ids, its condition parsed.
pub(super) fn branch(
    spec: &BranchSpec,
    path: &str,
    facts: &BranchFacts<'_>,
) -> Result<Branch, Refusal> {
    let within = || format!("the order of a step, 1 to {}", facts.total);
    let after = facts.after.ok_or_else(|| Refusal::InvalidStepReference {
        path: format!("{path}.afterStepOrder"),
        named: format!("order {}", spec.after_order),
        expected: within(),
    })?;
    let condition = Condition::parse(&spec.condition).map_err(|why| Refusal::InvalidCondition {
        path: format!("{path}.conditionExpression"),
        why,
    })?;
    let action = match &spec.action {
        ActionSpec::Continue => Action::Continue,
        ActionSpec::Fail { reason } => Action::Fail {
            reason: reason.clone(),
        },
        ActionSpec::SkipTo(target) => {
            let (named, field, found) = match target {
                StepRef::Order(order) => (
                    format!("order {order}"),
                    "targetStepOrder",
                    (facts.own)(*order),
                ),
                StepRef::Id(id) => (format!("step `{id}`"), "targetStepId", (facts.by_id)(*id)),
            };
            let found = found.filter(|target| target.order > after.order);
            let target = found.ok_or_else(|| Refusal::InvalidStepReference {
                path: format!("{path}.actionParams.{field}"),
                named,
                expected: format!("a step after step {}", after.order),
            })?;
            Action::SkipTo { target: target.id }
        }
        ActionSpec::AddSteps(specs) => {
            let insertion = Insertion::new(after.order, specs);
            let own = |order| (facts.own)(order).map(|step| step.id);
            Action::AddSteps {
                steps: steps(specs, insertion, own)?.into(),
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

/// The orders of the plan's own steps that this branch names.
pub(super) fn branch_orders(spec: &BranchSpec) -> BTreeSet<u32> {
    let mut orders = match &spec.action {
        ActionSpec::Continue | ActionSpec::Fail { .. } | ActionSpec::SkipTo(StepRef::Id(_)) => {
            BTreeSet::new()
        }
        ActionSpec::SkipTo(StepRef::Order(order)) => BTreeSet::from([*order]),
        ActionSpec::AddSteps(specs) => Insertion::new(spec.after_order, specs).own_orders(specs),
    };
    orders.insert(spec.after_order);
    orders
}

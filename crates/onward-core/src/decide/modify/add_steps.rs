//! Inserts steps after a given order or at the end. Later orders shift.

use super::super::check::Check;
use super::super::resolve::{self, Insertion};
use super::facts::Facts;
use crate::command::StepSpec;
use crate::event::{Change, Event};
use crate::plan::PlanHead;
use crate::policy::MAX_STEPS;
use crate::refusal::Refusal;

/// The position of the new steps.
pub(super) fn insertion(
    plan: &PlanHead,
    specs: &[StepSpec],
    insert_after: Option<u32>,
) -> Insertion {
    Insertion::new(insert_after.unwrap_or_else(|| plan.counts.total()), specs)
}

pub(super) fn decide(
    facts: &Facts,
    specs: &[StepSpec],
    insert_after: Option<u32>,
) -> Result<(Change, Option<Event>), Refusal> {
    let mut check = Check::with_taken_ids(&facts.taken);
    if specs.is_empty() {
        check.issue("steps", "must not be empty");
    }
    check.steps("steps", specs);
    check.finish()?;
    let total = facts.head.counts.total();
    let actual = usize::try_from(total)
        .unwrap_or(usize::MAX)
        .saturating_add(specs.len());
    if actual > MAX_STEPS {
        return Err(Refusal::LimitExceeded {
            what: "steps",
            limit: MAX_STEPS,
            actual,
        });
    }
    let insertion = insertion(&facts.head, specs, insert_after);
    if insertion.after > total {
        return Err(Refusal::InvalidStepReference {
            path: "insertAfterOrder".to_owned(),
            actual: format!("order {}", insertion.after),
            expected: format!("0 to {total}"),
        });
    }
    let steps = resolve::steps(specs, insertion, |order| {
        facts.orders.get(&order).map(|step| step.id)
    })?;
    Ok((
        Change::StepsAdded {
            after: insertion.after,
            steps: steps.into(),
        },
        None,
    ))
}

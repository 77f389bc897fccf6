//! Inserts steps after a given order or at the end. Later orders shift.

use super::super::check::Check;
use super::super::resolve;
use super::facts::Facts;
use crate::command::StepSpec;
use crate::event::{Change, Event};
use crate::policy::MAX_STEPS;
use crate::refusal::Refusal;

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
    let total = facts.head.counts.last_order();
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
    let after = insert_after.unwrap_or(total);
    if after > total {
        return Err(Refusal::InvalidStepReference {
            path: "insertAfterOrder".to_owned(),
            actual: format!("order {after}"),
            expected: format!("0 to {total}"),
        });
    }
    let steps = facts.resolve_with(|existing| resolve::steps(specs, existing))?;
    Ok((
        Change::StepsAdded {
            after,
            steps: steps.into(),
        },
        None,
    ))
}

//! Adds a branch to a step that is not terminal. It is evaluated after the step's other branches.

use super::super::check::Check;
use super::super::create::{check_branch, check_limit};
use super::super::resolve;
use super::facts::Facts;
use crate::command::BranchSpec;
use crate::event::{Change, Event};
use crate::policy::MAX_BRANCHES_PER_STEP;
use crate::refusal::Refusal;

pub(super) fn decide(facts: &Facts, spec: &BranchSpec) -> Result<(Change, Option<Event>), Refusal> {
    let mut check = Check::with_taken_ids(&facts.taken);
    check_branch(&mut check, "branch", spec);
    check.finish()?;
    let branch = facts.resolve_with(|existing| resolve::branch(spec, "branch", existing))?;
    let after = facts.orders.get(&spec.after_order).copied();
    match after {
        Some(step) if step.status.is_terminal() => Err(Refusal::StepIsTerminal(step.status)),
        Some(_) | None => {
            let count = facts.branches_after.saturating_add(1);
            check_limit("branches after one step", MAX_BRANCHES_PER_STEP, count)?;
            Ok((Change::BranchAdded { branch }, None))
        }
    }
}

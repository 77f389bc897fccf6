//! Budgets under random commands.

use onward_core::{Command, Event, PlanStatus};
use proptest::prelude::*;

use crate::walk::{cases, walks};

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn no_request_for_a_step_exceeds_a_limit(walk in walks()) {
        walk.run(|round| {
            let (Command::StartNext(_) | Command::StartStep(_)) = round.command else {
                return Ok(());
            };
            let is_claimed = round.events().iter().any(|event| matches!(event, Event::StepStarted { .. }));
            if let Some(budget) = round.after().head().budget.filter(|_| is_claimed) {
                let (limits, used) = (budget.limits, budget.used);
                let before = round.before.head().budget.unwrap().used;
                prop_assert!(limits.max_steps.is_none_or(|max| before.steps < max));
                prop_assert!(limits.max_attempts.is_none_or(|max| used.attempts <= max));
                prop_assert_eq!(budget.exhausted, None);
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_counts_of_a_budget_are_those_of_the_audit_trail(walk in walks()) {
        walk.run(|round| {
            let plan = round.after();
            if let Some(budget) = plan.head().budget {
                prop_assert_eq!(budget.used, plan.used());
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_plan_without_work_in_progress_is_stalled_if_its_budget_is_recorded_as_exhausted(walk in walks()) {
        walk.run(|round| {
            let head = round.after().head();
            let is_recorded = head.budget.is_some_and(|budget| budget.exhausted.is_some());
            if is_recorded && head.stopped_by_budget(round.now).is_some() {
                prop_assert_eq!(head.status(), PlanStatus::Stalled);
            }
            Ok(())
        })?;
    }
}

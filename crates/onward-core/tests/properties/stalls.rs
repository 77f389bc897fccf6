//! What is done about stalls: once for each, by the policy, and never twice; and what a plan says of
//! its stalls is what each of its steps says by its own threshold.

use std::collections::BTreeSet;

use onward_core::command::HandleStalls;
use onward_core::id::StepId;
use onward_core::policy::{OnStall, stall_threshold};
use onward_core::stall::Stall;
use onward_core::step::{StepState, Work};
use onward_core::{Command, Event, Plan, PlanStatus, Step, StepStatus, Timestamp, decide};
use proptest::prelude::*;

use crate::walk::{apply, cases, walks};

fn decided(plan: &Plan, command: &Command, now: Timestamp) -> Result<Vec<Event>, TestCaseError> {
    decide(plan, command, now).map_err(|why| TestCaseError::fail(why.to_string()))
}

/// Past its threshold, by the words of the law and in numbers that cannot overflow.
fn is_silent(plan: &Plan, step: &Step, now: Timestamp) -> bool {
    let Some(work) = step.work() else {
        return false;
    };
    let threshold = stall_threshold(None, step.spec.stall_threshold, plan.head().stall_threshold);
    let began = i128::from(work.started_at.as_millis());
    let sign = work.last_progress_at.map(|at| i128::from(at.as_millis()));
    let reference = sign.map_or(began, |sign| sign.max(began));
    let silence = (i128::from(now.as_millis()) - reference) * 1_000_000;
    silence > i128::try_from(threshold.as_nanos()).unwrap_or(i128::MAX)
}

/// The work that a claim holds, also while a person is asked about it.
fn held(step: &Step) -> Option<&Work> {
    match &step.state {
        StepState::InProgress(work) | StepState::AwaitingInput { work, .. } => Some(work),
        _ => None,
    }
}

fn stalled(plan: &Plan, now: Timestamp) -> Vec<StepId> {
    plan.stalls(now, None)
        .iter()
        .map(|stall| stall.step)
        .collect()
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn a_sweep_that_is_repeated_does_nothing(walk in walks()) {
        let policies: Vec<Option<OnStall>> =
            std::iter::once(None).chain(OnStall::ALL.map(Some)).collect();
        walk.play(|moment| {
            for policy in &policies {
                let sweep = Command::HandleStalls(HandleStalls { policy: *policy, threshold: None });
                let mut plan = moment.after().clone();
                let events = decided(&plan, &sweep, moment.now)?;
                apply(&mut plan, &events, moment.now)?;
                prop_assert_eq!(decided(&plan, &sweep, moment.now)?, vec![]);
                // Also when somebody goes on with the plan: nothing was heard of the dead one, so it
                // is the same stall.
                if events.iter().any(|event| matches!(event, Event::PlanStalled { .. })) {
                    let resumed = decided(&plan, &Command::ResumePlan, moment.now)?;
                    apply(&mut plan, &resumed, moment.now)?;
                    prop_assert_eq!(decided(&plan, &sweep, moment.now)?, vec![]);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_stall_marks_its_plan_once(walk in walks()) {
        let mut marked: BTreeSet<(StepId, u32, Timestamp)> = BTreeSet::new();
        walk.play(|moment| {
            for event in moment.events() {
                let Event::PlanStalled { stalls } = event else { continue };
                prop_assert!(!stalls.is_empty(), "marked for nothing");
                for Stall { step, attempt, since } in stalls {
                    prop_assert!(
                        marked.insert((*step, *attempt, *since)),
                        "{:?} was marked before", (step, attempt, since)
                    );
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_sign_of_life_that_moves_the_reference_lets_a_new_stall_mark(walk in walks()) {
        walk.play(|moment| {
            let mut plan = moment.after().clone();
            let marked = plan.steps().iter().find(|step| {
                step.work().is_some_and(|work| work.stall_marked.is_some())
            });
            let Some(marked) = marked.map(Step::id) else { return Ok(()) };
            if plan.head().status() != PlanStatus::Executing {
                return Ok(());
            }
            let sign = Event::StepProgressed {
                step: marked,
                sign: onward_core::event::Sign::Reported,
                note: None,
                percent: None,
                session: None,
            };
            let reference = plan.step(marked).map(|step| step.timestamp().reference());
            let at = reference.map_or(moment.now, |at| at.max(moment.now)).next();
            apply(&mut plan, &[sign], at)?;
            let threshold = plan.step(marked).map(|step| plan.threshold(step, None));
            let Some(later) = threshold.and_then(|span| at.checked_add(span)) else {
                return Ok(());
            };
            let sweep = Command::HandleStalls(HandleStalls {
                policy: Some(OnStall::Mark),
                threshold: None,
            });
            let names_it = |events: &[Event]| events.iter().any(|event| {
                matches!(event, Event::PlanStalled { stalls }
                    if stalls.iter().any(|stall| stall.step == marked))
            });
            prop_assert!(!names_it(&decided(&plan, &sweep, later)?), "alive at the threshold");
            if later < Timestamp::MAX {
                prop_assert!(names_it(&decided(&plan, &sweep, later.next())?), "a new stall");
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_clock_that_is_set_back_takes_no_sign_of_life_away(walk in walks()) {
        walk.play(|moment| {
            for step in moment.after().steps() {
                let was = moment.before.step(step.id());
                let Some((was, is)) = was.and_then(held).zip(held(step)) else { continue };
                // Within one claim, whatever the clock shows.
                if was.claim == is.claim {
                    prop_assert!(is.last_progress_at >= was.last_progress_at);
                    prop_assert_eq!(is.started_at, was.started_at);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_sweep_acts_on_the_stalled_and_on_nobody_else(walk in walks()) {
        walk.play(|moment| {
            let Command::HandleStalls(HandleStalls { policy, threshold: None }) = moment.command
            else {
                return Ok(());
            };
            let before = moment.before;
            let policy = policy.unwrap_or(before.head().on_stall);
            let touched: Vec<StepId> = moment.events().iter().filter_map(Event::step).collect();
            let status = before.head().status();
            let acts = matches!(status, PlanStatus::Executing | PlanStatus::AwaitingReview);
            match policy {
                OnStall::Ignore => prop_assert_eq!(moment.events(), &[]),
                OnStall::Mark => prop_assert_eq!(touched, vec![]),
                OnStall::Requeue | OnStall::Fail if acts => {
                    prop_assert_eq!(touched, stalled(before, moment.now));
                }
                OnStall::Requeue | OnStall::Fail => prop_assert_eq!(moment.events(), &[]),
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_plan_names_exactly_its_silent_steps(walk in walks()) {
        walk.play(|moment| {
            let plan = moment.after();
            for now in [moment.now, Timestamp::MIN, Timestamp::MAX] {
                let over = plan.head().status().is_terminal();
                let silent = plan.steps().iter().filter(|step| is_silent(plan, step, now));
                let silent: Vec<StepId> = silent.filter(|_| !over).map(Step::id).collect();
                prop_assert_eq!(stalled(plan, now), silent);
                let Some(next) = plan.next_stall_at(now, None) else {
                    prop_assert_eq!(stalled(plan, now), stalled(plan, Timestamp::MAX));
                    continue;
                };
                prop_assert!(now <= next);
                prop_assert_eq!(stalled(plan, now), stalled(plan, next));
                if next < Timestamp::MAX {
                    prop_assert!(stalled(plan, next) != stalled(plan, next.next()));
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn while_a_step_awaits_a_person_no_clock_runs(walk in walks()) {
        walk.play(|moment| {
            for stall in moment.after().stalls(Timestamp::MAX, Some(std::time::Duration::ZERO)) {
                let status = moment.after().step(stall.step).map(Step::status);
                prop_assert_eq!(status, Some(StepStatus::InProgress));
            }
            Ok(())
        })?;
    }
}

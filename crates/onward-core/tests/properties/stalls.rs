//! Stall handling: each stall is handled once, by the policy, and the plan's stalls match a naive
//! check of each step.

use std::collections::BTreeSet;

use onward_core::command::HandleStalls;
use onward_core::id::StepId;
use onward_core::policy::{CLOCK_TOLERANCE, OnStall, stall_threshold};
use onward_core::stall::Stall;
use onward_core::step::{StepState, Work};
use onward_core::{Command, Event, Plan, PlanStatus, Step, StepStatus, Timestamp, decide};
use proptest::prelude::*;

use crate::state::apply;
use crate::walk::{cases, walks};

fn decide_events(
    plan: &Plan,
    command: &Command,
    now: Timestamp,
) -> Result<Vec<Event>, TestCaseError> {
    decide(plan, command, now).map_err(|refusal| TestCaseError::fail(refusal.to_string()))
}

/// A naive stall check, in arithmetic that cannot overflow.
fn is_stalled(plan: &Plan, step: &Step, now: Timestamp) -> bool {
    let Some(work) = step.work() else {
        return false;
    };
    let threshold = stall_threshold(None, step.spec.stall_threshold, plan.head().stall_threshold);
    let started = i128::from(work.started_at.as_millis());
    let progress = work.last_progress_at.map(|at| i128::from(at.as_millis()));
    let reference = progress.map_or(started, |progress| progress.max(started));
    let inactive = (i128::from(now.as_millis()) - reference) * 1_000_000;
    let threshold = i128::try_from(threshold.as_nanos()).unwrap_or(i128::MAX);
    // The last event of a monitored session may be a quarter of the threshold later than its record.
    let unrecorded = if work.monitored {
        (threshold / 4).max(1_000_000)
    } else {
        0
    };
    inactive > threshold.saturating_add(unrecorded)
}

/// The data of a claimed step, including during a review.
fn claimed_work(step: &Step) -> Option<&Work> {
    match &step.state {
        StepState::InProgress(work) => Some(work),
        StepState::AwaitingInput { work, .. } => work.as_ref(),
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
    fn repeating_a_sweep_does_nothing(walk in walks()) {
        let policies: Vec<Option<OnStall>> =
            std::iter::once(None).chain(OnStall::ALL.map(Some)).collect();
        walk.run(|round| {
            for policy in &policies {
                let sweep = Command::HandleStalls(HandleStalls { policy: *policy, threshold: None });
                let mut plan = round.after().clone();
                let events = decide_events(&plan, &sweep, round.now)?;
                apply(&mut plan, &events, round.now)?;
                prop_assert_eq!(decide_events(&plan, &sweep, round.now)?, vec![]);
                // The same stall does not immediately mark a resumed plan again.
                let by_budget = plan.head().stopped_by_budget(round.now).is_some();
                let is_marked = events.iter().any(|event| matches!(event, Event::PlanStalled { .. }));
                if is_marked && !by_budget {
                    let resumed = decide_events(&plan, &Command::ResumePlan, round.now)?;
                    apply(&mut plan, &resumed, round.now)?;
                    prop_assert_eq!(decide_events(&plan, &sweep, round.now)?, vec![]);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_stall_marks_the_plan_again_only_if_every_step_in_progress_is_stalled(walk in walks()) {
        let mut marked: BTreeSet<(StepId, u32, Timestamp)> = BTreeSet::new();
        walk.run(|round| {
            for event in round.events() {
                let Event::PlanStalled { stalls } = event else { continue };
                let by_budget = round.after().head().stopped_by_budget(round.now).is_some();
                prop_assert!(!stalls.is_empty() || by_budget, "marked without a stall");
                let in_progress = round.after().head().counts.in_progress;
                for Stall { step, attempt, since } in stalls {
                    let is_new = marked.insert((*step, *attempt, *since));
                    let all = round.after().steps().iter().filter_map(Step::work);
                    let all_marked = all.filter(|work| work.stall_marked.is_some()).count();
                    prop_assert!(
                        is_new || all_marked >= usize::try_from(in_progress).unwrap_or(0),
                        "{:?} was marked before", (step, attempt, since)
                    );
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_new_stall_after_progress_marks_the_plan_again(walk in walks()) {
        walk.run(|round| {
            let mut plan = round.after().clone();
            let marked = plan.steps().iter().find(|step| {
                step.work().is_some_and(|work| work.stall_marked.is_some())
            });
            let Some(marked) = marked.map(Step::id) else { return Ok(()) };
            if plan.head().status() != PlanStatus::Executing {
                return Ok(());
            }
            let progress = Event::StepProgressed {
                step: marked,
                source: onward_core::event::ProgressSource::Reported,
                note: None,
                percent: None,
                session: None,
            };
            let reference = plan.step(marked).map(|step| step.timestamp().reference());
            let at = reference.map_or(round.now, |at| at.max(round.now)).next();
            apply(&mut plan, &[progress], at)?;
            let threshold = plan.step(marked)
                .map(|step| step.silence_limit(None, plan.head().stall_threshold));
            let Some(later) = threshold.and_then(|span| at.checked_add(span)) else {
                return Ok(());
            };
            let sweep = Command::HandleStalls(HandleStalls {
                policy: Some(OnStall::Mark),
                threshold: None,
            });
            let marks_step = |events: &[Event]| events.iter().any(|event| {
                matches!(event, Event::PlanStalled { stalls }
                    if stalls.iter().any(|stall| stall.step == marked))
            });
            prop_assert!(!marks_step(&decide_events(&plan, &sweep, later)?), "not stalled at the threshold");
            if later < Timestamp::MAX {
                prop_assert!(marks_step(&decide_events(&plan, &sweep, later.next())?), "a new stall");
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_clock_set_back_moves_the_last_progress_back_only_if_it_was_wrong(walk in walks()) {
        walk.run(|round| {
            for step in round.after().steps() {
                let was = round.before.step(step.id());
                let Some((was, is)) = was.and_then(claimed_work).zip(claimed_work(step)) else { continue };
                // Within one claim. Times far in the future were written by a wrong clock.
                let is_wrong = |at: Timestamp| at.since(round.now) > CLOCK_TOLERANCE;
                let was_wrong = is_wrong(was.started_at) || was.last_progress_at.is_some_and(is_wrong);
                if was.claim == is.claim && was_wrong {
                    prop_assert!(is.started_at <= was.started_at);
                } else if was.claim == is.claim {
                    prop_assert!(is.last_progress_at >= was.last_progress_at);
                    prop_assert_eq!(is.started_at, was.started_at);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_sweep_changes_exactly_the_stalled_steps(walk in walks()) {
        walk.run(|round| {
            let Command::HandleStalls(HandleStalls { policy, threshold: None }) = round.command
            else {
                return Ok(());
            };
            let before = round.before;
            let policy = policy.unwrap_or(before.head().on_stall);
            let (corrected, acted): (Vec<&Event>, Vec<&Event>) = round.events().iter()
                .partition(|event| matches!(event, Event::StepProgressed { .. }));
            for step in corrected.into_iter().filter_map(Event::step) {
                let times = before.step(step).map(Step::timestamp);
                prop_assert!(times.is_some_and(|times| times.is_ahead_of(round.now)));
            }
            let touched: Vec<StepId> = acted.iter().filter_map(|event| event.step()).collect();
            let status = before.head().status();
            let acts = matches!(status, PlanStatus::Executing | PlanStatus::AwaitingReview);
            match policy {
                // A budget can be exhausted at the same time, which stops a plan without stalls.
                OnStall::Ignore => {
                    let is_budget = |event: &Event| match event {
                        Event::PlanStalled { stalls } => stalls.is_empty(),
                        _ => matches!(event, Event::BudgetExhausted { .. }),
                    };
                    prop_assert!(round.events().iter().all(is_budget));
                }
                OnStall::Mark => prop_assert_eq!(touched, vec![]),
                OnStall::Requeue | OnStall::Fail if acts => {
                    prop_assert_eq!(touched, stalled(before, round.now));
                }
                OnStall::Requeue | OnStall::Fail => prop_assert_eq!(acted, Vec::<&Event>::new()),
            }
            Ok(())
        })?;
    }

    #[test]
    fn after_a_sweep_no_step_stalls_later_than_one_threshold_from_now(walk in walks()) {
        walk.run(|round| {
            let (plan, Command::HandleStalls(HandleStalls { policy: None, .. })) =
                (round.after(), round.command)
            else {
                return Ok(());
            };
            let acts = round.outcome.is_ok()
                && plan.head().on_stall != OnStall::Ignore
                && matches!(plan.head().status(), PlanStatus::Executing | PlanStatus::AwaitingReview);
            for step in plan.steps().iter().filter(|step| acts && claimed_work(step).is_some()) {
                prop_assert!(
                    step.status() != StepStatus::InProgress || !step.timestamp().is_ahead_of(round.now)
                );
            }
            Ok(())
        })?;
    }

    #[test]
    fn stalls_match_the_naive_check(walk in walks()) {
        walk.run(|round| {
            let plan = round.after();
            for now in [round.now, Timestamp::MIN, Timestamp::MAX] {
                let is_terminal = plan.head().status().is_terminal();
                let expected = plan.steps().iter().filter(|step| is_stalled(plan, step, now));
                let expected: Vec<StepId> = expected.filter(|_| !is_terminal).map(Step::id).collect();
                prop_assert_eq!(stalled(plan, now), expected);
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
    fn only_a_step_in_progress_can_stall(walk in walks()) {
        walk.run(|round| {
            for stall in round.after().stalls(Timestamp::MAX, Some(std::time::Duration::ZERO)) {
                let status = round.after().step(stall.step).map(Step::status);
                prop_assert_eq!(status, Some(StepStatus::InProgress));
            }
            Ok(())
        })?;
    }
}

//! Claims: who is handed what, under which attempt, and what becomes of a result that comes twice or
//! too late.

use std::collections::BTreeMap;

use onward_core::apply::Plan;
use onward_core::command::{StartNext, SubmitResult};
use onward_core::decide::start_next::handed_out;
use onward_core::event::{RequeueReason, Sign};
use onward_core::id::{ClaimToken, StepId};
use onward_core::step::Claim;
use onward_core::{Command, Event, PlanStatus, Step, StepStatus, Timestamp, decide};
use proptest::prelude::*;

use crate::walk::{apply, cases, walks};

/// The pending step with the lowest order that waits for nothing, found the long way.
fn next_in_line(plan: &Plan) -> Option<StepId> {
    plan.steps()
        .iter()
        .filter(|step| step.status() == StepStatus::Pending && waits_for_nothing(plan, step))
        .min_by_key(|step| step.order)
        .map(Step::id)
}

fn waits_for_nothing(plan: &Plan, step: &Step) -> bool {
    step.spec.depends_on.iter().all(|needed| {
        plan.step(*needed)
            .is_some_and(|needed| needed.status().is_terminal())
    })
}

/// Asks for the next step and applies the answer.
fn start(
    plan: &mut Plan,
    token: &str,
    include_stalled: bool,
    now: Timestamp,
) -> Result<Vec<Event>, TestCaseError> {
    let command = Command::StartNext(StartNext {
        token: ClaimToken::new(token),
        session: None,
        include_stalled,
    });
    let events = decide(plan, &command, now).map_err(|why| TestCaseError::fail(why.to_string()))?;
    apply(plan, &events, now)?;
    Ok(events)
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn attempts_count_up_to_their_bound_and_the_last_claim_is_the_current_one(walk in walks()) {
        let mut claims: BTreeMap<StepId, Claim> = BTreeMap::new();
        walk.play(|moment| {
            moment.each_event(|before, event, _| {
                let Event::StepStarted { step, claim } = event else { return Ok(()) };
                let last = claims.get(step).map_or(0, |claim| claim.attempt);
                prop_assert_eq!(claim.attempt, last + 1);
                let max = before.step(*step).map_or(0, |step| step.spec.max_attempts);
                prop_assert!(claim.attempt <= max, "attempt {} of {}", claim.attempt, max);
                claims.insert(*step, claim.clone());
                Ok(())
            })?;
            for step in moment.after().steps() {
                match step.status() {
                    StepStatus::Pending => prop_assert_eq!(step.claim(), None),
                    StepStatus::InProgress | StepStatus::AwaitingInput | StepStatus::Completed => {
                        prop_assert_eq!(step.claim(), claims.get(&step.id()));
                        prop_assert!(step.claim().is_some());
                    }
                    StepStatus::Skipped | StepStatus::Failed => {
                        prop_assert!(
                            step.claim().is_none() || step.claim() == claims.get(&step.id())
                        );
                    }
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_step_that_is_handed_out_is_the_next_in_line(walk in walks()) {
        walk.play(|moment| {
            let Command::StartNext(command) = moment.command else { return Ok(()) };
            let taken_over = moment.events().iter().any(|event| matches!(
                event,
                Event::StepRequeued { reason: RequeueReason::TakenOver, .. }
            ));
            moment.each_event(|before, event, _| {
                let Event::StepStarted { step, claim } = event else { return Ok(()) };
                let step = before.step(*step).expect("a step that is started exists");
                prop_assert!(waits_for_nothing(before, step), "{:?}", step);
                prop_assert_eq!(&claim.token, &command.token);
                if taken_over {
                    prop_assert!(command.include_stalled);
                    // The lowest one past its threshold that may be handed out once more.
                    let stalls = moment.before.stalls(moment.now, None);
                    let again = stalls.iter().find(|stall| {
                        let step = moment.before.step(stall.step);
                        step.is_some_and(|step| stall.attempt < step.spec.max_attempts)
                    });
                    prop_assert_eq!(again.map(|stall| stall.step), Some(step.id()));
                } else {
                    prop_assert_eq!(next_in_line(before), Some(step.id()));
                }
                Ok(())
            })
        })?;
    }

    #[test]
    fn nothing_is_handed_out_only_where_there_is_nothing(walk in walks()) {
        walk.play(|moment| {
            let Command::StartNext(_) = moment.command else { return Ok(()) };
            let handed_out = handed_out(moment.events());
            match moment.before.head().status() {
                PlanStatus::AwaitingReview | PlanStatus::Completed | PlanStatus::Failed => {
                    prop_assert_eq!(moment.answer, &Ok(Vec::new()));
                }
                PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled => {
                    if handed_out.is_none() {
                        prop_assert_eq!(next_in_line(moment.after()), None);
                    }
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_same_accepted_result_again_changes_nothing(walk in walks()) {
        walk.play(|moment| {
            if let (Command::SubmitResult(_), Err(_)) = (moment.command, moment.answer) {
                let kept = moment.command.late_result();
                prop_assert!(kept.is_some(), "a refused result must be kept");
            }
            for submit in &moment.world.accepted {
                let step = moment.after().step(submit.step).expect("a completed step stays");
                let given = step.claim().map(|claim| claim.token.clone());
                for token in [submit.token.clone(), None, given] {
                    let again = Command::SubmitResult(SubmitResult {
                        token,
                        fresh_token: ClaimToken::new("never used"),
                        session: None,
                        ..submit.clone()
                    });
                    let answer = decide(moment.after(), &again, moment.now);
                    prop_assert_eq!(answer, Ok(Vec::new()), "{:?}", again);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_refused_result_is_kept_word_for_word(walk in walks()) {
        walk.play(|moment| {
            if let (Command::SubmitResult(submit), Err(_)) = (moment.command, moment.answer) {
                let kept = moment.command.late_result();
                let kept = kept.ok_or_else(|| TestCaseError::fail("nothing is kept"))?;
                prop_assert_eq!(kept.step, submit.step);
                // Not compared as values: a confidence of NaN is refused too, and kept.
                prop_assert!(std::sync::Arc::ptr_eq(&kept.content, &submit.result));
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_sign_that_comes_by_itself_is_never_refused(walk in walks()) {
        walk.play(|moment| {
            if let Command::ReportProgress(report) = moment.command
                && report.sign != Sign::Reported
                && moment.before.step(report.step).is_some()
            {
                prop_assert!(moment.answer.is_ok(), "{:?}", moment.answer);
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_superseded_token_never_finishes_what_another_claim_holds(walk in walks()) {
        walk.play(|moment| {
            let Command::SubmitResult(submit) = moment.command else { return Ok(()) };
            let claim = moment.before.step(submit.step).and_then(Step::claim);
            if let (Some(claim), Some(token)) = (claim, &submit.token)
                && claim.token != *token
            {
                prop_assert!(moment.answer.is_err(), "{:?}", moment.answer);
            }
            Ok(())
        })?;
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn two_who_ask_never_get_the_same_step(walk in walks()) {
        walk.play(|moment| {
            for (one, other) in [(false, false), (true, false), (false, true), (true, true)] {
                let mut plan = moment.after().clone();
                let first = handed_out(&start(&mut plan, "one", one, moment.now)?);
                let second = handed_out(&start(&mut plan, "other", other, moment.now)?);
                prop_assert!(first.is_none() || first != second, "{:?} twice", first);
            }
            Ok(())
        })?;
    }

    #[test]
    fn after_feedback_the_step_is_handed_out_once_more_with_the_same_claim(walk in walks()) {
        walk.play(|moment| {
            let waiting = moment.after().steps().iter().find(|step| {
                step.work().is_some_and(|work| work.undelivered)
            });
            let under_way = moment.after().head().status() != PlanStatus::AwaitingReview
                && !moment.after().head().status().is_terminal();
            if let Some(waiting) = waiting.filter(|_| under_way) {
                let mut plan = moment.after().clone();
                let first = start(&mut plan, "one", false, moment.now)?;
                prop_assert_eq!(handed_out(&first), Some(waiting.id()));
                let step = plan.step(waiting.id());
                prop_assert_eq!(step.and_then(Step::claim), waiting.claim());
                let second = start(&mut plan, "other", true, moment.now)?;
                prop_assert!(handed_out(&second) != Some(waiting.id()));
                // Who asks for stalled steps, and finds it past its threshold, takes it over instead.
                let mut plan = moment.after().clone();
                let stalled = plan.stalls(moment.now, None).iter().any(|s| s.step == waiting.id());
                let first = start(&mut plan, "one", true, moment.now)?;
                let step = plan.step(waiting.id());
                let same = step.and_then(Step::claim) == waiting.claim();
                prop_assert!(same != stalled || handed_out(&first) != Some(waiting.id()));
            }
            Ok(())
        })?;
    }
}

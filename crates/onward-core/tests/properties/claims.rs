//! Claims: assignment order, attempt numbers, repeated results and late results.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use onward_core::apply::Plan;
use onward_core::command::{StartNext, SubmitResult};
use onward_core::decide::start_next::{assigned_step, claim_ready};
use onward_core::decide::{StepFacts, With};
use onward_core::event::{ProgressSource, RequeueReason};
use onward_core::id::{ClaimToken, SessionId, StepId};
use onward_core::policy::OnDependencyFailure;
use onward_core::step::{Claim, ReviewScope, StepState, Undelivered};
use onward_core::{Command, Event, PlanStatus, Step, StepStatus, Timestamp, decide};
use proptest::prelude::*;

use crate::state::apply;
use crate::walk::{cases, walks};

/// A naive search for the next step of a caller: of the pending steps whose dependencies are terminal
/// and whose labels it offers, the one with the highest priority, and then the lowest order.
fn next_assignable(plan: &Plan, offered: Option<&Vec<String>>) -> Option<StepId> {
    plan.steps()
        .iter()
        .filter(|step| step.status() == StepStatus::Pending && is_ready(plan, step))
        .filter(|step| can_claim(offered, step))
        .min_by_key(|step| (Reverse(step.spec.priority), step.order))
        .map(Step::id)
}

fn can_claim(offered: Option<&Vec<String>>, step: &Step) -> bool {
    let labels = &step.spec.labels;
    offered.is_none_or(|offered| labels.iter().all(|label| offered.contains(label)))
}

fn is_ready(plan: &Plan, step: &Step) -> bool {
    step.spec.depends_on.iter().all(|needed| {
        let status = plan.step(*needed).map(Step::status);
        let continues = step.spec.on_dependency_failure == OnDependencyFailure::Continue;
        match status {
            Some(StepStatus::Completed | StepStatus::Skipped) => true,
            Some(StepStatus::Failed) => continues,
            Some(StepStatus::Pending | StepStatus::InProgress | StepStatus::AwaitingInput)
            | None => false,
        }
    })
}

/// Claims the next step and applies the events.
fn start(
    plan: &mut Plan,
    token: &str,
    session: Option<&SessionId>,
    include_stalled: bool,
    now: Timestamp,
) -> Result<Vec<Event>, TestCaseError> {
    let command = Command::StartNext(StartNext {
        token: ClaimToken::new(token),
        session: session.cloned(),
        include_stalled,
        labels: None,
    });
    let events =
        decide(plan, &command, now).map_err(|refusal| TestCaseError::fail(refusal.to_string()))?;
    apply(plan, &events, now)?;
    Ok(events)
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn claiming_the_next_step_in_the_same_commit_has_the_same_effect(walk in walks()) {
        walk.run(|round| {
            let Command::SubmitResult(command) = round.command else { return Ok(()) };
            let facts = StepFacts::from_plan(round.before, command.step, With::Ready);
            let Some(facts) = facts.filter(|_| round.outcome.is_ok()) else { return Ok(()) };
            let next = StartNext {
                token: ClaimToken::new("next"),
                session: None,
                include_stalled: false,
                labels: None,
            };
            let claim = claim_ready(&facts, round.events(), &next, round.now);
            let claim = claim.map_err(|refusal| TestCaseError::fail(refusal.to_string()))?;
            if !claim.is_empty() {
                let separate = decide(round.after(), &next.into(), round.now);
                prop_assert_eq!(Ok(claim), separate);
            }
            Ok(())
        })?;
    }

    #[test]
    fn attempts_are_numbered_up_to_the_maximum_and_the_last_claim_is_current(walk in walks()) {
        let mut claims: BTreeMap<StepId, Claim> = BTreeMap::new();
        walk.run(|round| {
            round.each_event(|before, event, _| {
                let Event::StepStarted { step, claim } = event else { return Ok(()) };
                let last = claims.get(step).map_or(0, |claim| claim.attempt);
                prop_assert_eq!(claim.attempt, last + 1);
                let max = before.step(*step).map_or(0, |step| step.spec.max_attempts);
                prop_assert!(claim.attempt <= max, "attempt {} of {}", claim.attempt, max);
                claims.insert(*step, claim.clone());
                Ok(())
            })?;
            for step in round.after().steps() {
                let awaits_start = matches!(
                    &step.state,
                    StepState::AwaitingInput { review, .. } if review.scope == ReviewScope::Start
                );
                match step.status() {
                    StepStatus::Pending => prop_assert_eq!(step.claim(), None),
                    _ if awaits_start => {
                        prop_assert_eq!(step.claim(), None);
                        prop_assert!(claims.is_empty(), "a step was claimed before the approval");
                    }
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
    fn assigns_the_next_ready_step_or_the_first_stalled_one(walk in walks()) {
        walk.run(|round| {
            let Command::StartNext(command) = round.command else { return Ok(()) };
            let taken_over = round.events().iter().any(|event| matches!(
                event,
                Event::StepRequeued { reason: RequeueReason::TakenOver, .. }
            ));
            round.each_event(|before, event, _| {
                let Event::StepStarted { step, claim } = event else { return Ok(()) };
                let step = before.step(*step).expect("started step exists");
                prop_assert!(is_ready(before, step), "{:?}", step);
                prop_assert_eq!(&claim.token, &command.token);
                if taken_over {
                    let offered = command.labels.as_ref();
                    // Without the request, a step of an ended session is the last choice.
                    if !command.include_stalled {
                        prop_assert_eq!(next_assignable(round.before, offered), None);
                    }
                    // The step with the lowest order that has attempts left.
                    let limit = round.before.head().stall_threshold;
                    let next = round.before.in_progress().find(|step| {
                        step.can_be_taken_over(command.include_stalled, limit, round.now)
                            && step.attempt() < step.spec.max_attempts
                            && can_claim(offered, step)
                    });
                    prop_assert_eq!(next.map(Step::id), Some(step.id()));
                } else {
                    prop_assert_eq!(next_assignable(before, command.labels.as_ref()), Some(step.id()));
                }
                Ok(())
            })
        })?;
    }

    #[test]
    fn assigns_nothing_only_if_no_step_is_ready(walk in walks()) {
        walk.run(|round| {
            let Command::StartNext(command) = round.command else { return Ok(()) };
            let assigned = assigned_step(round.events());
            match round.before.head().status() {
                PlanStatus::AwaitingReview | PlanStatus::Completed | PlanStatus::Failed => {
                    prop_assert_eq!(round.outcome, &Ok(Vec::new()));
                }
                PlanStatus::Planning | PlanStatus::Executing | PlanStatus::Stalled => {
                    let is_exhausted = round.before.head().exhausted(round.now).is_some();
                    if is_exhausted {
                        let started = |event: &Event| matches!(event, Event::StepStarted { .. });
                        prop_assert!(!round.events().iter().any(started));
                    } else if assigned.is_none() {
                        prop_assert_eq!(next_assignable(round.after(), command.labels.as_ref()), None);
                    }
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn repeating_an_accepted_result_changes_nothing(walk in walks()) {
        walk.run(|round| {
            if let (Command::SubmitResult(_), Err(_)) = (round.command, round.outcome) {
                let kept = round.command.late_result();
                prop_assert!(kept.is_some(), "a rejected result is kept");
            }
            for submit in &round.state.accepted {
                let step = round.after().step(submit.step).expect("completed step exists");
                let current = step.claim().map(|claim| claim.token.clone());
                for token in [submit.token.clone(), None, current] {
                    let again = Command::SubmitResult(SubmitResult {
                        token,
                        fresh_token: ClaimToken::new("unused"),
                        review: onward_core::id::ReviewId::from_u128(7_000),
                        session: None,
                        ..submit.clone()
                    });
                    let outcome = decide(round.after(), &again, round.now);
                    prop_assert_eq!(outcome, Ok(Vec::new()), "{:?}", again);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_rejected_result_is_kept_unchanged(walk in walks()) {
        walk.run(|round| {
            if let (Command::SubmitResult(submit), Err(_)) = (round.command, round.outcome) {
                let kept = round.command.late_result();
                let kept = kept.ok_or_else(|| TestCaseError::fail("the result is not kept"))?;
                prop_assert_eq!(kept.step, submit.step);
                // Compared by pointer, because a rejected confidence may be NaN.
                prop_assert!(std::sync::Arc::ptr_eq(&kept.content, &submit.result));
            }
            Ok(())
        })?;
    }

    #[test]
    fn implicit_activity_is_never_rejected(walk in walks()) {
        walk.run(|round| {
            if let Command::ReportProgress(report) = round.command
                && report.source != ProgressSource::Reported
                && round.before.step(report.step).is_some()
            {
                prop_assert!(round.outcome.is_ok(), "{:?}", round.outcome);
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_superseded_token_never_completes_a_step_with_another_claim(walk in walks()) {
        walk.run(|round| {
            let Command::SubmitResult(submit) = round.command else { return Ok(()) };
            let claim = round.before.step(submit.step).and_then(Step::claim);
            if let (Some(claim), Some(token)) = (claim, &submit.token)
                && claim.token != *token
            {
                prop_assert!(round.outcome.is_err(), "{:?}", round.outcome);
            }
            Ok(())
        })?;
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn two_claims_never_get_the_same_step(walk in walks()) {
        walk.run(|round| {
            for (a, b) in [(false, false), (true, false), (false, true), (true, true)] {
                let mut plan = round.after().clone();
                let first = assigned_step(&start(&mut plan, "first", None, a, round.now)?);
                let second = assigned_step(&start(&mut plan, "second", None, b, round.now)?);
                prop_assert!(first.is_none() || first != second, "{:?} twice", first);
            }
            Ok(())
        })?;
    }

    #[test]
    fn after_feedback_the_step_is_assigned_once_more_to_its_session_with_the_same_claim(walk in walks()) {
        walk.run(|round| {
            let with_feedback = round.after().steps().iter().find(|step| {
                step.work().is_some_and(|work| work.undelivered == Some(Undelivered::Feedback))
            });
            let is_active = round.after().head().status() != PlanStatus::AwaitingReview
                && !round.after().head().status().is_terminal();
            if let Some(step) = with_feedback.filter(|_| is_active) {
                let session = step.claim().and_then(|claim| claim.session.clone());
                let session = session.as_ref();
                let other = SessionId::new("another session");
                let mut plan = round.after().clone();
                let events = start(&mut plan, "other", Some(&other), false, round.now)?;
                // The step of an ended session can be taken over.
                let is_left = step.is_orphaned();
                prop_assert!(is_left || assigned_step(&events) != Some(step.id()));
                let mut plan = round.after().clone();
                let first = start(&mut plan, "first", session, false, round.now)?;
                prop_assert_eq!(assigned_step(&first), Some(step.id()));
                let delivered = plan.step(step.id());
                prop_assert_eq!(delivered.and_then(Step::claim), step.claim());
                let second = start(&mut plan, "second", session, true, round.now)?;
                prop_assert!(assigned_step(&second) != Some(step.id()));
                // With `include_stalled`, the step is taken over instead if it is stalled.
                let mut plan = round.after().clone();
                let stalls = plan.stalls(round.now, None);
                let stalled = is_left || stalls.iter().any(|s| s.step == step.id());
                let first = start(&mut plan, "first", session, true, round.now)?;
                let delivered = plan.step(step.id());
                let same = delivered.and_then(Step::claim) == step.claim();
                prop_assert!(same != stalled || assigned_step(&first) != Some(step.id()));
            }
            Ok(())
        })?;
    }
}

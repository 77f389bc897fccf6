//! Claims: who may speak for a step, and what becomes of those who may not any more.

use onward_core::command::Modification;
use onward_core::id::ClaimToken;
use onward_core::step::{FailReason, StepState};
use onward_core::{Code, PlanStatus, StepStatus};

use crate::desk::{Desk, MINUTE, abandon, id, modify, plan_of, result};

fn requeue(step: u32) -> onward_core::Command {
    modify(Modification::RequeueStep { step: id(step) })
}

/// Step 1 was claimed, handed back, and claimed by another agent. Both claims' tokens.
fn taken_over() -> (Desk, ClaimToken, ClaimToken) {
    let mut desk = Desk::with(2);
    let (_, first) = desk.next().unwrap();
    desk.does(&requeue(1));
    let (order, second) = desk.next().unwrap();
    assert_eq!((order, first.attempt, second.attempt), (1, 1, 2));
    (desk, first.token, second.token)
}

#[test]
fn the_current_token_is_applied() {
    let (mut desk, _, second) = taken_over();
    let command = desk.submit(1, Some(&second));
    assert_eq!(desk.does(&command), ["step_completed"]);
}

#[test]
fn no_token_is_applied_to_the_current_attempt() {
    let (mut desk, _, second) = taken_over();
    let command = desk.submit(1, None);
    assert_eq!(desk.does(&command), ["step_completed"]);
    assert_eq!(
        desk.plan.step(id(1)).unwrap().claim().unwrap().token,
        second
    );
}

#[test]
fn a_superseded_token_is_refused_once_another_agent_has_the_step() {
    let (mut desk, first, _) = taken_over();
    for command in [
        desk.submit(1, Some(&first)),
        desk.report(1, Some(&first)),
        desk.request_review(1, Some(&first)),
    ] {
        assert_eq!(desk.code(&command), Code::ClaimSuperseded);
    }
}

#[test]
fn a_superseded_token_still_counts_while_nobody_else_has_claimed() {
    let mut desk = Desk::with(2);
    let (_, first) = desk.next().unwrap();
    desk.does(&requeue(1));
    let command = desk.submit(1, Some(&first.token));
    assert_eq!(desk.does(&command), ["step_started", "step_completed"]);
    let claim = desk.plan.step(id(1)).unwrap().claim().unwrap();
    assert_eq!((claim.attempt, &claim.token), (2, &first.token));
}

#[test]
fn an_agent_that_reports_on_a_step_that_was_handed_back_has_it_again() {
    let mut desk = Desk::with(2);
    let (_, first) = desk.next().unwrap();
    desk.does(&requeue(1));
    let command = desk.report(1, Some(&first.token));
    assert_eq!(desk.does(&command), ["step_started", "step_progressed"]);
    assert_eq!(desk.next().unwrap().0, 2);
}

#[test]
fn an_agent_that_asks_a_person_about_a_step_that_was_handed_back_has_it_again() {
    let mut desk = Desk::with(2);
    let (_, first) = desk.next().unwrap();
    desk.does(&requeue(1));
    let command = desk.request_review(1, Some(&first.token));
    assert_eq!(desk.does(&command), ["step_started", "user_reviewed"]);
}

#[test]
fn a_token_makes_no_claim_on_a_step_that_was_never_handed_out() {
    let mut desk = Desk::with(2).started();
    let token = ClaimToken::new("made up");
    let report = desk.report(2, Some(&token));
    assert_eq!(desk.code(&report), Code::IllegalTransition);
    let review = desk.request_review(2, Some(&token));
    assert_eq!(desk.code(&review), Code::IllegalTransition);
}

#[test]
fn a_pending_step_takes_a_result_and_moves_through_in_progress() {
    let mut desk = Desk::with(2);
    let command = desk.submit(2, None);
    assert_eq!(desk.does(&command), ["step_started", "step_completed"]);
    assert_eq!(desk.status(), PlanStatus::Executing);
    assert_eq!(desk.steps(), [StepStatus::Pending, StepStatus::Completed]);
}

#[test]
fn the_same_result_twice_changes_nothing_the_second_time() {
    let mut desk = Desk::with(1);
    let (_, claim) = desk.next().unwrap();
    let command = desk.submit(1, Some(&claim.token));
    assert_eq!(desk.does(&command), ["step_completed", "plan_completed"]);
    // Also although the plan is over by then, and also for an agent that forgets its token.
    assert!(desk.does(&command).is_empty());
    let forgetful = desk.submit(1, None);
    assert!(desk.does(&forgetful).is_empty());
}

#[test]
fn another_result_for_a_step_that_is_over_is_refused_and_kept() {
    let mut desk = Desk::with(2);
    let (_, claim) = desk.next().unwrap();
    let command = desk.submit(1, Some(&claim.token));
    desk.does(&command);
    let other = desk.submit_result(1, Some(&claim.token), &result("something else"));
    assert_eq!(desk.code(&other), Code::IllegalTransition);
    let kept = other.late_result().unwrap();
    assert_eq!(
        (kept.step, kept.content.summary.as_str()),
        (id(1), "something else")
    );
}

#[test]
fn the_same_result_under_another_claim_is_refused() {
    let (mut desk, first, second) = taken_over();
    let command = desk.submit(1, Some(&second));
    desk.does(&command);
    let command = desk.submit(1, Some(&first));
    assert_eq!(desk.code(&command), Code::ClaimSuperseded);
}

#[test]
fn every_refused_result_is_kept_whatever_the_reason() {
    let mut desk = Desk::with(2).started();
    desk.does(&abandon());
    for command in [desk.submit(1, None), desk.request_review(1, None)] {
        assert_eq!(desk.code(&command), Code::PlanIsTerminal);
        assert!(command.late_result().is_some());
    }
    let unknown = desk.submit(77, None);
    assert_eq!(desk.code(&unknown), Code::StepNotFound);
    assert!(unknown.late_result().is_some());
}

#[test]
fn a_step_handed_back_as_often_as_it_may_be_fails() {
    let mut command = plan_of(2);
    command.steps[0].max_attempts = Some(2);
    let mut desk = Desk::of(command);
    desk.next();
    assert_eq!(desk.does(&requeue(1)), ["plan_modified", "step_requeued"]);
    assert_eq!(desk.next().unwrap().1.attempt, 2);
    assert_eq!(desk.does(&requeue(1)), ["plan_modified", "step_failed"]);
    let state = &desk.plan.step(id(1)).unwrap().state;
    assert!(
        matches!(
            state,
            StepState::Failed {
                reason: FailReason::AttemptsUsedUp,
                ..
            }
        ),
        "{state:?}"
    );
    assert_eq!(desk.next().unwrap().0, 2);
}

#[test]
fn three_attempts_are_the_default() {
    let mut desk = Desk::with(1);
    for attempt in 1..=3 {
        assert_eq!(desk.next().unwrap().1.attempt, attempt);
        desk.does(&requeue(1));
    }
    assert_eq!(desk.steps(), [StepStatus::Failed]);
    assert_eq!(desk.status(), PlanStatus::Completed);
}

#[test]
fn taking_over_a_stalled_step_uses_up_attempts_too() {
    let mut command = plan_of(2);
    command.steps[0].max_attempts = Some(2);
    let mut desk = Desk::of(command);
    desk.next();
    desk.wait(31 * MINUTE);
    let (order, claim) = desk.next_for(None, true).unwrap();
    assert_eq!((order, claim.attempt), (1, 2));
    desk.wait(31 * MINUTE);
    // It is failed, not handed out again; the next one is.
    assert_eq!(desk.next_for(None, true).unwrap().0, 2);
    assert_eq!(desk.steps(), [StepStatus::Failed, StepStatus::InProgress]);
}

#[test]
fn what_waited_for_a_step_that_is_used_up_is_handed_out_in_the_same_breath() {
    let mut command = plan_of(3);
    command.steps[0].max_attempts = Some(1);
    command.steps[1].depends_on = vec![1];
    let mut desk = Desk::of(command);
    desk.next();
    desk.wait(31 * MINUTE);
    assert_eq!(desk.next_for(None, true).unwrap().0, 2);
}

#[test]
fn a_token_does_not_show_in_debug_output() {
    assert!(!format!("{:?}", ClaimToken::new("secret")).contains("secret"));
}

#[test]
fn a_token_that_was_never_given_out_takes_no_step_up_again() {
    let mut desk = Desk::with(2).started();
    desk.does(&requeue(1));
    let made_up = ClaimToken::new("made up");
    for command in [
        desk.report(1, Some(&made_up)),
        desk.request_review(1, Some(&made_up)),
    ] {
        assert_eq!(desk.code(&command), Code::IllegalTransition);
    }
}

#[test]
fn every_token_that_was_handed_back_may_take_the_step_up_again() {
    for which in [0, 1] {
        let mut desk = Desk::with(1);
        let tokens = [(); 2].map(|()| {
            let (_, claim) = desk.next().unwrap();
            desk.does(&requeue(1));
            claim.token
        });
        let command = desk.report(1, Some(&tokens[which]));
        assert_eq!(desk.does(&command), ["step_started", "step_progressed"]);
        assert_eq!(desk.plan.step(id(1)).unwrap().attempt(), 3);
    }
}

#[test]
fn a_late_result_for_a_step_that_ended_after_it_was_handed_back_is_superseded() {
    let mut desk = Desk::with(2);
    let (_, claim) = desk.next().unwrap();
    desk.does(&requeue(1));
    desk.does(&modify(Modification::FailStep {
        step: id(1),
        reason: None,
    }));
    let command = desk.submit(1, Some(&claim.token));
    assert_eq!(desk.code(&command), Code::ClaimSuperseded);
    assert_eq!(desk.plan.step(id(1)).unwrap().attempt(), 1);
}

#[test]
fn an_agent_may_come_back_to_its_step_while_another_awaits_a_person() {
    let mut command = plan_of(2);
    command.on_stall = onward_core::policy::OnStall::Requeue;
    let mut desk = Desk::of(command);
    desk.next();
    let (_, second) = desk.next().unwrap();
    let review = desk.request_review(1, None);
    desk.does(&review);
    desk.wait(31 * MINUTE);
    assert_eq!(desk.does(&crate::desk::sweep()), ["step_requeued"]);
    let command = desk.submit(2, Some(&second.token));
    assert_eq!(desk.does(&command), ["step_started", "step_completed"]);
    assert_eq!(desk.status(), PlanStatus::AwaitingReview);
}

#[test]
fn a_refused_report_is_kept_where_it_says_anything() {
    let mut desk = Desk::with(1).started();
    desk.does(&abandon());
    let report = |note: Option<&str>, percent| {
        onward_core::Command::from(onward_core::command::ReportProgress {
            step: id(1),
            sign: onward_core::event::Sign::Reported,
            note: note.map(str::to_owned),
            percent,
            token: None,
            session: None,
        })
    };
    assert_eq!(desk.code(&report(None, None)), Code::PlanIsTerminal);
    let kept = |command: onward_core::Command| {
        command
            .late_result()
            .map(|kept| kept.content.summary.clone())
    };
    assert_eq!(
        kept(report(Some("half"), Some(50.0))),
        Some("half".to_owned())
    );
    assert_eq!(
        kept(report(None, Some(50.0))),
        Some("50 percent done".to_owned())
    );
    assert_eq!(kept(report(None, None)), None);
}

#[test]
fn what_waited_for_a_step_that_is_used_up_may_wait_for_more() {
    let mut command = plan_of(4);
    command.steps[0].max_attempts = Some(1);
    command.steps[1].depends_on = vec![1, 3];
    let mut desk = Desk::of(command);
    desk.next();
    desk.wait(31 * MINUTE);
    assert_eq!(desk.next_for(None, true).unwrap().0, 3);
}

//! Claims: which tokens are accepted, attempts, and late results.

use onward_core::command::{ActionSpec, Modification, OrphanStep, StartNext, StartStep};
use onward_core::decide::{NextFacts, StepFacts, With, start_next};
use onward_core::event::{Decision, ReviewAction};
use onward_core::id::ClaimToken;
use onward_core::step::{FailReason, StepState};
use onward_core::{Code, Command, Event, PlanStatus, Refusal, StepStatus, decide};

use crate::harness::{
    Harness, MINUTE, abandon, branch, create_plan, decision, id, modify, result, session,
    with_token,
};

fn requeue(step: u32) -> onward_core::Command {
    modify(Modification::RequeueStep { step: id(step) })
}

/// Step 1 was claimed, requeued, and claimed by another agent. Returns the tokens of both claims.
fn reclaimed_by_another() -> (Harness, ClaimToken, ClaimToken) {
    let mut harness = Harness::with_steps(2);
    let (_, first) = harness.claim_next().unwrap();
    harness.run(&requeue(1));
    let (order, second) = harness.claim_next().unwrap();
    assert_eq!((order, first.attempt, second.attempt), (1, 1, 2));
    (harness, first.token, second.token)
}

#[test]
fn accepts_the_current_token() {
    let (mut harness, _, second) = reclaimed_by_another();
    let command = harness.submit(1, Some(&second));
    assert_eq!(harness.run(&command), ["step_completed"]);
}

#[test]
fn a_call_without_a_token_belongs_to_the_current_attempt() {
    let (mut harness, _, second) = reclaimed_by_another();
    let command = harness.submit(1, None);
    assert_eq!(harness.run(&command), ["step_completed"]);
    assert_eq!(
        harness.plan.step(id(1)).unwrap().claim().unwrap().token,
        second
    );
}

#[test]
fn rejects_a_superseded_token_after_another_agent_claimed_the_step() {
    let (mut harness, first, _) = reclaimed_by_another();
    for command in [
        harness.submit(1, Some(&first)),
        harness.report(1, Some(&first)),
        harness.request_review(1, Some(&first)),
    ] {
        assert_eq!(harness.rejection_code(&command), Code::ClaimSuperseded);
    }
}

#[test]
fn accepts_a_superseded_token_while_the_step_is_unclaimed() {
    let mut harness = Harness::with_steps(2);
    let (_, first) = harness.claim_next().unwrap();
    harness.run(&requeue(1));
    let command = harness.submit(1, Some(&first.token));
    assert_eq!(harness.run(&command), ["step_started", "step_completed"]);
    let claim = harness.plan.step(id(1)).unwrap().claim().unwrap();
    assert_eq!((claim.attempt, &claim.token), (2, &first.token));
}

#[test]
fn a_progress_report_reclaims_a_requeued_step() {
    let mut harness = Harness::with_steps(2);
    let (_, first) = harness.claim_next().unwrap();
    harness.run(&requeue(1));
    let command = harness.report(1, Some(&first.token));
    assert_eq!(harness.run(&command), ["step_started", "step_progressed"]);
    assert_eq!(harness.claim_next().unwrap().0, 2);
}

#[test]
fn a_review_request_reclaims_a_requeued_step() {
    let mut harness = Harness::with_steps(2);
    let (_, first) = harness.claim_next().unwrap();
    harness.run(&requeue(1));
    let command = harness.request_review(1, Some(&first.token));
    assert_eq!(
        harness.run(&command),
        ["step_started", "user_reviewed", "plan_status_changed"]
    );
}

#[test]
fn rejects_a_token_that_was_never_issued_for_the_step() {
    let mut harness = Harness::with_steps(3);
    let (_, first) = harness.claim_next().unwrap();
    harness.claim_next().unwrap();
    let token = Some(&first.token);
    let fail = |step| {
        let reason = None;
        with_token(modify(Modification::FailStep { step, reason }), token)
    };
    // Step 2 is in progress under another token, step 3 is pending.
    for step in [2, 3] {
        for command in [
            harness.submit(step, token),
            harness.report(step, token),
            harness.request_review(step, token),
            fail(id(step)),
        ] {
            assert_eq!(harness.expect_rejection(&command), Refusal::ClaimNotIssued);
            assert_eq!(Refusal::ClaimNotIssued.code(), Code::ClaimSuperseded);
        }
    }
    assert!(harness.submit(3, token).late_result().is_some());
    assert_eq!(harness.run(&fail(id(1))), ["plan_modified", "step_failed"]);
}

#[test]
fn a_superseded_token_cannot_change_a_step_of_another_agent() {
    let (mut harness, first, second) = reclaimed_by_another();
    let changes = [
        Modification::FailStep {
            step: id(1),
            reason: None,
        },
        Modification::RequeueStep { step: id(1) },
        Modification::RemoveStep { step: id(1) },
        Modification::UpdateInstructions {
            step: id(1),
            instructions: "new instructions".to_owned(),
        },
    ];
    for change in changes {
        let command = with_token(modify(change), Some(&first));
        assert_eq!(harness.rejection_code(&command), Code::ClaimSuperseded);
    }
    let review = harness.request_review(1, Some(&second));
    harness.run(&review);
    let approve = decision(1, Decision::Approve, None);
    let superseded = with_token(approve.clone(), Some(&first));
    assert_eq!(harness.rejection_code(&superseded), Code::ClaimSuperseded);
    harness.run(&with_token(approve, Some(&second)));
}

#[test]
fn the_token_identifies_the_session() {
    let session = |events: &[Event]| {
        events.iter().find_map(|event| match event {
            Event::StepCompleted { session, .. } | Event::StepProgressed { session, .. } => {
                session.clone()
            }
            Event::UserReviewed {
                action: ReviewAction::Requested { session, .. },
                ..
            } => session.clone(),
            _ => None,
        })
    };
    for command in [Harness::submit, Harness::report, Harness::request_review] {
        let mut harness = Harness::with_steps(2);
        let (_, claim) = harness.claim_next_for(Some("a"), false).unwrap();
        let anonymous = command(&harness, 1, None);
        let events = decide(&harness.plan, &anonymous, harness.now).unwrap();
        assert_eq!(session(&events), None);
        let with_token = command(&harness, 1, Some(&claim.token));
        let events = harness.execute(&with_token).unwrap();
        assert_eq!(session(&events), claim.session);
    }
}

#[test]
fn a_result_for_a_pending_step_starts_and_completes_it() {
    let mut harness = Harness::with_steps(2);
    let command = harness.submit(2, None);
    assert_eq!(
        harness.run(&command),
        ["step_started", "plan_status_changed", "step_completed"]
    );
    assert_eq!(harness.status(), PlanStatus::Executing);
    assert_eq!(
        harness.step_statuses(),
        [StepStatus::Pending, StepStatus::Completed]
    );
}

#[test]
fn submitting_the_same_result_twice_is_idempotent() {
    let mut harness = Harness::with_steps(1);
    let (_, claim) = harness.claim_next().unwrap();
    let command = harness.submit(1, Some(&claim.token));
    assert_eq!(harness.run(&command), ["step_completed", "plan_completed"]);
    // Even if the plan has completed meanwhile, and even without the token.
    assert!(harness.run(&command).is_empty());
    let without_token = harness.submit(1, None);
    assert!(harness.run(&without_token).is_empty());
}

#[test]
fn rejects_and_keeps_a_different_result_for_a_completed_step() {
    let mut harness = Harness::with_steps(2);
    let (_, claim) = harness.claim_next().unwrap();
    let command = harness.submit(1, Some(&claim.token));
    harness.run(&command);
    let other = harness.submit_result(1, Some(&claim.token), &result("another result"));
    assert_eq!(harness.rejection_code(&other), Code::IllegalTransition);
    let kept = other.late_result().unwrap();
    assert_eq!(
        (kept.step, kept.content.summary.as_str()),
        (id(1), "another result")
    );
}

#[test]
fn rejects_the_same_result_with_a_superseded_token() {
    let (mut harness, first, second) = reclaimed_by_another();
    let command = harness.submit(1, Some(&second));
    harness.run(&command);
    let command = harness.submit(1, Some(&first));
    assert_eq!(harness.rejection_code(&command), Code::ClaimSuperseded);
}

#[test]
fn keeps_every_rejected_result() {
    let mut harness = Harness::with_steps(2).started();
    harness.run(&abandon());
    for command in [harness.submit(1, None), harness.request_review(1, None)] {
        assert_eq!(harness.rejection_code(&command), Code::PlanIsTerminal);
        assert!(command.late_result().is_some());
    }
    let unknown = harness.submit(77, None);
    assert_eq!(harness.rejection_code(&unknown), Code::StepNotFound);
    assert!(unknown.late_result().is_some());
}

#[test]
fn a_step_fails_after_its_last_attempt() {
    let mut command = create_plan(2);
    command.steps[0].max_attempts = Some(2);
    let mut harness = Harness::new(command);
    harness.claim_next();
    assert_eq!(harness.run(&requeue(1)), ["plan_modified", "step_requeued"]);
    assert_eq!(harness.claim_next().unwrap().1.attempt, 2);
    assert_eq!(harness.run(&requeue(1)), ["plan_modified", "step_failed"]);
    let state = &harness.plan.step(id(1)).unwrap().state;
    assert!(
        matches!(
            state,
            StepState::Failed {
                reason: FailReason::AttemptsExhausted,
                ..
            }
        ),
        "{state:?}"
    );
    assert_eq!(harness.claim_next().unwrap().0, 2);
}

#[test]
fn the_default_is_three_attempts() {
    let mut harness = Harness::with_steps(1);
    for attempt in 1..=3 {
        assert_eq!(harness.claim_next().unwrap().1.attempt, attempt);
        harness.run(&requeue(1));
    }
    assert_eq!(harness.step_statuses(), [StepStatus::Failed]);
    assert_eq!(harness.status(), PlanStatus::Completed);
}

#[test]
fn taking_over_a_stalled_step_counts_as_an_attempt() {
    let mut command = create_plan(2);
    command.steps[0].max_attempts = Some(2);
    let mut harness = Harness::new(command);
    harness.claim_next();
    harness.advance(31 * MINUTE);
    let (order, claim) = harness.claim_next_for(None, true).unwrap();
    assert_eq!((order, claim.attempt), (1, 2));
    harness.advance(31 * MINUTE);
    // Step 1 has failed and is not assigned again; step 2 is.
    assert_eq!(harness.claim_next_for(None, true).unwrap().0, 2);
    assert_eq!(
        harness.step_statuses(),
        [StepStatus::Failed, StepStatus::InProgress]
    );
}

#[test]
fn a_dependent_step_is_assigned_when_its_dependency_fails_in_the_same_command() {
    let mut command = create_plan(3);
    command.steps[0].max_attempts = Some(1);
    command.steps[1].depends_on = vec![1];
    command.on_dependency_failure = onward_core::policy::OnDependencyFailure::Continue;
    let mut harness = Harness::new(command);
    harness.claim_next();
    harness.advance(31 * MINUTE);
    assert_eq!(harness.claim_next_for(None, true).unwrap().0, 2);
}

#[test]
fn debug_output_hides_tokens() {
    assert!(!format!("{:?}", ClaimToken::new("secret")).contains("secret"));
}

#[test]
fn an_unknown_token_cannot_reclaim_a_requeued_step() {
    let mut harness = Harness::with_steps(2).started();
    harness.run(&requeue(1));
    let unknown = ClaimToken::new("unknown");
    for command in [
        harness.submit(1, Some(&unknown)),
        harness.report(1, Some(&unknown)),
        harness.request_review(1, Some(&unknown)),
    ] {
        assert_eq!(harness.expect_rejection(&command), Refusal::ClaimNotIssued);
    }
}

#[test]
fn any_earlier_token_can_reclaim_a_requeued_step() {
    for which in [0, 1] {
        let mut harness = Harness::with_steps(1);
        let tokens = [(); 2].map(|()| {
            let (_, claim) = harness.claim_next().unwrap();
            harness.run(&requeue(1));
            claim.token
        });
        let command = harness.report(1, Some(&tokens[which]));
        assert_eq!(harness.run(&command), ["step_started", "step_progressed"]);
        assert_eq!(harness.plan.step(id(1)).unwrap().attempt(), 3);
    }
}

#[test]
fn rejects_a_late_result_for_a_step_that_failed_after_a_requeue() {
    let mut harness = Harness::with_steps(2);
    let (_, claim) = harness.claim_next().unwrap();
    harness.run(&requeue(1));
    harness.run(&modify(Modification::FailStep {
        step: id(1),
        reason: None,
    }));
    let command = harness.submit(1, Some(&claim.token));
    assert_eq!(harness.rejection_code(&command), Code::ClaimSuperseded);
    assert_eq!(harness.plan.step(id(1)).unwrap().attempt(), 1);
}

#[test]
fn a_requeued_step_can_be_completed_while_another_step_awaits_review() {
    let mut command = create_plan(2);
    command.on_stall = onward_core::policy::OnStall::Requeue;
    let mut harness = Harness::new(command);
    harness.claim_next();
    let (_, second) = harness.claim_next().unwrap();
    let review = harness.request_review(1, None);
    harness.run(&review);
    harness.advance(31 * MINUTE);
    assert_eq!(harness.run(&crate::harness::sweep()), ["step_requeued"]);
    let command = harness.submit(2, Some(&second.token));
    assert_eq!(harness.run(&command), ["step_started", "step_completed"]);
    assert_eq!(harness.status(), PlanStatus::AwaitingReview);
}

#[test]
fn keeps_a_rejected_progress_report_with_a_note_or_percentage() {
    let mut harness = Harness::with_steps(1).started();
    harness.run(&abandon());
    let report = |note: Option<&str>, percent| {
        onward_core::Command::from(onward_core::command::ReportProgress {
            step: id(1),
            source: onward_core::event::ProgressSource::Reported,
            note: note.map(str::to_owned),
            percent,
            token: None,
            session: None,
        })
    };
    assert_eq!(
        harness.rejection_code(&report(None, None)),
        Code::PlanIsTerminal
    );
    let kept = |command: onward_core::Command| {
        command
            .late_result()
            .map(|kept| kept.content.summary.clone())
    };
    assert_eq!(
        kept(report(Some("half"), Some(50.0))),
        Some("half".to_owned())
    );
    let from_percent = kept(report(None, Some(50.0))).expect("report is kept");
    assert!(from_percent.contains("50"), "{from_percent}");
    assert_eq!(kept(report(None, None)), None);
}

#[test]
fn of_a_ready_step_and_those_that_a_failure_frees_the_first_by_priority_is_assigned() {
    let mut command = create_plan(3);
    command.steps[2].priority = 9;
    let plan = Harness::new(command).plan;
    let mut facts = NextFacts::from_plan(&plan, None, None, None);
    facts.ready = plan.step(id(1)).cloned();
    facts.add_ready(plan.steps()[1..].to_vec());
    assert_eq!(facts.ready.as_ref(), plan.step(id(3)));
    facts.add_ready([]);
    assert_eq!(facts.ready.as_ref(), plan.step(id(3)));
}

#[test]
fn a_dependent_step_with_another_open_dependency_is_not_assigned() {
    let mut command = create_plan(4);
    command.steps[0].max_attempts = Some(1);
    command.steps[1].depends_on = vec![1, 3];
    let mut harness = Harness::new(command);
    harness.claim_next();
    harness.advance(31 * MINUTE);
    assert_eq!(harness.claim_next_for(None, true).unwrap().0, 3);
}

/// Submits step 1 and returns the step that can be claimed in the same commit.
fn claimed_with_result(harness: &mut Harness) -> Option<onward_core::StepId> {
    let next = StartNext {
        token: harness.next_token(),
        session: None,
        include_stalled: false,
        labels: None,
    };
    let facts = StepFacts::from_plan(&harness.plan, id(1), With::Ready).unwrap();
    let submit = harness.submit(1, None);
    let events = harness.execute(&submit).unwrap();
    let claim = start_next::claim_ready(&facts, &events, &next, harness.now).unwrap();
    start_next::assigned_step(&claim)
}

#[test]
fn the_next_step_can_be_claimed_with_the_result_of_the_previous_one() {
    for mut harness in [
        Harness::with_steps(2).started(),
        Harness::with_steps(2).stalled(),
    ] {
        assert_eq!(claimed_with_result(&mut harness), Some(id(2)));
    }
}

#[test]
fn the_labels_of_the_previous_step_are_those_offered_for_the_next_one() {
    let gpu = || vec!["gpu".to_owned()];
    for (previous, next, claimed) in [
        (vec![], gpu(), None),
        (gpu(), gpu(), Some(id(2))),
        (gpu(), vec![], Some(id(2))),
    ] {
        let mut command = create_plan(2);
        command.steps[0].labels = previous;
        command.steps[0].priority = 9;
        command.steps[1].labels = next;
        let mut harness = Harness::new(command).started();
        assert_eq!(claimed_with_result(&mut harness), claimed);
    }
}

#[test]
fn no_step_is_claimed_with_a_result_that_may_change_which_step_is_ready() {
    let mut dependent = create_plan(3);
    dependent.steps[1].depends_on = vec![1];
    let mut branching = create_plan(3);
    branching.branches = vec![branch(1, 1, "true", ActionSpec::Continue)];
    let mut two_in_progress = Harness::with_steps(3).started();
    two_in_progress.claim_next();
    for mut harness in [
        Harness::new(dependent).started(),
        Harness::new(branching).started(),
        two_in_progress,
        // Step 1 itself is ready.
        Harness::with_steps(2),
        // The plan is completed.
        Harness::with_steps(1).started(),
    ] {
        assert_eq!(claimed_with_result(&mut harness), None);
    }
}

fn start(step: u32, by: &str, token: ClaimToken) -> Command {
    Command::from(StartStep {
        step: id(step),
        token,
        session: Some(session(by)),
    })
}

#[test]
fn a_selected_step_of_an_ended_session_is_taken_over_as_a_new_attempt() {
    let mut harness = Harness::with_steps(2);
    let token = harness.next_token();
    harness.run(&start(1, "first", token));
    let token = harness.next_token();
    let takeover = start(1, "second", token);
    let is_rejected = |refusal| matches!(refusal, Refusal::IllegalStepTransition(_));
    assert!(is_rejected(harness.expect_rejection(&takeover)));
    harness.run(&Command::from(OrphanStep {
        step: id(1),
        token: None,
        session: session("first"),
    }));
    assert_eq!(harness.run(&takeover), ["step_requeued", "step_started"]);
    let step = harness.plan.step(id(1)).unwrap();
    assert_eq!(step.attempt(), 2);
    assert!(step.is_held_by(Some(&session("second"))));
}

#[test]
fn taking_over_a_selected_step_never_fails_it() {
    let mut plan = create_plan(1);
    plan.steps[0].max_attempts = Some(1);
    let mut harness = Harness::new(plan);
    let token = harness.next_token();
    harness.run(&start(1, "first", token));
    harness.advance(60 * MINUTE);
    let token = harness.next_token();
    let refusal = harness.expect_rejection(&start(1, "second", token));
    assert!(matches!(refusal, Refusal::IllegalStepTransition(_)));
    assert_eq!(harness.step_statuses(), [StepStatus::InProgress]);
}

//! Plans that a person approves before their first step is assigned.

use onward_core::command::{CreatePlan, DecideReview, ForkPlan, Modification, Reviewer, StartStep};
use onward_core::decide::fork::{self, NewIds};
use onward_core::event::{Decision, Event, RequeueReason};
use onward_core::id::{BranchId, ClaimToken, PlanId, ReviewId};
use onward_core::plan::{PendingReview, PlanFailure, PlanState};
use onward_core::step::{ReviewBy, ReviewScope, StepState};
use onward_core::{Code, Command, Plan, PlanStatus, Refusal, StepStatus, Timestamp};

use crate::harness::{Harness, MINUTE, abandon, create_plan, decision, id, modify, sweep};

const REVIEW: ReviewId = ReviewId::from_u128(70);

fn requiring_approval(steps: u32) -> CreatePlan {
    CreatePlan {
        approval: Some(REVIEW),
        ..create_plan(steps)
    }
}

fn awaiting_approval() -> Harness {
    Harness::new(requiring_approval(3))
}

fn names(events: &[(Event, Timestamp)]) -> Vec<&'static str> {
    events.iter().map(|(event, _)| event.name()).collect()
}

#[test]
fn a_new_plan_awaits_a_review_by_a_person() {
    let harness = awaiting_approval();
    assert_eq!(
        names(&harness.audit_trail),
        ["plan_modified", "user_reviewed", "plan_status_changed"]
    );
    let reviews = vec![PendingReview {
        step: id(1),
        review: REVIEW,
    }];
    assert_eq!(
        harness.plan.head().state,
        PlanState::AwaitingReview { reviews }
    );
    let step = harness.plan.step(id(1)).unwrap();
    let StepState::AwaitingInput { work, review } = &step.state else {
        panic!("{step:?}")
    };
    assert_eq!((work, review.id), (&None, REVIEW));
    assert_eq!(
        (review.scope, review.by),
        (ReviewScope::Start, Some(ReviewBy::Person))
    );
    assert!(review.summary.contains("test question"));
    assert!(review.summary.contains("3. do 3"));
    assert_eq!((step.attempt(), step.claim()), (1, None));
}

#[test]
fn the_summary_of_a_long_plan_is_truncated() {
    let harness = Harness::new(requiring_approval(200));
    let step = harness.plan.step(id(1)).unwrap();
    let StepState::AwaitingInput { review, .. } = &step.state else {
        panic!("{step:?}")
    };
    assert!(review.summary.contains("40. do 40"));
    assert!(!review.summary.contains("41. do 41"));
    assert!(review.summary.contains("160"));
}

#[test]
fn no_step_is_assigned_before_the_approval() {
    let mut harness = awaiting_approval();
    assert_eq!(harness.claim_next(), None);
    for step in [1, 2] {
        for command in [
            harness.submit(step, None),
            harness.report(step, None),
            harness.request_review(step, None),
            Command::StartStep(StartStep {
                step: id(step),
                token: ClaimToken::new("own"),
                session: None,
            }),
        ] {
            assert_eq!(harness.rejection_code(&command), Code::IllegalTransition);
        }
    }
    let change = modify(Modification::RemoveStep { step: id(2) });
    assert_eq!(harness.rejection_code(&change), Code::PlanNotModifiable);
    harness.advance(60 * MINUTE);
    assert!(harness.run(&sweep()).is_empty(), "no step can stall");
}

#[test]
fn approval_releases_the_first_step() {
    let mut harness = awaiting_approval();
    assert_eq!(
        harness.run(&decision(1, Decision::Approve, Some("go"))),
        ["user_reviewed", "plan_status_changed", "step_requeued"]
    );
    assert_eq!(harness.status(), PlanStatus::Executing);
    assert_eq!(harness.step_statuses(), [StepStatus::Pending; 3]);
    let repeated = decision(1, Decision::Approve, Some("go"));
    assert!(harness.run(&repeated).is_empty());
    let (order, claim) = harness.claim_next().unwrap();
    assert_eq!((order, claim.attempt), (1, 1));
    let submit = harness.submit(1, Some(&claim.token));
    assert_eq!(harness.run(&submit), ["step_completed"]);
}

#[test]
fn rejection_fails_the_plan_with_the_message() {
    let mut harness = awaiting_approval();
    assert_eq!(
        harness.run(&decision(1, Decision::Reject, Some("too long"))),
        ["user_reviewed", "step_failed", "plan_failed"]
    );
    let reason = PlanFailure::Rejected(Some("too long".to_owned()));
    let PlanState::Failed { reason: actual, .. } = &harness.plan.head().state else {
        panic!("{:?}", harness.status())
    };
    assert_eq!(*actual, reason);
}

#[test]
fn the_start_of_a_plan_is_only_approved_or_rejected() {
    let mut harness = awaiting_approval();
    for choice in [Decision::Modify, Decision::Skip] {
        let refusal = harness.expect_rejection(&decision(1, choice, Some("shorter")));
        let Refusal::InvalidInput(issues) = refusal else {
            panic!("{refusal}")
        };
        assert_eq!(issues[0].path, "decision");
        assert!(!Decision::on(ReviewScope::Start).contains(&choice));
    }
}

#[test]
fn an_agent_cannot_approve_a_plan() {
    let mut harness = awaiting_approval();
    let Command::DecideReview(command) = decision(1, Decision::Approve, None) else {
        panic!("not a decision")
    };
    for permitted in [true, false] {
        let reviewer = Reviewer::Agent { permitted };
        let command = DecideReview {
            reviewer,
            ..command.clone()
        };
        assert_eq!(
            harness.expect_rejection(&command.into()),
            Refusal::NotReviewer(ReviewBy::Person)
        );
    }
}

#[test]
fn an_agent_cannot_request_a_review_of_the_start() {
    let mut harness = Harness::with_steps(1).started();
    let Command::RequestReview(mut request) = harness.request_review(1, None) else {
        panic!("not a request")
    };
    request.scope = ReviewScope::Start;
    let refusal = harness.expect_rejection(&request.into());
    assert_eq!(refusal.code(), Code::InvalidInput);
}

#[test]
fn a_plan_that_awaits_approval_can_be_abandoned() {
    let mut harness = awaiting_approval();
    assert_eq!(harness.run(&abandon()), ["plan_failed"]);
    let approve = decision(1, Decision::Approve, None);
    assert_eq!(harness.rejection_code(&approve), Code::PlanIsTerminal);
}

#[test]
fn a_fork_awaits_the_approval_of_its_open_steps() {
    let mut source = Harness::with_steps(3);
    for step in [1, 2, 3] {
        let submit = source.submit(step, None);
        source.run(&submit);
    }
    let command = ForkPlan {
        plan: PlanId::from_u128(2),
        from_order: 2,
        name: None,
        research_question: None,
        design_rationale: None,
        session: None,
        approval: Some(REVIEW),
    };
    let mut step = 100;
    let mut ids = NewIds {
        step: &mut || {
            step += 1;
            id(step)
        },
        branch: &mut || BranchId::from_u128(1),
        token: &mut || ClaimToken::new("taken over"),
    };
    let events = fork::decide(&source.plan, &command, &mut ids, source.now).unwrap();
    let mut fork = Plan::replay(events.iter().map(|event| (event, source.now))).unwrap();
    assert_eq!(fork.head().status(), PlanStatus::AwaitingReview);
    let statuses: Vec<StepStatus> = fork.steps().iter().map(|step| step.status()).collect();
    assert_eq!(
        statuses,
        [
            StepStatus::Completed,
            StepStatus::AwaitingInput,
            StepStatus::Pending
        ]
    );
    let Command::DecideReview(approve) = decision(1, Decision::Approve, None) else {
        panic!("not a decision")
    };
    let approve = DecideReview {
        step: id(102),
        ..approve
    };
    let events = onward_core::decide(&fork, &approve.into(), source.now).unwrap();
    let is_released = |event: &Event| matches!(event, Event::StepRequeued { step, reason: RequeueReason::Approved, attempt: 1 } if *step == id(102));
    assert!(events.iter().any(is_released));
    fork.apply_all(&events, source.now).unwrap();
    assert_eq!(fork.head().status(), PlanStatus::Executing);
}

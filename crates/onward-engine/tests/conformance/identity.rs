//! Claim tokens and sessions: which callers may change a step, which caller receives it, and which
//! session the audit trail records.

use onward_core::command::{Modification, ModifyPlan};
use onward_core::event::Decision;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::refusal::OpenDependencies;
use onward_core::{Event, PlanId, PlanStatus, Refusal, StepId};
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::step::{ProgressReport, ReviewDecision, ReviewRequest};
use onward_engine::submit::Submission;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{
    claimed_step, code, error, refusal, submission_for, submission_without_token,
};

fn session(name: &str) -> Option<SessionId> {
    Some(SessionId::new(name))
}

async fn next_for(harness: &Harness, plan: PlanId, name: &str, stalled: bool) -> NextStep {
    let next = harness
        .engine
        .next_step(&harness.me, plan, session(name), stalled);
    next.await.expect("next step was requested")
}

async fn claim_for(harness: &Harness, plan: PlanId, name: &str) -> AssignedStep {
    claimed_step(next_for(harness, plan, name, false).await)
}

fn review_of(step: &AssignedStep) -> ReviewRequest {
    ReviewRequest {
        step: step.step,
        summary: "It is the Moon.".to_owned(),
        questions: vec!["And the Sun?".to_owned()],
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: Some(step.token.clone()),
        session: None,
    }
}

fn progress_of(step: &AssignedStep) -> ProgressReport {
    ProgressReport {
        step: step.step,
        note: None,
        percent: None,
        token: Some(step.token.clone()),
        session: None,
    }
}

fn update(step: StepId, instructions: &str) -> Modification {
    Modification::UpdateInstructions {
        step,
        instructions: instructions.to_owned(),
    }
}

/// Claims a step, and a reviewer asks for changes.
async fn modified_step(harness: &Harness, plan: PlanId, name: &str) -> AssignedStep {
    let step = claim_for(harness, plan, name).await;
    let requested = harness.engine.request_review(&harness.me, review_of(&step));
    requested.await.expect("review was requested");
    let feedback = Some("shorter".to_owned());
    let modify = ReviewDecision::new(step.step, Decision::Modify, feedback);
    let decided = harness.engine.decide_review(&harness.me, modify).await;
    decided.expect("decision was accepted");
    step
}

async fn after_modify_only_its_session_receives_the_step(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = modified_step(harness, plan.id, "a").await;
    for other in [session("b"), None] {
        let next = harness.engine.next_step(&harness.me, plan.id, other, false);
        let next = next.await.unwrap();
        assert!(matches!(next, NextStep::NoPendingSteps { .. }), "{next:?}");
    }
    let again = claim_for(harness, plan.id, "a").await;
    assert_eq!((again.step, &again.token), (step.step, &step.token));
    assert!(again.instructions.contains("shorter"));
    assert!(!again.resumed, "the feedback is delivered");
    let once_more = claim_for(harness, plan.id, "a").await;
    assert!(once_more.resumed, "delivered once");
}

async fn a_stalled_step_after_modify_is_taken_over_with_the_feedback(harness: &Harness) {
    let plan = harness.plan(1).await;
    let step = modified_step(harness, plan.id, "a").await;
    harness.advance(std::time::Duration::from_secs(31 * 60));
    let taken = claimed_step(next_for(harness, plan.id, "b", true).await);
    assert_eq!((taken.step, taken.attempt), (step.step, 2));
    assert_ne!(taken.token, step.token);
    assert!(taken.instructions.contains("shorter"));
    let late = harness.submit(submission_for(&step, "late")).await;
    assert_eq!(code(late), "claim_superseded");
}

async fn a_superseded_token_cannot_change_the_step_or_decide_its_review(harness: &Harness) {
    let plan = harness.plan(2).await;
    let first = claim_for(harness, plan.id, "a").await;
    let requeue = Modification::RequeueStep { step: first.step };
    harness.modify(plan.id, requeue.clone()).await.unwrap();
    let second = claim_for(harness, plan.id, "b").await;
    let fail = Modification::FailStep {
        step: first.step,
        reason: None,
    };
    for modification in [fail, requeue, update(first.step, "mine")] {
        let command = ModifyPlan {
            token: Some(first.token.clone()),
            ..ModifyPlan::new(modification)
        };
        let modified = harness.engine.modify_plan(&harness.me, plan.id, command);
        assert_eq!(code(modified.await), "claim_superseded");
    }
    let requested = harness
        .engine
        .request_review(&harness.me, review_of(&second));
    requested.await.unwrap();
    let skip = |token: &ClaimToken| ReviewDecision {
        token: Some(token.clone()),
        ..ReviewDecision::new(first.step, Decision::Skip, None)
    };
    let decided = harness
        .engine
        .decide_review(&harness.me, skip(&first.token));
    assert_eq!(code(decided.await), "claim_superseded");
    let decided = harness
        .engine
        .decide_review(&harness.me, skip(&second.token));
    decided.await.unwrap();
}

/// The sessions of the authors of the last commit.
async fn last_sessions(harness: &Harness, plan: PlanId) -> Vec<(&'static str, Option<SessionId>)> {
    let whole = harness.engine.full_plan(&harness.me, plan).await.unwrap();
    let last = whole.events.last().expect("plan has events").commit_seq;
    let entries = whole.events.into_iter();
    entries
        .filter(|entry| entry.commit_seq == last)
        .map(|entry| (entry.event.name(), entry.author.session))
        .collect()
}

async fn modifications_and_decisions_record_the_session(harness: &Harness) {
    let plan = harness.plan(3).await;
    let step = claim_for(harness, plan.id, "a").await;
    // The reported session, or the session of the claim.
    let by = |token: Option<&ClaimToken>, session| ModifyPlan {
        token: token.cloned(),
        session,
        ..ModifyPlan::new(update(step.step, "new"))
    };
    for (command, expected) in [
        (by(None, session("b")), session("b")),
        (by(Some(&step.token), None), session("a")),
        (by(None, None), None),
    ] {
        let modified = harness.engine.modify_plan(&harness.me, plan.id, command);
        modified.await.unwrap();
        let (name, recorded) = last_sessions(harness, plan.id).await.remove(0);
        assert_eq!((name, recorded), ("plan_modified", expected));
    }
    // A modification of the whole plan has no claim.
    let mut steps: Vec<StepId> = plan.steps.clone();
    steps.reverse();
    let reorder = ModifyPlan {
        session: session("d"),
        ..ModifyPlan::new(Modification::ReorderSteps { steps })
    };
    let modified = harness.engine.modify_plan(&harness.me, plan.id, reorder);
    modified.await.unwrap();
    let (name, recorded) = last_sessions(harness, plan.id).await.remove(0);
    assert_eq!((name, recorded), ("plan_modified", session("d")));
    let requested = harness.engine.request_review(&harness.me, review_of(&step));
    requested.await.unwrap();
    let recorded = last_sessions(harness, plan.id).await;
    assert!(
        recorded.iter().all(|(_, by)| *by == session("a")),
        "{recorded:?}"
    );
    let approve = ReviewDecision {
        session: session("c"),
        ..ReviewDecision::new(step.step, Decision::Approve, None)
    };
    let decided = harness.engine.decide_review(&harness.me, approve).await;
    decided.unwrap();
    let recorded = last_sessions(harness, plan.id).await;
    assert!(
        recorded.iter().all(|(_, by)| *by == session("c")),
        "{recorded:?}"
    );
}

/// The session of a claim or a completion.
fn event_session(event: &Event) -> Option<SessionId> {
    if let Event::StepStarted { claim, .. } = event {
        return claim.session.clone();
    }
    let Event::StepCompleted { session, .. } = event else {
        panic!("unexpected {event:?}")
    };
    session.clone()
}

async fn the_token_keeps_the_session_for_the_completion_and_the_next_claim(harness: &Harness) {
    let mut draft = harness.draft(3);
    // With a dependent step, the next claim needs its own query.
    draft.steps[1].depends_on = vec![1];
    let plan = harness.create(draft).await;
    let mut step = claim_for(harness, plan.id, "a").await;
    for _ in 0..2 {
        let submission = Submission {
            claim_next: true,
            ..submission_for(&step, "done")
        };
        let response = harness.submit(submission).await.unwrap();
        step = claimed_step(response.next_step.unwrap());
        let recorded = last_sessions(harness, plan.id).await;
        let expected = [
            ("step_completed", session("a")),
            ("step_started", session("a")),
        ];
        assert_eq!(recorded, expected);
        let whole = harness
            .engine
            .full_plan(&harness.me, plan.id)
            .await
            .unwrap();
        let last = whole.events.iter().rev().take(2).map(|entry| &entry.event);
        let sessions: Vec<_> = last.map(event_session).collect();
        assert_eq!(sessions, [session("a"), session("a")]);
    }
    let reported = harness
        .engine
        .report_progress(&harness.me, progress_of(&step));
    reported.await.unwrap();
    let recorded = last_sessions(harness, plan.id).await;
    assert_eq!(recorded, [("step_progressed", session("a"))]);
}

async fn rejects_and_keeps_a_result_with_the_token_of_another_step(harness: &Harness) {
    let plan = harness.plan(3).await;
    let first = harness.claim(plan.id).await;
    harness.claim(plan.id).await;
    // In progress under another token, and pending.
    for step in [plan.steps[1], plan.steps[2]] {
        let confused = Submission {
            token: Some(first.token.clone()),
            ..submission_without_token(step, "for the first step")
        };
        let rejected = error(harness.submit(confused).await);
        assert_eq!(rejected.code().as_str(), "claim_superseded");
        assert!(rejected.kept().is_some());
        let progress = ProgressReport {
            step,
            ..progress_of(&first)
        };
        let reported = harness.engine.report_progress(&harness.me, progress).await;
        assert_eq!(refusal(reported), Refusal::ClaimNotIssued);
    }
    assert_eq!(
        harness.step_statuses(plan.id).await,
        ["in_progress", "in_progress", "pending"]
    );
}

async fn rejects_and_keeps_a_result_while_dependencies_are_open(harness: &Harness) {
    let mut draft = harness.draft(3);
    draft.steps[2].depends_on = vec![1, 2];
    let plan = harness.create(draft).await;
    let submission = || submission_without_token(plan.steps[2], "too early");
    let open = |orders: &[u32]| {
        let ids = orders.iter().map(|order| plan.steps[*order as usize - 1]);
        let first = ids.zip(orders.iter().copied()).collect();
        let total = u32::try_from(orders.len()).unwrap();
        Refusal::DependenciesOpen(OpenDependencies { total, first })
    };
    let rejected = error(harness.submit(submission()).await);
    assert_eq!(rejected.code().as_str(), "dependencies_open");
    assert!(rejected.kept().is_some());
    let first = harness.claim(plan.id).await;
    let claiming = Submission {
        claim_next: true,
        ..submission()
    };
    assert_eq!(refusal(harness.submit(claiming).await), open(&[1, 2]));
    harness.complete(&first, "done").await;
    assert_eq!(refusal(harness.submit(submission()).await), open(&[2]));
    let second = harness.claim(plan.id).await;
    harness.complete(&second, "done").await;
    harness.submit(submission()).await.unwrap();
    assert_eq!(harness.plan_status(plan.id).await, PlanStatus::Completed);
}

async fn a_repeated_review_request_returns_the_open_review(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = harness.claim(plan.id).await;
    let request = || harness.engine.request_review(&harness.me, review_of(&step));
    let first = request().await.unwrap();
    let trail = harness.audit_trail(plan.id).await;
    assert_eq!(request().await.unwrap(), first);
    assert_eq!(harness.audit_trail(plan.id).await, trail);
    let different = ReviewRequest {
        questions: Vec::new(),
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        ..review_of(&step)
    };
    let different = harness.engine.request_review(&harness.me, different).await;
    assert_eq!(code(different), "illegal_transition");
}

async fn a_repeated_decision_gets_the_first_response(harness: &Harness) {
    for (decision, feedback) in [
        (Decision::Approve, None),
        (Decision::Skip, Some("later")),
        (Decision::Modify, Some("shorter")),
        (Decision::Reject, None),
    ] {
        let plan = harness.plan(2).await;
        let step = harness.claim(plan.id).await;
        let requested = harness.engine.request_review(&harness.me, review_of(&step));
        requested.await.unwrap();
        let decide = |decision, feedback: Option<&str>| {
            let feedback = feedback.map(str::to_owned);
            let review = ReviewDecision::new(step.step, decision, feedback);
            harness.engine.decide_review(&harness.me, review)
        };
        let first = decide(decision, feedback).await.unwrap();
        // The plan continues before the decision is repeated.
        if decision == Decision::Modify {
            harness.complete(&step, "done").await;
        }
        let trail = harness.audit_trail(plan.id).await;
        assert_eq!(decide(decision, feedback).await.unwrap(), first);
        let other = harness.another_engine().await;
        let review = ReviewDecision::new(step.step, decision, feedback.map(str::to_owned));
        let again = other.decide_review(&harness.me, review).await.unwrap();
        assert_eq!(again, first);
        other.close().await;
        assert_eq!(harness.audit_trail(plan.id).await, trail);
        assert!(decide(decision, Some("another feedback")).await.is_err());
    }
}

async fn new_instructions_reach_the_agent_once(harness: &Harness) {
    let plan = harness.plan(2).await;
    let step = claim_for(harness, plan.id, "a").await;
    harness
        .modify(plan.id, update(step.step, "new"))
        .await
        .unwrap();
    let report = || {
        harness
            .engine
            .report_progress(&harness.me, progress_of(&step))
    };
    let first = report().await.unwrap();
    assert_eq!(first.changed_instructions.as_deref(), Some("new"));
    assert_eq!(report().await.unwrap().changed_instructions, None);

    harness
        .modify(plan.id, update(step.step, "newer"))
        .await
        .unwrap();
    let submission = || Submission {
        claim_next: true,
        ..submission_for(&step, "done")
    };
    let response = harness.submit(submission()).await.unwrap();
    assert_eq!(response.changed_instructions.as_deref(), Some("newer"));
    assert!(matches!(response.next_step, Some(NextStep::Started(_))));
    assert_eq!(harness.submit(submission()).await.unwrap(), response);
}

on_both_databases![
    after_modify_only_its_session_receives_the_step,
    a_stalled_step_after_modify_is_taken_over_with_the_feedback,
    a_superseded_token_cannot_change_the_step_or_decide_its_review,
    modifications_and_decisions_record_the_session,
    the_token_keeps_the_session_for_the_completion_and_the_next_claim,
    rejects_and_keeps_a_result_with_the_token_of_another_step,
    rejects_and_keeps_a_result_while_dependencies_are_open,
    a_repeated_review_request_returns_the_open_review,
    a_repeated_decision_gets_the_first_response,
    new_instructions_reach_the_agent_once,
];

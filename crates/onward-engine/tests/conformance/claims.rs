//! Handing steps out: in order, to one caller each, under a claim.

use onward_core::command::Modification;
use onward_core::id::{ClaimToken, SessionId};
use onward_engine::next::{Next, Peek};
use onward_engine::submit::Submission;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, handed, result, result_without_token};

async fn steps_are_handed_out_in_order_and_the_plan_ends_with_the_last(desk: &Desk) {
    let plan = desk.plan(3).await;
    for (place, step) in plan.steps.iter().enumerate() {
        let handed = desk.take(plan.id).await;
        assert_eq!(handed.step, *step);
        assert_eq!((handed.attempt, handed.total), (1, 3));
        assert_eq!(usize::try_from(handed.order).unwrap(), place + 1);
        assert_eq!(desk.plan_status(plan.id).await.as_str(), "executing");
        desk.hand_in(&handed, "done").await;
    }
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "completed");
    assert_eq!(
        desk.trail(plan.id).await,
        [
            "plan_modified created",
            "step_started",
            "step_completed",
            "step_started",
            "step_completed",
            "step_started",
            "step_completed",
            "plan_completed",
        ]
    );
}

async fn a_finished_plan_answers_with_how_its_output_should_look(desk: &Desk) {
    let mut draft = desk.draft(2);
    draft.output_formatting_notes = Some("as a table".to_owned());
    let plan = desk.create(draft).await;
    desk.work_off(plan.id, 1).await;
    let last = desk.take(plan.id).await;
    let mut submission = result(&last, "done");
    submission.result.formatting_notes = Some("with a figure".to_owned());
    desk.submit(submission).await.unwrap();
    let Next::Complete(notes) = desk.ask(plan.id).await else {
        panic!("the plan is over")
    };
    assert_eq!(notes.plan.as_deref(), Some("as a table"));
    assert_eq!(notes.steps, [(last.step, 2, "with a figure".to_owned())]);
}

async fn a_step_waits_until_all_that_it_depends_on_is_over(desk: &Desk) {
    let mut draft = desk.draft(4);
    draft.steps[0].depends_on = vec![2, 3];
    let plan = desk.create(draft).await;
    let second = desk.take(plan.id).await;
    assert_eq!(second.order, 2);
    let third = desk.take(plan.id).await;
    let fourth = desk.take(plan.id).await;
    assert_eq!((third.order, fourth.order), (3, 4));
    let Next::NoPendingSteps {
        in_progress,
        failed,
        blocked,
        working,
    } = desk.ask(plan.id).await
    else {
        panic!("the first step still waits")
    };
    assert_eq!((in_progress, failed, blocked, working.len()), (3, 0, 1, 3));
    desk.hand_in(&second, "done").await;
    assert!(matches!(
        desk.ask(plan.id).await,
        Next::NoPendingSteps { .. }
    ));
    // A step that fails holds nobody up.
    let fails = Modification::FailStep {
        step: third.step,
        reason: None,
    };
    desk.modify(plan.id, fails).await.unwrap();
    assert_eq!(desk.take(plan.id).await.order, 1);
}

async fn looking_at_what_comes_next_hands_nothing_out(desk: &Desk) {
    let plan = desk.plan(1).await;
    for _ in 0..2 {
        let Peek::Step(step) = desk.engine.peek(&desk.me, plan.id).await.unwrap() else {
            panic!("there is a step")
        };
        assert_eq!(step.id(), plan.steps[0]);
    }
    assert_eq!(desk.trail(plan.id).await.len(), 1);
    desk.work_off(plan.id, 1).await;
    let peek = desk.engine.peek(&desk.me, plan.id).await.unwrap();
    assert!(matches!(peek, Peek::None(Next::Complete(_))));
}

async fn many_who_ask_at_once_get_different_steps(desk: &Desk) {
    let plan = desk.plan(6).await;
    let other = desk.another_engine().await;
    let calls: Vec<_> = (0..10)
        .map(|number| {
            let engine = if number % 2 == 0 {
                &desk.engine
            } else {
                &other
            };
            let (engine, me, plan) = (engine.clone(), desk.me.clone(), plan.id);
            tokio::spawn(async move { engine.next_step(&me, plan, None, false).await })
        })
        .collect();
    let (mut steps, mut empty) = (Vec::new(), 0);
    for call in calls {
        match call.await.unwrap().unwrap() {
            Next::Started(step) => steps.push(step.step),
            Next::NoPendingSteps { .. } => empty += 1,
            other @ (Next::Complete(_) | Next::Failed { .. } | Next::AwaitingReview { .. }) => {
                panic!("{other:?}")
            }
        }
    }
    steps.sort();
    let mut all = plan.steps.clone();
    all.sort();
    assert_eq!((steps, empty), (all, 4));
    other.close().await;
}

async fn many_who_submit_the_same_step_at_once_complete_it_once(desk: &Desk) {
    let plan = desk.plan(2).await;
    let step = desk.take(plan.id).await;
    let calls: Vec<_> = (0..6)
        .map(|number| {
            let (engine, me) = (desk.engine.clone(), desk.me.clone());
            let submission = result(&step, &format!("by {number}"));
            tokio::spawn(async move { engine.submit(&me, submission).await })
        })
        .collect();
    let mut accepted = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => accepted += 1,
            Err(why) => assert!(why.kept().is_some(), "{why}"),
        }
    }
    assert_eq!(accepted, 1);
    let trail = desk.trail(plan.id).await;
    assert_eq!(
        trail
            .iter()
            .filter(|name| *name == "step_completed")
            .count(),
        1
    );
    assert_eq!(
        trail
            .iter()
            .filter(|name| *name == "late_result_kept")
            .count(),
        5
    );
}

async fn a_result_without_a_token_counts_for_the_current_claim(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    desk.submit(result_without_token(step.step, "done"))
        .await
        .unwrap();
    assert_eq!(desk.statuses(plan.id).await, ["completed"]);
}

async fn a_result_for_a_step_that_nobody_took_on_takes_it_on_first(desk: &Desk) {
    let plan = desk.plan(1).await;
    let submitted = desk
        .submit(result_without_token(plan.steps[0], "done"))
        .await
        .unwrap();
    assert_eq!(submitted.plan_status.as_str(), "completed");
    assert_eq!(
        desk.trail_behind(plan.id, 1).await,
        ["step_started", "step_completed", "plan_completed"]
    );
}

async fn a_made_up_token_is_refused_while_somebody_has_the_step(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    let made_up = Submission {
        token: Some(ClaimToken::new("made up")),
        ..result(&step, "done")
    };
    assert_eq!(code(desk.submit(made_up).await), "claim_superseded");
    assert_eq!(desk.statuses(plan.id).await, ["in_progress"]);
}

async fn a_superseded_token_is_refused_once_somebody_else_has_the_step(desk: &Desk) {
    let plan = desk.plan(1).await;
    let first = desk.take(plan.id).await;
    let back = Modification::RequeueStep { step: first.step };
    desk.modify(plan.id, back).await.unwrap();
    let second = desk.take(plan.id).await;
    assert_eq!((second.step, second.attempt), (first.step, 2));
    assert_ne!(second.token, first.token);
    assert_eq!(
        code(desk.submit(result(&first, "late")).await),
        "claim_superseded"
    );
    desk.hand_in(&second, "in time").await;
}

async fn a_superseded_token_still_counts_while_nobody_else_has_the_step(desk: &Desk) {
    let plan = desk.plan(1).await;
    let first = desk.take(plan.id).await;
    let back = Modification::RequeueStep { step: first.step };
    desk.modify(plan.id, back).await.unwrap();
    desk.hand_in(&first, "after all").await;
    assert_eq!(desk.statuses(plan.id).await, ["completed"]);
}

async fn a_step_that_was_handed_back_as_often_as_it_may_be_fails(desk: &Desk) {
    let mut draft = desk.draft(1);
    draft.steps[0].max_attempts = Some(2);
    let plan = desk.create(draft).await;
    for attempt in 1..=2 {
        let step = desk.take(plan.id).await;
        assert_eq!(step.attempt, attempt);
        desk.modify(plan.id, Modification::RequeueStep { step: step.step })
            .await
            .unwrap();
    }
    assert_eq!(desk.statuses(plan.id).await, ["failed"]);
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "completed");
    assert_eq!(desk.status(plan.id).await.sheet.head.counts.progress(), 0);
}

async fn who_holds_a_step_is_told_to_those_who_get_none(desk: &Desk) {
    let plan = desk.plan(1).await;
    let session = SessionId::new("agent 7");
    let next = desk
        .engine
        .next_step(&desk.me, plan.id, Some(session.clone()), false)
        .await;
    handed(next.unwrap());
    desk.advance(std::time::Duration::from_millis(1_500));
    let Next::NoPendingSteps { working, .. } = desk.ask(plan.id).await else {
        panic!("the only step is taken")
    };
    assert_eq!(working[0].session, Some(session));
    assert_eq!(working[0].elapsed, std::time::Duration::from_millis(1_500));
    assert!(!working[0].stalled);
}

on_both_databases![
    steps_are_handed_out_in_order_and_the_plan_ends_with_the_last,
    a_finished_plan_answers_with_how_its_output_should_look,
    a_step_waits_until_all_that_it_depends_on_is_over,
    looking_at_what_comes_next_hands_nothing_out,
    many_who_ask_at_once_get_different_steps,
    many_who_submit_the_same_step_at_once_complete_it_once,
    a_result_without_a_token_counts_for_the_current_claim,
    a_result_for_a_step_that_nobody_took_on_takes_it_on_first,
    a_made_up_token_is_refused_while_somebody_has_the_step,
    a_superseded_token_is_refused_once_somebody_else_has_the_step,
    a_superseded_token_still_counts_while_nobody_else_has_the_step,
    a_step_that_was_handed_back_as_often_as_it_may_be_fails,
    who_holds_a_step_is_told_to_those_who_get_none,
];

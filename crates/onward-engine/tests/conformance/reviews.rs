//! A person decides: approve, reject, modify, skip.

use onward_core::PlanId;
use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_core::event::Decision;
use onward_core::plan::PlanFailure;
use onward_engine::Error;
use onward_engine::next::{Handed, Next, Peek};
use onward_engine::step::{Asked, Question};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, error, handed, result};

fn question(step: &Handed) -> Question {
    Question {
        step: step.step,
        summary: "It is the Moon.".to_owned(),
        questions: vec!["And the Sun?".to_owned()],
        token: Some(step.token.clone()),
        session: None,
    }
}

/// Takes the next step on and asks a person about it.
async fn put_up(desk: &Desk, plan: PlanId) -> (Handed, Asked) {
    let step = desk.take(plan).await;
    let asked = desk.engine.request_review(&desk.me, question(&step)).await;
    (step, asked.expect("a person can be asked"))
}

async fn decide(
    desk: &Desk,
    step: &Handed,
    decision: Decision,
    feedback: Option<&str>,
) -> Result<onward_engine::step::Reviewed, Error> {
    let feedback = feedback.map(str::to_owned);
    desk.engine
        .decide_review(&desk.me, step.step, decision, feedback)
        .await
}

async fn a_question_stops_the_plan_until_a_person_answers(desk: &Desk) {
    let plan = desk.plan(2).await;
    let (step, asked) = put_up(desk, plan.id).await;
    assert_eq!((asked.plan, asked.step), (plan.id, step.step));
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "awaiting_review");
    assert_eq!(desk.statuses(plan.id).await, ["awaiting_input", "pending"]);
    let Next::AwaitingReview {
        step: about,
        review,
    } = desk.ask(plan.id).await
    else {
        panic!("a person decides first")
    };
    assert_eq!((about, review.id), (step.step, asked.review));
    assert_eq!(review.summary, "It is the Moon.");
    assert_eq!(review.questions, ["And the Sun?"]);
    assert_eq!(review.requested_at, desk.now());
    let peek = desk.engine.peek(&desk.me, plan.id).await.unwrap();
    assert!(matches!(peek, Peek::None(Next::AwaitingReview { .. })));
}

async fn approval_makes_the_summary_the_result_and_tries_the_branches(desk: &Desk) {
    let to_last = ActionSpec::SkipTo(StepRef::Order(3));
    let branches = vec![desk.branch(1, "resultSummary == 'It is the Moon.'", to_last)];
    let plan = desk.branching(3, branches).await;
    let (step, _) = put_up(desk, plan.id).await;
    let reviewed = decide(desk, &step, Decision::Approve, Some("yes"))
        .await
        .unwrap();
    assert_eq!(reviewed.step_status.as_str(), "completed");
    assert_eq!(reviewed.plan_status.as_str(), "executing");
    assert_eq!(reviewed.instructions, None);
    assert_eq!(
        desk.statuses(plan.id).await,
        ["completed", "skipped", "pending"]
    );
    let status = desk.status(plan.id).await;
    let summary = status.completed[0].result_summary.as_deref();
    assert_eq!(summary, Some("It is the Moon."));
    assert_eq!(
        desk.trail_behind(plan.id, 2).await,
        [
            "user_reviewed review_requested",
            "user_reviewed approve",
            "step_completed",
            "branch_taken skip_to",
            "step_skipped",
        ]
    );
}

async fn approval_of_the_last_step_ends_the_plan(desk: &Desk) {
    let plan = desk.plan(1).await;
    let (step, _) = put_up(desk, plan.id).await;
    let reviewed = decide(desk, &step, Decision::Approve, None).await.unwrap();
    assert_eq!(reviewed.plan_status.as_str(), "completed");
}

async fn rejection_fails_the_step_and_the_plan(desk: &Desk) {
    let plan = desk.plan(2).await;
    let (step, _) = put_up(desk, plan.id).await;
    let reviewed = decide(desk, &step, Decision::Reject, Some("wrong"))
        .await
        .unwrap();
    assert_eq!(reviewed.step_status.as_str(), "failed");
    assert_eq!(reviewed.plan_status.as_str(), "failed");
    let Next::Failed { reason } = desk.ask(plan.id).await else {
        panic!("the plan was given up")
    };
    assert_eq!(reason, PlanFailure::Rejected(Some("wrong".to_owned())));
}

async fn modification_gives_the_step_back_with_the_words_exactly_once(desk: &Desk) {
    let plan = desk.plan(2).await;
    let (step, _) = put_up(desk, plan.id).await;
    let reviewed = decide(desk, &step, Decision::Modify, Some("add tables"))
        .await
        .unwrap();
    assert_eq!(reviewed.step_status.as_str(), "in_progress");
    let instructions = "1\n\n---\n\nUser feedback: add tables";
    assert_eq!(reviewed.instructions.as_deref(), Some(instructions));
    let Peek::Step(peeked) = desk.engine.peek(&desk.me, plan.id).await.unwrap() else {
        panic!("the step comes back")
    };
    assert_eq!(peeked.id(), step.step);
    let again = desk.take(plan.id).await;
    assert_eq!((again.step, again.attempt), (step.step, step.attempt));
    assert_eq!(again.token, step.token);
    assert_eq!(again.instructions, instructions);
    assert_eq!(desk.take(plan.id).await.order, 2, "it comes back once");
    desk.hand_in(&again, "with tables").await;
}

async fn of_two_who_ask_at_once_one_is_told_of_the_feedback(desk: &Desk) {
    let plan = desk.plan(2).await;
    let (step, _) = put_up(desk, plan.id).await;
    decide(desk, &step, Decision::Modify, Some("more"))
        .await
        .unwrap();
    let ask = || {
        let (engine, me, plan) = (desk.engine.clone(), desk.me.clone(), plan.id);
        tokio::spawn(async move { engine.next_step(&me, plan, None, false).await.unwrap() })
    };
    let (one, other) = (ask(), ask());
    let mut orders = [
        handed(one.await.unwrap()).order,
        handed(other.await.unwrap()).order,
    ];
    orders.sort_unstable();
    assert_eq!(orders, [1, 2]);
}

async fn modification_needs_words(desk: &Desk) {
    let plan = desk.plan(1).await;
    let (step, _) = put_up(desk, plan.id).await;
    for words in [None, Some(""), Some(" \n")] {
        let refused = decide(desk, &step, Decision::Modify, words).await;
        assert_eq!(code(refused), "feedback_required");
    }
    assert_eq!(desk.statuses(plan.id).await, ["awaiting_input"]);
}

async fn a_step_that_is_skipped_counts_as_progress(desk: &Desk) {
    let plan = desk.plan(2).await;
    let (step, _) = put_up(desk, plan.id).await;
    let reviewed = decide(desk, &step, Decision::Skip, None).await.unwrap();
    assert_eq!(reviewed.step_status.as_str(), "skipped");
    assert_eq!(reviewed.plan_status.as_str(), "executing");
    assert_eq!(desk.status(plan.id).await.sheet.head.counts.progress(), 50);
}

async fn a_result_for_a_step_that_awaits_a_person_is_refused_and_kept(desk: &Desk) {
    let plan = desk.plan(1).await;
    let (step, _) = put_up(desk, plan.id).await;
    let refused = error(desk.submit(result(&step, "anyway")).await);
    assert_eq!(refused.code().as_str(), "illegal_transition");
    assert!(refused.kept().is_some());
}

async fn a_result_for_another_step_is_accepted_meanwhile(desk: &Desk) {
    let plan = desk.plan(3).await;
    let other = desk.take(plan.id).await;
    let (step, _) = put_up(desk, plan.id).await;
    let submitted = desk.hand_in(&other, "done").await;
    assert_eq!(submitted.plan_status.as_str(), "awaiting_review");
    let never_begun = crate::verbs::result_without_token(plan.steps[2], "done");
    assert_eq!(code(desk.submit(never_begun).await), "illegal_transition");
    decide(desk, &step, Decision::Approve, None).await.unwrap();
    assert_eq!(desk.plan_status(plan.id).await.as_str(), "executing");
}

async fn a_review_is_decided_once(desk: &Desk) {
    let plan = desk.plan(2).await;
    let (step, _) = put_up(desk, plan.id).await;
    decide(desk, &step, Decision::Approve, None).await.unwrap();
    for decision in Decision::ALL {
        let refused = decide(desk, &step, decision, Some("words")).await;
        assert_eq!(code(refused), "illegal_transition", "{decision}");
    }
}

async fn only_a_step_in_progress_of_a_plan_that_executes_is_put_up(desk: &Desk) {
    let plan = desk.plan(3).await;
    let (first, second) = (desk.take(plan.id).await, desk.take(plan.id).await);
    let pending = Question {
        step: plan.steps[2],
        token: None,
        ..question(&first)
    };
    let refused = desk.engine.request_review(&desk.me, pending).await;
    assert_eq!(code(refused), "illegal_transition");
    desk.engine
        .request_review(&desk.me, question(&first))
        .await
        .unwrap();
    let refused = desk
        .engine
        .request_review(&desk.me, question(&second))
        .await;
    assert_eq!(code(refused), "illegal_transition");
}

async fn open_reviews_of_all_plans_are_listed_the_longest_waiting_first(desk: &Desk) {
    let mut expected = Vec::new();
    for _ in 0..3 {
        let plan = desk.plan(1).await;
        let (_, asked) = put_up(desk, plan.id).await;
        expected.push(asked.review);
        desk.advance(std::time::Duration::from_millis(1));
    }
    let open = async |limit| {
        let open = desk.engine.open_reviews(&desk.me, limit).await.unwrap();
        open.iter().map(|review| review.id).collect::<Vec<_>>()
    };
    assert_eq!(open(10).await, expected);
    assert_eq!(open(2).await, expected[..2]);
}

async fn a_plan_that_awaits_a_person_is_not_modified(desk: &Desk) {
    let plan = desk.plan(2).await;
    put_up(desk, plan.id).await;
    let removed = Modification::RemoveStep {
        step: plan.steps[1],
    };
    assert_eq!(
        code(desk.modify(plan.id, removed).await),
        "plan_not_modifiable"
    );
}

on_both_databases![
    a_question_stops_the_plan_until_a_person_answers,
    approval_makes_the_summary_the_result_and_tries_the_branches,
    approval_of_the_last_step_ends_the_plan,
    rejection_fails_the_step_and_the_plan,
    modification_gives_the_step_back_with_the_words_exactly_once,
    of_two_who_ask_at_once_one_is_told_of_the_feedback,
    modification_needs_words,
    a_step_that_is_skipped_counts_as_progress,
    a_result_for_a_step_that_awaits_a_person_is_refused_and_kept,
    a_result_for_another_step_is_accepted_meanwhile,
    a_review_is_decided_once,
    only_a_step_in_progress_of_a_plan_that_executes_is_put_up,
    open_reviews_of_all_plans_are_listed_the_longest_waiting_first,
    a_plan_that_awaits_a_person_is_not_modified,
];

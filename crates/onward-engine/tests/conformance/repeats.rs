//! The same result submitted twice gets the same answer twice, with the same next step, however far
//! the plan has moved on since.

use onward_core::command::{ActionSpec, Modification, StepRef};
use onward_engine::next::{Handed, Next};
use onward_engine::submit::Submission;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, handed, result, result_without_token};

fn and_next(step: &Handed, words: &str) -> Submission {
    Submission {
        claim_next: true,
        ..result(step, words)
    }
}

async fn the_next_step_comes_with_the_answer_in_the_same_commit(desk: &Desk) {
    let plan = desk.plan(3).await;
    let first = desk.take(plan.id).await;
    let answer = desk.submit(and_next(&first, "done")).await.unwrap();
    let second = handed(answer.next_step.unwrap());
    assert_eq!((second.step, second.attempt), (plan.steps[1], 1));
    assert_eq!(second.progress, 33);
    assert_eq!(
        desk.statuses(plan.id).await,
        ["completed", "in_progress", "pending"]
    );
    let whole = desk.engine.whole_plan(&desk.me, plan.id).await.unwrap();
    let commits: Vec<u64> = whole.trail.iter().map(|entry| entry.commit_seq).collect();
    assert_eq!(commits, [1, 2, 3, 3]);
}

async fn a_repeated_submission_gets_the_equal_answer(desk: &Desk) {
    let plan = desk.plan(3).await;
    let first = desk.take(plan.id).await;
    let answer = desk.submit(and_next(&first, "done")).await.unwrap();
    let before = desk.trail(plan.id).await;
    assert_eq!(desk.submit(and_next(&first, "done")).await.unwrap(), answer);
    assert_eq!(
        desk.trail(plan.id).await,
        before,
        "nothing happens the second time"
    );
}

async fn a_repeated_submission_gets_the_equal_answer_after_the_plan_moved_on(desk: &Desk) {
    let plan = desk.plan(4).await;
    let first = desk.take(plan.id).await;
    let answer = desk.submit(and_next(&first, "done")).await.unwrap();
    let second = handed(answer.next_step.clone().unwrap());
    desk.advance(std::time::Duration::from_secs(60));
    desk.hand_in(&second, "done").await;
    let added = Modification::AddSteps {
        steps: desk.steps(2),
        insert_after: Some(0),
    };
    desk.modify(plan.id, added).await.unwrap();
    desk.take(plan.id).await;
    assert_eq!(desk.submit(and_next(&first, "done")).await.unwrap(), answer);
    desk.engine
        .abandon_plan(&desk.me, plan.id, None)
        .await
        .unwrap();
    assert_eq!(desk.submit(and_next(&first, "done")).await.unwrap(), answer);
}

async fn a_repeated_submission_gets_the_equal_answer_after_its_step_was_rewritten(desk: &Desk) {
    let plan = desk.plan(3).await;
    let first = desk.take(plan.id).await;
    let answer = desk.submit(and_next(&first, "done")).await.unwrap();
    let rewritten = Modification::UpdateInstructions {
        step: first.step,
        instructions: "This is what should have been done.".to_owned(),
    };
    desk.modify(plan.id, rewritten).await.unwrap();
    assert_eq!(desk.submit(and_next(&first, "done")).await.unwrap(), answer);
    let (_, faults) = desk.engine.verify_plan(&desk.me, plan.id).await.unwrap();
    assert_eq!(faults, [""; 0]);
}

async fn a_repeated_submission_gets_the_branch_that_was_taken(desk: &Desk) {
    let to_last = ActionSpec::SkipTo(StepRef::Order(4));
    let branches = vec![
        desk.branch(1, "result.nothing > 1", ActionSpec::Continue),
        desk.branch(1, "true", to_last),
    ];
    let plan = desk.branching(4, branches).await;
    let first = desk.take(plan.id).await;
    let answer = desk.submit(and_next(&first, "done")).await.unwrap();
    assert_eq!(answer.verdicts.len(), 2);
    assert_eq!(answer.taken.as_ref().unwrap().0, plan.branches[1]);
    desk.hand_in(&handed(answer.next_step.clone().unwrap()), "done")
        .await;
    assert_eq!(desk.submit(and_next(&first, "done")).await.unwrap(), answer);
}

async fn the_last_step_with_claim_next_answers_that_the_plan_is_over(desk: &Desk) {
    let plan = desk.plan(1).await;
    let only = desk.take(plan.id).await;
    let answer = desk.submit(and_next(&only, "done")).await.unwrap();
    assert!(
        matches!(answer.next_step, Some(Next::Complete(_))),
        "{answer:?}"
    );
    assert_eq!(answer.plan_status.as_str(), "completed");
    assert_eq!(desk.submit(and_next(&only, "done")).await.unwrap(), answer);
}

async fn claim_next_where_all_others_are_taken_says_so_both_times(desk: &Desk) {
    let plan = desk.plan(2).await;
    let first = desk.take(plan.id).await;
    desk.take(plan.id).await;
    let answer = desk.submit(and_next(&first, "done")).await.unwrap();
    assert!(
        matches!(answer.next_step, Some(Next::NoPendingSteps { .. })),
        "{answer:?}"
    );
    assert_eq!(desk.submit(and_next(&first, "done")).await.unwrap(), answer);
}

async fn a_repetition_that_first_asks_for_a_next_step_gets_one(desk: &Desk) {
    let plan = desk.plan(2).await;
    let first = desk.take(plan.id).await;
    desk.hand_in(&first, "done").await;
    let again = desk.submit(and_next(&first, "done")).await.unwrap();
    assert_eq!(handed(again.next_step.unwrap()).step, plan.steps[1]);
}

async fn a_result_that_was_never_claimed_is_answered_again_without_a_token(desk: &Desk) {
    let plan = desk.plan(2).await;
    let submission = Submission {
        claim_next: true,
        ..result_without_token(plan.steps[0], "done")
    };
    let answer = desk.submit(submission.clone()).await.unwrap();
    assert_eq!(desk.submit(submission).await.unwrap(), answer);
}

async fn another_result_for_the_same_step_is_no_repetition(desk: &Desk) {
    let plan = desk.plan(2).await;
    let step = desk.take(plan.id).await;
    let mut first = result(&step, "done");
    first.result.confidence = Some(0.5);
    desk.submit(first.clone()).await.unwrap();
    let mut other = first.clone();
    other.result.confidence = Some(0.6);
    assert_eq!(code(desk.submit(other).await), "illegal_transition");
    let mut other = first;
    other.result.data = Some(serde_json::json!({}));
    assert_eq!(code(desk.submit(other).await), "illegal_transition");
}

async fn the_answer_is_the_same_on_another_engine(desk: &Desk) {
    let plan = desk.plan(2).await;
    let step = desk.take(plan.id).await;
    let answer = desk.submit(and_next(&step, "done")).await.unwrap();
    let other = desk.another_engine().await;
    let again = other
        .submit(&desk.me, and_next(&step, "done"))
        .await
        .unwrap();
    assert_eq!(again, answer);
    other.close().await;
}

on_both_databases![
    the_next_step_comes_with_the_answer_in_the_same_commit,
    a_repeated_submission_gets_the_equal_answer,
    a_repeated_submission_gets_the_equal_answer_after_the_plan_moved_on,
    a_repeated_submission_gets_the_equal_answer_after_its_step_was_rewritten,
    a_repeated_submission_gets_the_branch_that_was_taken,
    the_last_step_with_claim_next_answers_that_the_plan_is_over,
    claim_next_where_all_others_are_taken_says_so_both_times,
    a_repetition_that_first_asks_for_a_next_step_gets_one,
    a_result_that_was_never_claimed_is_answered_again_without_a_token,
    another_result_for_the_same_step_is_no_repetition,
    the_answer_is_the_same_on_another_engine,
];

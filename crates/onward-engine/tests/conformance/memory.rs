//! What a process remembers of the plans that it works on: it is not asked for again, and never
//! believed where somebody else has changed the plan meanwhile.

use onward_core::command::{Modification, ReportSkill};
use onward_core::event::Decision;
use onward_core::skill::SkillStatus;
use onward_engine::Engine;
use onward_engine::next::{Handed, Next};
use onward_engine::step::Progress;
use onward_engine::submit::Submission;
use serde_json::json;

use crate::desk::Desk;
use crate::on_postgres;
use crate::verbs::{code, handed, result};

/// How many operations a call takes: its questions, and two for the commit, before and after it.
async fn operations<A>(desk: &Desk, call: impl Future<Output = A>) -> (A, u32) {
    const ENOUGH: u32 = 1000;
    desk.faults.strike_after(ENOUGH);
    let answer = call.await;
    let left = desk.faults.left();
    desk.faults.strike_after(u32::MAX);
    (answer, ENOUGH - left.expect("that is enough for any call"))
}

/// Whether a call did without a question.
async fn asks_nothing<A>(desk: &Desk, call: impl Future<Output = A>) -> (A, bool) {
    let (answer, operations) = operations(desk, call).await;
    (answer, operations <= 2)
}

async fn a_plan_that_was_made_here_is_not_asked_for(desk: &Desk) {
    let plan = desk.plan(3).await;
    let (first, known) = asks_nothing(desk, desk.ask(plan.id)).await;
    assert!(known, "it was made a moment ago");
    let mut step = handed(first);
    for _ in 0..2 {
        let submission = Submission {
            claim_next: true,
            ..result(&step, "done")
        };
        let (submitted, known) = asks_nothing(desk, desk.submit(submission)).await;
        assert!(known, "nobody else works on it");
        step = handed(submitted.unwrap().next_step.unwrap());
    }
    let (last, known) = asks_nothing(desk, desk.submit(result(&step, "done"))).await;
    assert!(known);
    assert_eq!(last.unwrap().progress, 100);
}

async fn a_plan_that_ends_here_says_how_its_output_should_look(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    let mut submission = Submission {
        claim_next: true,
        ..result(&step, "done")
    };
    submission.result.formatting_notes = Some("As a table.".to_owned());
    let (last, known) = asks_nothing(desk, desk.submit(submission)).await;
    assert!(known, "all that was said about it is known");
    let Some(Next::Complete(notes)) = last.unwrap().next_step else {
        panic!("it was the last step")
    };
    assert_eq!(notes.steps, [(step.step, 1, "As a table.".to_owned())]);
}

async fn what_a_skill_said_about_the_output_is_asked_for(desk: &Desk) {
    let plan = desk.plan(2).await;
    let step = desk.take(plan.id).await;
    let said = json!({"outputMediaType": "text/html"});
    let report = ReportSkill {
        skill: "tides".to_owned(),
        status: SkillStatus::Started,
        session: None,
        plan: Some(plan.id),
        metadata: said.as_object().cloned().unwrap(),
        error: None,
    };
    let logged = desk.engine.log_skill(&desk.me, None, report).await;
    logged.expect("it can be linked");
    let mut next = Some(Next::Started(Box::new(step)));
    while let Some(Next::Started(step)) = next {
        let submission = Submission {
            claim_next: true,
            ..result(&step, "done")
        };
        next = desk.submit(submission).await.unwrap().next_step;
    }
    let Some(Next::Complete(notes)) = next else {
        panic!("all steps are done")
    };
    assert_eq!(notes.media_type.as_deref(), Some("text/html"));
}

async fn a_plan_of_another_process_is_asked_for_once(desk: &Desk) {
    let elsewhere = desk.another_engine().await;
    let draft = desk.draft(4);
    let plan = draft.plan;
    let made = elsewhere.create_plan(&desk.me, draft, None).await;
    made.expect("it can be made");
    desk.take(plan).await;
    let (_, known) = asks_nothing(desk, desk.ask(plan)).await;
    assert!(known, "all of it was looked at the first time");
    let first = format!("SELECT min(stalls_at) + 1 FROM steps WHERE plan_id = '{plan}'");
    let due = format!("SELECT at = ({first}) FROM due WHERE plan_id = '{plan}'");
    let right = desk.sql(&due).expect("the sweep will look");
    assert_eq!(right.trim(), "t", "when the first of them may stall");
    elsewhere.close().await;
}

async fn a_plan_with_a_heavy_trail_is_asked_for_all_of_it_when_it_pays(desk: &Desk) {
    let elsewhere = desk.another_engine().await;
    let mut draft = desk.draft(12);
    for step in &mut draft.steps {
        step.instructions = "Look. ".repeat(5_000);
    }
    let plan = draft.plan;
    let made = elsewhere.create_plan(&desk.me, draft, None).await;
    made.expect("it can be made");
    let (_, first) = operations(desk, desk.take(plan)).await;
    assert_eq!(first, 2 + 2, "that its trail is heavy had to be found out");
    let mut questions = Vec::new();
    for _ in 0..11 {
        let (step, left) = operations(desk, desk.take(plan)).await;
        questions.push(left - 2);
        let (submitted, left) = operations(desk, desk.submit(result(&step, "done"))).await;
        submitted.expect("it is accepted");
        questions.push(left - 2);
    }
    // Its facts, each time, until all of it is read once.
    assert_eq!(questions[..17], [1; 17], "{questions:?}");
    assert_eq!(questions[17..], [0; 5], "{questions:?}");
    elsewhere.close().await;
}

async fn what_another_process_changed_is_seen(desk: &Desk) {
    let elsewhere = desk.another_engine().await;
    let plan = desk.plan(2).await;
    let first = desk.take(plan.id).await;
    let change = Modification::UpdateInstructions {
        step: plan.steps[1],
        instructions: "another thing".to_owned(),
    };
    let changed = elsewhere.modify_plan(&desk.me, plan.id, change, None, false);
    changed.await.expect("it can be changed");
    let submission = Submission {
        claim_next: true,
        ..result(&first, "done")
    };
    let submitted = desk.submit(submission).await.unwrap();
    let second = handed(submitted.next_step.unwrap());
    assert_eq!(second.instructions, "another thing");
    elsewhere.close().await;
}

async fn that_there_is_nothing_to_do_is_looked_up(desk: &Desk) {
    let elsewhere = desk.another_engine().await;
    let plan = desk.plan(1).await;
    desk.take(plan.id).await;
    assert!(matches!(
        desk.ask(plan.id).await,
        Next::NoPendingSteps { in_progress: 1, .. }
    ));
    let second = desk.plan(1).await;
    let taken = desk.take(second.id).await;
    let change = Modification::AddSteps {
        insert_after: None,
        steps: vec![desk.step("more")],
    };
    let changed = elsewhere.modify_plan(&desk.me, second.id, change, None, false);
    changed.await.expect("it can be changed");
    // As far as this process remembers, all is handed out.
    let more = desk.take(second.id).await;
    assert_eq!(more.instructions, "more");
    assert_ne!(more.step, taken.step);
    elsewhere.close().await;
}

async fn that_a_person_decides_first_is_looked_up(desk: &Desk) {
    let elsewhere = desk.another_engine().await;
    let plan = desk.plan(2).await;
    let step = desk.take(plan.id).await;
    let asked = desk.ask_a_person(&step).await;
    asked.expect("a person can be asked");
    let decided = elsewhere.decide_review(&desk.me, step.step, Decision::Approve, None);
    decided.await.expect("they answer on another server");
    assert_eq!(desk.take(plan.id).await.step, plan.steps[1]);
    elsewhere.close().await;
}

/// A step that this process handed out, and that another one has handed out again since.
async fn handed_out_again(desk: &Desk, elsewhere: &Engine) -> (Handed, Handed) {
    let plan = desk.plan(2).await;
    let first = desk.take(plan.id).await;
    let change = Modification::RequeueStep { step: first.step };
    let changed = elsewhere.modify_plan(&desk.me, plan.id, change, None, false);
    changed.await.expect("it can be handed back");
    let again = elsewhere.next_step(&desk.me, plan.id, None, false).await;
    let again = handed(again.expect("it is handed out again"));
    assert_eq!(again.step, first.step);
    (first, again)
}

async fn a_refusal_is_looked_up(desk: &Desk) {
    let elsewhere = desk.another_engine().await;
    let (_, again) = handed_out_again(desk, &elsewhere).await;
    let alive = Progress {
        step: again.step,
        note: None,
        percent: None,
        token: Some(again.token.clone()),
        session: None,
    };
    let heard = desk.engine.report_progress(&desk.me, alive).await;
    heard.expect("the claim is good");
    elsewhere.close().await;
}

async fn a_result_that_would_be_kept_as_late_is_looked_up(desk: &Desk) {
    let elsewhere = desk.another_engine().await;
    let (_, again) = handed_out_again(desk, &elsewhere).await;
    let submitted = desk.submit(result(&again, "done")).await;
    assert_eq!(submitted.expect("the claim is good").step, again.step);
    elsewhere.close().await;
}

async fn a_claim_that_is_only_remembered_is_worth_nothing(desk: &Desk) {
    let elsewhere = desk.another_engine().await;
    let (first, _) = handed_out_again(desk, &elsewhere).await;
    let late = desk.submit(result(&first, "late")).await;
    assert_eq!(code(late), "claim_superseded");
    elsewhere.close().await;
}

on_postgres!(
    a_plan_that_was_made_here_is_not_asked_for,
    a_plan_that_ends_here_says_how_its_output_should_look,
    what_a_skill_said_about_the_output_is_asked_for,
    a_plan_of_another_process_is_asked_for_once,
    a_plan_with_a_heavy_trail_is_asked_for_all_of_it_when_it_pays,
    what_another_process_changed_is_seen,
    that_there_is_nothing_to_do_is_looked_up,
    that_a_person_decides_first_is_looked_up,
    a_refusal_is_looked_up,
    a_result_that_would_be_kept_as_late_is_looked_up,
    a_claim_that_is_only_remembered_is_worth_nothing,
);

//! The database goes away in the middle of a call: nothing is half done, and the same call, sent again,
//! does what it should have done.

use onward_core::call::CallStatus;
use onward_core::command::Modification;
use onward_core::id::SessionId;
use onward_engine::Error;
use onward_engine::ledger::Begins;
use onward_engine::next::Next;
use onward_engine::session::Heard;
use onward_engine::submit::Submission;

use crate::desk::Desk;
use crate::ledger::{call, heard};
use crate::on_both_databases;
use crate::place::Kind;
use crate::verbs::{document, error, handed, result};

/// Makes a call with a fault at each of its operations in turn, until there are no more, and gives
/// back how many there were. Whatever failed is sent again, and must then go well.
async fn with_every_fault(desk: &Desk, mut call: impl AsyncFnMut() -> Result<(), Error>) -> u32 {
    for operation in 0..100 {
        desk.faults.strike_after(operation);
        match call().await {
            Err(why) => {
                assert_eq!(why.code().as_str(), "unavailable", "{why}");
                assert!(!why.hint().is_empty());
                call().await.expect("sent again, it goes well");
            }
            Ok(()) => assert!(desk.faults.is_pending(), "a fault was swallowed"),
        }
        if desk.faults.is_pending() {
            desk.faults.strike_after(u32::MAX);
            return operation;
        }
    }
    panic!("a call has fewer operations than that")
}

async fn a_submission_that_was_cut_off_is_sent_again_and_counts_once(desk: &Desk) {
    let plan = desk.plan(12).await;
    let mut current = desk.take(plan.id).await;
    let mut handed_in = 0;
    let struck = with_every_fault(desk, async || {
        let submission = Submission {
            claim_next: true,
            ..result(&current, "done")
        };
        let answer = desk.submit(submission).await?;
        handed_in += 1;
        current = handed(answer.next_step.expect("it was asked for"));
        Ok(())
    });
    let struck = struck.await;
    // A server's plan is remembered.
    let questions = u32::from(desk.place.kind() == Kind::Sqlite);
    assert!(struck >= questions + 2, "the commit, its answer: {struck}");
    let status = desk.status(plan.id).await;
    assert_eq!(status.sheet.head.counts.completed, handed_in);
    let trail = desk.trail(plan.id).await;
    let completed = trail
        .iter()
        .filter(|name| *name == "step_completed")
        .count();
    assert_eq!(
        u32::try_from(completed).unwrap(),
        handed_in,
        "none counts twice"
    );
}

async fn a_plan_whose_making_was_cut_off_is_made_once(desk: &Desk) {
    let mut number = 0;
    let mut made = Vec::new();
    let struck = with_every_fault(desk, async || {
        let key = Some(format!("key {number}"));
        let created = desk
            .engine
            .create_plan(&desk.me, desk.draft(2), key)
            .await?;
        number += 1;
        made.push(created.created.plan);
        Ok(())
    });
    assert!(struck.await >= 3);
    let query = onward_engine::list::PlanQuery {
        limit: 100,
        ..Default::default()
    };
    let page = desk.engine.list_plans(&desk.me, query).await.unwrap();
    assert_eq!(page.plans.len(), made.len());
}

async fn what_is_cut_off_leaves_nothing_half_done(desk: &Desk) {
    let plan = desk.plan(30).await;
    let mut before = document(&desk.engine, &desk.me, plan.id).await;
    for operation in 0.. {
        desk.faults.strike_after(operation);
        let front = Modification::AddSteps {
            steps: desk.steps(2),
            insert_after: Some(0),
        };
        let changed = desk.modify(plan.id, front).await;
        if desk.faults.is_pending() {
            break;
        }
        let after = document(&desk.engine, &desk.me, plan.id).await;
        let (all, none) = (after["steps"].as_array().unwrap().len(), before == after);
        let whole = all == before["steps"].as_array().unwrap().len() + 2;
        assert!(changed.is_err() && (none || whole), "operation {operation}");
        desk.statuses(plan.id).await;
        before = after;
    }
    desk.faults.strike_after(u32::MAX);
}

async fn reading_meets_a_fault_and_works_the_next_time(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.faults.strike_after(0);
    let why = error(desk.engine.status(&desk.me, plan.id, None).await);
    assert_eq!(why.code().as_str(), "unavailable");
    desk.status(plan.id).await;
}

async fn a_fault_after_the_commit_loses_no_claim(desk: &Desk) {
    let plan = desk.plan(40).await;
    let session = || Some(SessionId::new("me"));
    let mut claimed = 0;
    with_every_fault(desk, async || {
        let next = desk
            .engine
            .next_step(&desk.me, plan.id, session(), false)
            .await?;
        assert!(matches!(next, Next::Started(_)));
        claimed += 1;
        Ok(())
    })
    .await;
    // A claim whose answer was lost is still a claim, and shows who has it.
    let Ok(working) = desk
        .engine
        .list_steps(&desk.me, plan.id, None, 0, 100)
        .await
    else {
        panic!("steps can be listed")
    };
    let held = working
        .steps
        .iter()
        .filter(|step| step.session == session())
        .count();
    assert!(held > claimed, "{held} claims, {claimed} answers");
}

/// Three calls of one response whose process is dead, in a session of their own.
async fn dead_calls(desk: &Desk, session: &str) {
    let owner = desk.world.start(7, 100);
    for id in ["a", "b", "c"] {
        let mut new = call(id, Some(owner.clone()));
        new.batch = Some(1);
        let heard = Heard {
            session: session.to_owned(),
            ..heard()
        };
        let recorded = desk
            .engine
            .record_call(&desk.me, heard, None, new, Begins::Running);
        recorded.await.unwrap();
    }
    desk.world.machine().processes.clear();
}

async fn calls_are_given_up_with_their_results_and_their_batch_or_not_at_all(desk: &Desk) {
    for operation in 0..100 {
        let session = format!("session-{operation}");
        dead_calls(desk, &session).await;
        desk.faults.strike_after(operation);
        let recovered = desk.engine.recover_session(&desk.me, &session).await;
        let is_over = desk.faults.is_pending();
        desk.faults.strike_after(u32::MAX);
        let stands = async || {
            let view = desk.engine.show_session(&desk.me, &session, 9, 9).await;
            let calls = view.unwrap().calls;
            let stand = calls
                .iter()
                .map(|record| (record.status(), record.synthetic.is_some()));
            stand.collect::<Vec<_>>()
        };
        let whole = [(CallStatus::Interrupted, true); 3];
        match recovered {
            Ok(given_up) => assert_eq!(given_up.len(), 3),
            Err(why) => {
                assert_eq!(why.code().as_str(), "unavailable", "{why}");
                let cut_off = stands().await;
                let nothing = [(CallStatus::Running, false); 3];
                assert!(cut_off == nothing || cut_off == whole, "{cut_off:?}");
                let again = desk.engine.recover_session(&desk.me, &session).await;
                again.expect("sent again, it goes well");
            }
        }
        assert_eq!(stands().await, whole);
        if is_over {
            assert!(operation >= 2, "a question, the commit: {operation}");
            return;
        }
    }
    panic!("a call has fewer operations than that")
}

on_both_databases![
    calls_are_given_up_with_their_results_and_their_batch_or_not_at_all,
    a_submission_that_was_cut_off_is_sent_again_and_counts_once,
    a_plan_whose_making_was_cut_off_is_made_once,
    what_is_cut_off_leaves_nothing_half_done,
    reading_meets_a_fault_and_works_the_next_time,
    a_fault_after_the_commit_loses_no_claim,
];

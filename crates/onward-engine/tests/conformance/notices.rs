//! What people are told of when nobody looks: once for each finding, by one of all servers, and again
//! only where it could not be told.

use std::time::Duration;

use onward_core::PlanId;
use onward_core::event::Decision;
use onward_core::finding::Kind;
use onward_core::policy::OnStall;
use onward_engine::next::Handed;
use onward_engine::notice::{HELD, TRIES, Told, Tried, pause_after};
use onward_engine::step::Progress;
use onward_engine::{Delivery, Engine};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::Made;

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn impatient(desk: &Desk, steps: u32, policy: OnStall) -> Made {
    let mut draft = desk.draft(steps);
    draft.stall_threshold = Some(SECOND);
    draft.on_stall = policy;
    desk.create(draft).await
}

/// Takes what is to be told, with this engine.
async fn taken_by(engine: &Engine, desk: &Desk) -> Vec<Told> {
    let taken = engine.take_notices(&desk.me.tenant, &Kind::ALL, 100).await;
    taken.expect("it can be taken").notices
}

async fn taken(desk: &Desk) -> Vec<Told> {
    taken_by(&desk.engine, desk).await
}

async fn tried(desk: &Desk, told: &Told, tried: Tried) -> Delivery {
    let written = desk
        .engine
        .notice_tried(&desk.me.tenant, &told.notice, tried)
        .await;
    written.expect("it can be written down")
}

/// Which finding, of which plan.
fn keys(told: &[Told]) -> Vec<(PlanId, Kind)> {
    told.iter()
        .map(|told| (told.notice.plan, told.notice.finding.kind))
        .collect()
}

async fn lives(desk: &Desk, step: &Handed) {
    let progress = Progress {
        step: step.step,
        note: None,
        percent: None,
        token: None,
        session: None,
    };
    let reported = desk.engine.report_progress(&desk.me, progress).await;
    reported.expect("it may report");
}

async fn a_stall_is_told_by_every_policy_that_does_something(desk: &Desk) {
    let mut watcher = desk.engine.watcher();
    for policy in [OnStall::Mark, OnStall::Requeue, OnStall::Fail] {
        let plan = impatient(desk, 2, policy).await;
        let step = desk.take(plan.id).await;
        let since = desk.now();
        desk.advance(SECOND);
        desk.engine.sweep(&mut watcher).await.unwrap();
        assert_eq!(taken(desk).await, [], "{policy}: at its threshold it lives");
        desk.advance(MOMENT);
        for _ in 0..3 {
            desk.engine.sweep(&mut watcher).await.unwrap();
        }
        let told = taken(desk).await;
        assert_eq!(keys(&told), [(plan.id, Kind::Stall)], "{policy}");
        let finding = &told[0].notice.finding;
        assert_eq!(finding.step, Some(step.step));
        assert_eq!((finding.attempt, finding.since), (Some(1), since));
        assert_eq!(told[0].notice.found_at, desk.now());
        assert_eq!(told[0].on_stall, policy);
        assert_eq!(tried(desk, &told[0], Tried::Sent).await, Delivery::Sent);
        desk.engine
            .abandon_plan(&desk.me, plan.id, None)
            .await
            .unwrap();
        let failed = taken(desk).await;
        assert_eq!(keys(&failed), [(plan.id, Kind::Failure)], "{policy}");
        tried(desk, &failed[0], Tried::Sent).await;
    }
}

async fn a_stall_that_is_ignored_is_told_nobody_and_stands_in_the_status(desk: &Desk) {
    let plan = impatient(desk, 2, OnStall::Ignore).await;
    let mut watcher = desk.engine.watcher();
    let step = desk.take(plan.id).await;
    desk.advance(SECOND + MOMENT);
    for _ in 0..3 {
        let round = desk.engine.sweep(&mut watcher).await.unwrap();
        assert_eq!((round.acted_on, round.failed), (Vec::new(), Vec::new()));
    }
    assert_eq!(taken(desk).await, [], "no webhook");
    let shown = desk
        .engine
        .notices_after(&desk.me, onward_core::Timestamp::from_millis(0), 100)
        .await;
    assert_eq!(shown.unwrap(), [], "and no desktop");
    let stalled = desk.status(plan.id).await.stalled;
    assert_eq!(stalled.len(), 1, "{stalled:?}");
    // What else there is to tell of the plan is told.
    desk.ask_a_person(&step).await.expect("it may ask");
    assert_eq!(keys(&taken(desk).await), [(plan.id, Kind::Review)]);
}

async fn a_step_that_falls_silent_again_is_another_finding(desk: &Desk) {
    let plan = impatient(desk, 1, OnStall::Mark).await;
    let mut watcher = desk.engine.watcher();
    let step = desk.take(plan.id).await;
    for _ in 0..3 {
        desk.advance(SECOND + MOMENT);
        desk.engine.sweep(&mut watcher).await.unwrap();
        let told = taken(desk).await;
        assert_eq!(keys(&told), [(plan.id, Kind::Stall)]);
        tried(desk, &told[0], Tried::Sent).await;
        // Resumed without a sign of the step, it is the same stall.
        desk.engine.resume_plan(&desk.me, plan.id).await.unwrap();
        desk.advance(SECOND + MOMENT);
        desk.engine.sweep(&mut watcher).await.unwrap();
        assert_eq!(taken(desk).await, []);
        lives(desk, &step).await;
    }
}

async fn a_second_stall_is_told_while_the_plan_waits_for_somebody(desk: &Desk) {
    let mut watcher = desk.engine.watcher();
    let [marked, asking] = [
        impatient(desk, 3, OnStall::Mark).await,
        impatient(desk, 3, OnStall::Mark).await,
    ];
    // The plan is marked for one step, and then the other falls silent.
    desk.take(marked.id).await;
    let second = desk.take(marked.id).await;
    // The plan waits for a decision about one step, and the other falls silent.
    desk.take(asking.id).await;
    let asked = desk.take(asking.id).await;
    desk.ask_a_person(&asked).await.expect("it may ask");
    let review = taken(desk).await;
    assert_eq!(keys(&review), [(asking.id, Kind::Review)]);
    tried(desk, &review[0], Tried::Sent).await;
    desk.advance(SECOND / 2);
    lives(desk, &second).await;
    desk.advance(SECOND / 2 + MOMENT);
    desk.engine.sweep(&mut watcher).await.unwrap();
    let mut first = taken(desk).await;
    first.sort_by_key(|told| told.notice.plan);
    let mut expected = [(marked.id, Kind::Stall), (asking.id, Kind::Stall)];
    expected.sort_by_key(|(plan, _)| *plan);
    assert_eq!(keys(&first), expected);
    for told in &first {
        tried(desk, told, Tried::Sent).await;
    }
    let next = desk.engine.sweep(&mut watcher).await.unwrap().next_at;
    desk.world
        .set(next.expect("the second one is still to come"));
    desk.engine.sweep(&mut watcher).await.unwrap();
    let told = taken(desk).await;
    assert_eq!(keys(&told), [(marked.id, Kind::Stall)]);
    assert_eq!(told[0].notice.finding.step, Some(second.step));
    assert_eq!(desk.engine.sweep(&mut watcher).await.unwrap().next_at, None);
}

async fn a_review_and_a_failure_are_told_with_their_words(desk: &Desk) {
    let plan = desk.plan(2).await;
    let step = desk.take(plan.id).await;
    desk.ask_a_person(&step).await.expect("it may ask");
    let told = taken(desk).await;
    assert_eq!(keys(&told), [(plan.id, Kind::Review)]);
    assert_eq!(told[0].notice.finding.note.as_deref(), Some("so?"));
    assert_eq!(told[0].plan_name, "Tides");
    assert_eq!(told[0].step, Some((step.step, 1, None)));
    tried(desk, &told[0], Tried::Sent).await;
    let (no, why) = (Decision::Reject, Some("too wet".to_owned()));
    let decided = desk.engine.decide_review(&desk.me, step.step, no, why);
    decided.await.unwrap();
    let told = taken(desk).await;
    assert_eq!(keys(&told), [(plan.id, Kind::Failure)]);
    assert_eq!(told[0].notice.finding.note.as_deref(), Some("too wet"));
    assert_eq!(told[0].plan_status.as_str(), "failed");
}

async fn of_several_servers_one_tells(desk: &Desk) {
    let other = desk.another_engine().await;
    let plan = desk.plan(1).await;
    let asks = desk.take(plan.id).await;
    desk.ask_a_person(&asks).await.expect("it may ask");
    let both = tokio::join!(taken(desk), taken_by(&other, desk));
    assert_eq!(both.0.len() + both.1.len(), 1, "one of them takes it");
    let told = [both.0, both.1].concat();
    // Whoever took it is given its time.
    desk.advance(HELD - MOMENT);
    assert_eq!(taken_by(&other, desk).await, []);
    desk.advance(MOMENT);
    // It ended in between: the next one tells, under the same key.
    let again = taken_by(&other, desk).await;
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].notice.tries, 2);
    assert_eq!(again[0].notice.finding, told[0].notice.finding);
    // What the first one says then comes too late to count.
    tried(desk, &told[0], Tried::Failed("slow".to_owned())).await;
    assert_eq!(tried(desk, &again[0], Tried::Sent).await, Delivery::Sent);
    desk.advance(DAY);
    assert_eq!(taken(desk).await, []);
    let kept = desk.engine.notices(&desk.me, 10).await.unwrap();
    assert_eq!(kept[0].delivery, Delivery::Sent);
    assert_eq!(kept[0].last_error, None);
    other.close().await;
}

async fn what_cannot_be_told_is_tried_again_and_given_up_in_the_end(desk: &Desk) {
    let plan = desk.plan(1).await;
    let asks = desk.take(plan.id).await;
    desk.ask_a_person(&asks).await.expect("it may ask");
    for tries in 1..=TRIES {
        let told = taken(desk).await;
        assert_eq!(told.len(), 1, "try {tries}");
        assert_eq!(told[0].notice.tries, tries);
        let delivery = tried(desk, &told[0], Tried::Failed(format!("no {tries}"))).await;
        match tries < TRIES {
            true => assert_eq!(delivery, Delivery::Waiting),
            false => assert_eq!(delivery, Delivery::GivenUp),
        }
        desk.advance(pause_after(tries) - MOMENT);
        assert_eq!(taken(desk).await, [], "not before its time");
        desk.advance(MOMENT);
    }
    desk.advance(DAY);
    assert_eq!(taken(desk).await, []);
    let kept = desk.engine.notices(&desk.me, 10).await.unwrap();
    let error = kept[0].last_error.as_deref();
    assert_eq!(error, Some(format!("no {TRIES}").as_str()));
}

async fn what_nobody_wants_to_hear_and_what_is_old_is_put_aside(desk: &Desk) {
    let [unwanted, old] = [desk.plan(1).await, desk.plan(1).await];
    let asks = desk.take(unwanted.id).await;
    desk.ask_a_person(&asks).await.expect("it may ask");
    let some = [Kind::Stall, Kind::Failure];
    let taking = desk.engine.take_notices(&desk.me.tenant, &some, 100).await;
    assert_eq!(taking.unwrap().notices, []);
    let asks = desk.take(old.id).await;
    desk.ask_a_person(&asks).await.expect("it may ask");
    desk.advance(DAY + MOMENT);
    assert_eq!(taken(desk).await, []);
    let kept = desk.engine.notices(&desk.me, 10).await.unwrap();
    let how: Vec<_> = kept.iter().map(|one| (one.plan, one.delivery)).collect();
    assert!(how.contains(&(unwanted.id, Delivery::Unwanted)), "{how:?}");
    assert!(how.contains(&(old.id, Delivery::GivenUp)), "{how:?}");
}

async fn notices_are_of_one_tenant_and_go_with_their_plan(desk: &Desk) {
    let plan = desk.plan(1).await;
    let before = desk.now();
    desk.advance(MOMENT);
    let asks = desk.take(plan.id).await;
    desk.ask_a_person(&asks).await.expect("it may ask");
    let others = desk.tenant("others").await;
    let engine = &desk.engine;
    let of_others = engine.take_notices(&others.tenant, &Kind::ALL, 100).await;
    assert_eq!(of_others.unwrap().notices, []);
    assert_eq!(engine.notices(&others, 10).await.unwrap(), []);
    assert_eq!(engine.notices_after(&others, before, 10).await.unwrap(), []);
    let seen = engine.notices_after(&desk.me, before, 10).await.unwrap();
    assert_eq!(keys(&seen), [(plan.id, Kind::Review)]);
    let later = engine.notices_after(&desk.me, desk.now(), 10).await;
    assert_eq!(later.unwrap(), []);
    let (no, none) = (Decision::Reject, None);
    let step = seen[0].notice.finding.step.unwrap();
    engine
        .decide_review(&desk.me, step, no, none)
        .await
        .unwrap();
    engine.delete_plan(&desk.me, plan.id).await.unwrap();
    assert_eq!(engine.notices(&desk.me, 10).await.unwrap(), []);
}

async fn a_change_that_is_taken_back_takes_its_notice_along(desk: &Desk) {
    let plan = desk.plan(1).await;
    let step = desk.take(plan.id).await;
    let mut refused = 0;
    for fault in 0..20 {
        desk.faults.strike_after(fault);
        let asked = desk.ask_a_person(&step).await;
        refused += u32::from(asked.is_err());
        desk.faults.strike_after(u32::MAX);
        let kept = desk.engine.notices(&desk.me, 10).await.unwrap();
        let open = desk.engine.open_reviews(&desk.me, 10).await.unwrap();
        assert_eq!(kept.len(), open.len(), "both or neither");
        if !open.is_empty() {
            break;
        }
    }
    assert!(refused >= 2, "a question and the commit failed");
    assert_eq!(taken(desk).await.len(), 1);
}

on_both_databases![
    a_review_and_a_failure_are_told_with_their_words,
    of_several_servers_one_tells,
    what_cannot_be_told_is_tried_again_and_given_up_in_the_end,
    what_nobody_wants_to_hear_and_what_is_old_is_put_aside,
    notices_are_of_one_tenant_and_go_with_their_plan,
    a_change_that_is_taken_back_takes_its_notice_along,
];

/// Whoever sweeps has a database alone.
mod swept {
    use super::{
        a_second_stall_is_told_while_the_plan_waits_for_somebody,
        a_stall_is_told_by_every_policy_that_does_something,
        a_stall_that_is_ignored_is_told_nobody_and_stands_in_the_status,
        a_step_that_falls_silent_again_is_another_finding,
    };
    crate::on_both_databases![alone:
        a_stall_is_told_by_every_policy_that_does_something,
    a_stall_that_is_ignored_is_told_nobody_and_stands_in_the_status,
        a_step_that_falls_silent_again_is_another_finding,
        a_second_stall_is_told_while_the_plan_waits_for_somebody,
    ];
}

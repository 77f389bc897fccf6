//! What hooks tell of calls: before them, after them, that a person is asked, and what is left when a
//! turn or a session ends.

use std::time::Duration;

use onward_core::call::{CallStatus, Cause};
use onward_core::turn::LoopControl;
use onward_core::turn::ladder::Gate;
use onward_engine::ledger::{Asked, Begins, NewCall, Said};
use onward_engine::session::{Fingerprint, Heard, SeenCall, SeenStep};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::ledger::{call, heard};
use crate::on_both_databases;

fn input(id: &str) -> Value {
    json!({ "command": format!("make {id}") })
}

fn result(id: Option<&str>, name: &str, ok: bool) -> SeenCall {
    SeenCall {
        id: id.map(str::to_owned),
        tool: "Bash".to_owned(),
        input: input(name),
        ok: Some(ok),
        output: format!("out of {name}"),
    }
}

fn asked(id: Option<&str>, name: &str) -> Asked {
    Asked {
        id: id.map(str::to_owned),
        tool: "Bash".to_owned(),
        input: input(name),
    }
}

impl Desk {
    async fn before(&self, id: Option<&str>, name: &str) {
        let owner = Some(self.world.start(7, 100));
        let call = NewCall::seen(id.map(str::to_owned), "Bash".to_owned(), input(name), owner);
        let control = LoopControl::default();
        let gated = self
            .engine
            .gate_call(&self.me, heard(), call, true, control);
        assert_eq!(gated.await.unwrap().gate, Gate::Open);
    }

    async fn after(&self, calls: Vec<SeenCall>, whole: bool) {
        let step = SeenStep {
            calls,
            whole,
            fingerprint: Fingerprint::None,
            plans: Vec::new(),
        };
        let control = LoopControl::default();
        let seen = self.engine.observe_step(&self.me, heard(), step, control);
        seen.await.unwrap();
    }

    async fn statuses_of_calls(&self) -> Vec<CallStatus> {
        let stands = self.stands().await;
        stands.into_iter().map(|(status, _)| status).collect()
    }
}

async fn a_call_runs_from_before_it_until_its_result(desk: &Desk) {
    desk.before(Some("a"), "a").await;
    desk.before(Some("b"), "b").await;
    let ledger = desk.ledger().await;
    assert_eq!(ledger[0].status(), CallStatus::Running);
    assert_eq!(ledger[0].call.owner.as_ref().unwrap().process, 7);
    assert_eq!(ledger[0].batch, ledger[1].batch, "one response, one batch");
    desk.after(vec![result(Some("b"), "b", false)], false).await;
    desk.after(vec![result(Some("a"), "a", true)], false).await;
    // Told again with its batch: that changes nothing.
    let both = vec![result(Some("a"), "a", false), result(Some("b"), "b", true)];
    desk.after(both, true).await;
    let [completed, failed] = [CallStatus::Completed, CallStatus::Failed];
    assert_eq!(desk.statuses_of_calls().await, [completed, failed]);
    let result = desk.ledger().await[0].result.clone();
    assert_eq!(result.as_deref(), Some("out of a"));
}

async fn a_call_without_an_id_is_known_by_what_it_asks(desk: &Desk) {
    desk.before(None, "a").await;
    desk.before(None, "a").await;
    desk.before(None, "b").await;
    desk.after(vec![result(None, "a", true)], false).await;
    let [completed, running] = [CallStatus::Completed, CallStatus::Running];
    assert_eq!(
        desk.statuses_of_calls().await,
        [completed, running, running]
    );
    desk.after(vec![result(None, "a", true)], false).await;
    desk.after(vec![result(None, "never asked", true)], false)
        .await;
    assert_eq!(
        desk.statuses_of_calls().await,
        [completed, completed, running]
    );
}

async fn while_a_person_is_asked_no_clock_runs(desk: &Desk) {
    desk.before(Some("a"), "a").await;
    let engine = &desk.engine;
    let tell = async |said| {
        engine
            .call_asked(&desk.me, heard(), asked(None, "a"), said)
            .await
    };
    tell(Said::Nothing).await.unwrap();
    tell(Said::Nothing).await.unwrap();
    assert_eq!(
        desk.statuses_of_calls().await,
        [CallStatus::AwaitingApproval]
    );
    desk.advance(Duration::from_secs(86_400));
    let recovered = engine.recover_session(&desk.me, "one").await.unwrap();
    assert_eq!(recovered, []);
    tell(Said::Yes).await.unwrap();
    assert_eq!(desk.statuses_of_calls().await, [CallStatus::Running]);
    desk.before(Some("b"), "b").await;
    let no = engine.call_asked(&desk.me, heard(), asked(Some("b"), "b"), Said::No);
    no.await.unwrap();
    assert_eq!(desk.statuses_of_calls().await[1], CallStatus::Denied);
    let unknown = engine.call_asked(&desk.me, heard(), asked(Some("x"), "x"), Said::No);
    unknown.await.unwrap();
}

async fn what_a_turn_leaves_open_is_settled_with_it(desk: &Desk) {
    desk.before(Some("a"), "a").await;
    desk.before(Some("b"), "b").await;
    let engine = &desk.engine;
    let waits = engine.call_asked(&desk.me, heard(), asked(Some("b"), "b"), Said::Nothing);
    waits.await.unwrap();
    engine.end_turn(&desk.me, heard()).await.unwrap();
    let [lost, denied] = [CallStatus::Interrupted, CallStatus::Denied];
    assert_eq!(desk.statuses_of_calls().await, [lost, denied]);
    let begun = engine.begin_session(&desk.me, heard(), true).await.unwrap();
    assert_eq!(begun.interrupted, [], "the model has gone on already");
    // Some agents tell late of what they did.
    desk.after(vec![result(Some("a"), "a", true)], false).await;
    assert_eq!(
        desk.statuses_of_calls().await,
        [CallStatus::Completed, denied]
    );
}

async fn a_session_that_begins_again_is_told_once_what_was_cut_off(desk: &Desk) {
    desk.before(Some("a"), "a").await;
    let other = Heard {
        session: "two".to_owned(),
        ..heard()
    };
    let owner = Some(desk.world.start(8, 100));
    let call = NewCall::seen(None, "Bash".to_owned(), input("x"), owner);
    let control = LoopControl::default();
    let gated = desk.engine.gate_call(&desk.me, other, call, true, control);
    gated.await.unwrap();
    let engine = &desk.engine;
    let begin = async |tells| {
        engine
            .begin_session(&desk.me, heard(), tells)
            .await
            .unwrap()
    };
    assert_eq!(begin(true).await.interrupted, [], "its owner lives");
    desk.world.machine().processes.clear();
    assert_eq!(begin(false).await.interrupted, [], "nobody would hear it");
    let told = begin(true).await.interrupted;
    assert_eq!(told.len(), 1);
    let cause = told[0].call.state.interruption().map(|why| why.cause);
    assert_eq!(cause, Some(Cause::OutcomeUnknown));
    assert_eq!(begin(true).await.interrupted, []);
    let two = engine.show_session(&desk.me, "two", 9, 9).await.unwrap();
    assert_eq!(
        two.calls[0].status(),
        CallStatus::Interrupted,
        "dead owners of other sessions on this host are found, too"
    );
    let told = engine.tell_interrupted(&desk.me, &heard()).await.unwrap();
    assert_eq!(told, []);
}

async fn what_a_session_leaves_open_is_settled_with_it(desk: &Desk) {
    desk.before(Some("a"), "a").await;
    desk.engine.end_session(&desk.me, heard()).await.unwrap();
    assert_eq!(desk.statuses_of_calls().await, [CallStatus::Interrupted]);
    let begun = desk.engine.begin_session(&desk.me, heard(), true).await;
    assert_eq!(
        begun.unwrap().interrupted.len(),
        1,
        "it is told when it goes on"
    );
}

async fn results_are_taken_also_where_turns_are_not_watched(desk: &Desk) {
    desk.before(Some("a"), "a").await;
    let results = vec![result(Some("a"), "a", true)];
    let settled = desk.engine.settle_calls(&desk.me, heard(), results);
    settled.await.unwrap();
    assert_eq!(desk.statuses_of_calls().await, [CallStatus::Completed]);
}

async fn an_id_that_comes_again_is_answered_in_its_latest_response(desk: &Desk) {
    for batch in [1, 2] {
        let mut call = call("call-1", None);
        call.batch = Some(batch);
        desk.record(call, Begins::Running).await;
    }
    let settle = async || {
        let results = vec![result(Some("call-1"), "call-1", true)];
        let settled = desk.engine.settle_calls(&desk.me, heard(), results);
        settled.await.unwrap();
        desk.statuses_of_calls().await
    };
    let [runs, done] = [CallStatus::Running, CallStatus::Completed];
    assert_eq!(settle().await, [runs, done]);
    // The next turn counts from one again; what the last one left is none of its calls.
    let begun =
        desk.engine
            .begin_turn(&desk.me, heard(), Fingerprint::None, LoopControl::default());
    begun.await.unwrap();
    desk.record(call("call-1", None), Begins::Running).await;
    let lost = CallStatus::Interrupted;
    assert_eq!(settle().await, [lost, done, done]);
}

async fn within_one_response_an_id_that_comes_twice_is_answered_in_order(desk: &Desk) {
    for name in ["first", "second"] {
        let mut call = call(name, None);
        call.id = Some("same".to_owned());
        call.batch = Some(1);
        desk.record(call, Begins::Running).await;
    }
    let results = vec![
        result(Some("same"), "first", true),
        result(Some("same"), "second", false),
    ];
    let settled = desk.engine.settle_calls(&desk.me, heard(), results);
    settled.await.unwrap();
    let ledger = desk.ledger().await;
    let came: Vec<Option<&str>> = ledger.iter().map(|one| one.result.as_deref()).collect();
    assert_eq!(came, [Some("out of first"), Some("out of second")]);
    assert_eq!(
        desk.statuses_of_calls().await,
        [CallStatus::Completed, CallStatus::Failed]
    );
}

on_both_databases![
    an_id_that_comes_again_is_answered_in_its_latest_response,
    within_one_response_an_id_that_comes_twice_is_answered_in_order,
    a_call_runs_from_before_it_until_its_result,
    a_call_without_an_id_is_known_by_what_it_asks,
    while_a_person_is_asked_no_clock_runs,
    what_a_turn_leaves_open_is_settled_with_it,
    a_session_that_begins_again_is_told_once_what_was_cut_off,
    what_a_session_leaves_open_is_settled_with_it,
    results_are_taken_also_where_turns_are_not_watched,
];

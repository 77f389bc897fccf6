//! Where a turn begins and ends, and what only looks like it: what agents tell as if a person had
//! written, or as if they had answered themselves.

use onward_core::turn::TurnEnd;
use onward_core::turn::ladder::Gate;
use onward_engine::ledger::NewCall;
use onward_engine::session::{Fingerprint, Heard, SeenCall};
use serde_json::json;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::sessions::{CONTROL, alone, call, heard, step};

async fn a_task_that_ends_opens_the_turn_and_begins_none(desk: &Desk) {
    let named = |turn: &str| Heard {
        turn: Some(turn.to_owned()),
        ..heard()
    };
    let task_ended = async |turn| {
        let print = Fingerprint::Of("same".to_owned());
        let told = desk
            .engine
            .hear_of_task(&desk.me, named(turn), None, print, CONTROL());
        told.await.unwrap();
    };
    desk.prompt(named("a")).await;
    let news =
        "A line that is long enough to be news, and that nobody has read before in this turn.";
    let look = |id: &str| step(vec![call(id, "cat tides.md", news)]);
    desk.see(named("a"), look("first")).await;
    desk.idle(named("a"), 0..4).await;
    assert_eq!(desk.asks(named("a"), "x").await.gate, Gate::Refused);
    task_ended("a").await;
    assert_eq!(desk.asks(named("a"), "y").await.gate, Gate::Open);
    let view = desk.view().await;
    assert_eq!(view.turns.len(), 1);
    assert_eq!(view.turns[0].0.standing.idle_steps, 0);
    // What was read before is known: the turn is the same.
    desk.see(named("a"), look("again")).await;
    assert_eq!(desk.view().await.turns[0].0.standing.idle_steps, 1);
    // Under another name, or when the turn is over, it is the beginning of one.
    task_ended("b").await;
    desk.engine.end_turn(&desk.me, named("b")).await.unwrap();
    task_ended("b").await;
    assert_eq!(desk.view().await.turns.len(), 3);
}

async fn a_turn_that_is_told_of_twice_at_its_beginning_begins_once(desk: &Desk) {
    let named = Heard {
        turn: Some("a".to_owned()),
        subagent: "sent".to_owned(),
        ..heard()
    };
    desk.prompt(named.clone()).await;
    desk.prompt(named.clone()).await;
    assert_eq!(desk.view().await.turns.len(), 1);
    // In the middle of it a person has written.
    desk.idle(named.clone(), 0..1).await;
    desk.prompt(named).await;
    assert_eq!(desk.view().await.turns.len(), 2);
}

async fn while_a_subagent_is_waited_for_the_turn_does_not_end(desk: &Desk) {
    let ends = async || {
        let ended = desk
            .engine
            .end_turn_outside_of(&desk.me, heard(), &["Agent"]);
        ended.await.unwrap();
    };
    let begin = async |id: &str, tool: &str| {
        let call = NewCall::seen(Some(id.to_owned()), tool.to_owned(), json!({}), None);
        let gated = desk
            .engine
            .gate_call(&desk.me, heard(), call, true, CONTROL());
        assert_eq!(gated.await.unwrap().gate, Gate::Open);
    };
    desk.prompt(heard()).await;
    begin("sub", "Agent").await;
    ends().await;
    assert_eq!(desk.view().await.turns[0].0.ended, None);
    let answer = SeenCall {
        tool: "Agent".to_owned(),
        ..call("sub", "", "done")
    };
    desk.see(heard(), alone(answer)).await;
    // Another tool that still runs keeps nobody from answering.
    begin("other", "Bash").await;
    ends().await;
    let ended = desk.view().await.turns[0].0.ended;
    assert_eq!(ended.map(|(_, why)| why), Some(TurnEnd::Answered));
}

on_both_databases![
    a_task_that_ends_opens_the_turn_and_begins_none,
    a_turn_that_is_told_of_twice_at_its_beginning_begins_once,
    while_a_subagent_is_waited_for_the_turn_does_not_end,
];

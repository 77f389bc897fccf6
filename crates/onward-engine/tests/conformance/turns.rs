//! Turn boundaries: agents also report prompts and final answers that do not start or end a turn.

use onward_core::turn::escalation::{EscalationState, ToolGate};
use onward_core::turn::{ExternalChange, Judgement, State, TurnEnd, TurnJudge};
use onward_engine::session::{Fingerprint, HookSource, ObservedCall, ObservedStep};
use onward_engine::tool_calls::NewCall;
use serde_json::json;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::sessions::{call, control, single_call, source, step};

async fn a_finished_background_task_reopens_the_turn_without_starting_one(harness: &Harness) {
    let named = |turn: &str| HookSource {
        turn: Some(turn.to_owned()),
        ..source()
    };
    let task_ended = async |turn| {
        let fingerprint = Fingerprint::Value("same".to_owned());
        let recorded = harness.engine.record_task_message(
            &harness.me,
            named(turn),
            None,
            fingerprint,
            control(),
        );
        recorded.await.unwrap();
    };
    harness.begin_turn(named("a")).await;
    let output =
        "A line that is long enough to count as new information the first time it is read.";
    let read = |id: &str| step(vec![call(id, "cat tides.md", output)]);
    harness.observe(named("a"), read("first")).await;
    harness.idle_steps(named("a"), 0..4).await;
    assert_eq!(harness.gate(named("a"), "x").await.gate, ToolGate::Reject);
    task_ended("a").await;
    assert_eq!(harness.gate(named("a"), "y").await.gate, ToolGate::Allow);
    let view = harness.session_view().await;
    assert_eq!(view.turns.len(), 1);
    assert_eq!(view.turns[0].0.standing.idle_steps, 0);
    // The turn has not restarted: output read earlier is not new.
    harness.observe(named("a"), read("again")).await;
    assert_eq!(
        harness.session_view().await.turns[0].0.standing.idle_steps,
        1
    );
    // With another turn id, or after the turn has ended, it starts a turn.
    task_ended("b").await;
    harness
        .engine
        .end_turn(&harness.me, named("b"))
        .await
        .unwrap();
    task_ended("b").await;
    assert_eq!(harness.session_view().await.turns.len(), 3);
}

async fn a_turn_reported_twice_at_its_start_starts_once(harness: &Harness) {
    let named = HookSource {
        turn: Some("a".to_owned()),
        subagent: "subagent".to_owned(),
        ..source()
    };
    harness.begin_turn(named.clone()).await;
    harness.begin_turn(named.clone()).await;
    assert_eq!(harness.session_view().await.turns.len(), 1);
    // A prompt during the turn starts another turn.
    harness.idle_steps(named.clone(), 0..1).await;
    harness.begin_turn(named).await;
    assert_eq!(harness.session_view().await.turns.len(), 2);
}

async fn a_turn_does_not_end_while_a_subagent_call_is_running(harness: &Harness) {
    let end_turn = async || {
        let ended = harness
            .engine
            .end_turn_unless_running(&harness.me, source(), &["Agent"]);
        ended.await.unwrap();
    };
    let begin = async |id: &str, tool: &str| {
        let call = NewCall::from_hook(Some(id.to_owned()), tool.to_owned(), json!({}), None);
        let gated = harness
            .engine
            .admit_call(&harness.me, source(), call, true, control());
        assert_eq!(gated.await.unwrap().gate, ToolGate::Allow);
    };
    harness.begin_turn(source()).await;
    begin("sub", "Agent").await;
    end_turn().await;
    assert_eq!(harness.session_view().await.turns[0].0.ended, None);
    let result = ObservedCall {
        tool: "Agent".to_owned(),
        ..call("sub", "", "done")
    };
    harness.observe(source(), single_call(result)).await;
    // A running call of another tool does not prevent the end of the turn.
    begin("other", "Bash").await;
    end_turn().await;
    let ended = harness.session_view().await.turns[0].0.ended;
    assert_eq!(ended.map(|(_, reason)| reason), Some(TurnEnd::Answered));
}

async fn subagents_have_separate_turns(harness: &Harness) {
    let sub = HookSource {
        subagent: "scout".to_owned(),
        ..source()
    };
    harness.begin_turn(source()).await;
    harness.begin_turn(sub.clone()).await;
    harness.idle_steps(sub.clone(), 0..4).await;
    assert_eq!(harness.gate(sub.clone(), "a").await.gate, ToolGate::Reject);
    assert_eq!(harness.gate(source(), "b").await.gate, ToolGate::Allow);
    harness
        .engine
        .end_turn(&harness.me, sub.clone())
        .await
        .unwrap();
    let view = harness.session_view().await;
    let ends: Vec<_> = (view.turns.iter())
        .map(|(turn, _)| (turn.agent.as_str(), turn.ended.map(|(_, reason)| reason)))
        .collect();
    assert_eq!(ends, [("", None), ("scout", Some(TurnEnd::Answered))]);
    assert_eq!(harness.gate(sub, "c").await.gate, ToolGate::Allow);
}

async fn a_different_turn_id_starts_another_turn(harness: &Harness) {
    let named = |turn: &str| HookSource {
        turn: Some(turn.to_owned()),
        ..source()
    };
    harness.idle_steps(named("p1"), 0..4).await;
    assert_eq!(harness.gate(named("p1"), "a").await.gate, ToolGate::Reject);
    assert_eq!(harness.gate(named("p2"), "b").await.gate, ToolGate::Allow);
    harness.idle_steps(named("p2"), 4..5).await;
    let view = harness.session_view().await;
    let ends: Vec<_> = (view.turns.iter())
        .map(|(turn, _)| (turn.key.as_deref(), turn.ended.map(|(_, reason)| reason)))
        .collect();
    assert_eq!(
        ends,
        [(Some("p1"), Some(TurnEnd::NextPrompt)), (Some("p2"), None)]
    );
}

async fn stores_a_step_as_its_caller_judged_it(harness: &Harness) {
    harness.begin_turn(source()).await;
    // The caller has judged four steps that were not recorded, so for the engine the output is new.
    let output =
        "A line that is long enough to count as new information the first time it is read.";
    let repeated = call("last", "cat tides.md", output);
    let mut judge = TurnJudge::resume(control(), State::default(), EscalationState::default());
    let mut judged = None;
    for _ in 0..5 {
        let now = harness.engine.now();
        judged = Some(judge.observe(&[repeated.as_call()], ExternalChange::Unknown, None, now));
    }
    let recorded = ObservedStep {
        judged: judged.clone(),
        ..step(vec![repeated])
    };
    let messages = harness.observe(source(), recorded.clone()).await;
    let judged = judged.unwrap();
    assert_eq!(messages.to_agent, judged.to_agent);
    let view = harness.session_view().await;
    let (turn, steps) = &view.turns[0];
    assert_eq!(turn.standing, judged.escalation);
    let stored: Vec<_> = steps
        .iter()
        .map(|step| (step.number, step.judgement))
        .collect();
    assert_eq!(stored, [(5, Judgement::Stalled)]);
    // Another process continues from the judged state.
    let snapshot = harness.engine.session_snapshot(&harness.me, "one", "");
    let snapshot = snapshot.await.unwrap().unwrap();
    assert_eq!(
        TurnJudge::resume(control(), snapshot.state, snapshot.escalation),
        judge
    );
    // The same step again changes nothing; a step of a judge that is behind gets the next number.
    harness.observe(source(), recorded.clone()).await;
    let late = ObservedStep {
        calls: vec![call("late", "true", "")],
        ..recorded
    };
    harness.observe(source(), late).await;
    let view = harness.session_view().await;
    let numbers: Vec<u32> = view.turns[0].1.iter().map(|step| step.number).collect();
    assert_eq!(numbers, [5, 6]);
}

on_both_databases![
    stores_a_step_as_its_caller_judged_it,
    subagents_have_separate_turns,
    a_different_turn_id_starts_another_turn,
    a_finished_background_task_reopens_the_turn_without_starting_one,
    a_turn_reported_twice_at_its_start_starts_once,
    a_turn_does_not_end_while_a_subagent_call_is_running,
];

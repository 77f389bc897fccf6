//! Steps of an agent session: batches, call ids, trees and reasons.

use onward_core::turn::{IdleReason, Judgement};
use onward_engine::session::{
    Fingerprint, HookSource, ObservedCall, ObservedStep, StepMessages, StepReport,
};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::sessions::{call, source, step};

async fn the_first_batch_is_one_step_in_every_agent(harness: &Harness) {
    let subagent = HookSource {
        subagent: "worker".to_owned(),
        ..source()
    };
    for source in [source(), subagent] {
        harness.begin_turn(source.clone()).await;
        let calls: Vec<ObservedCall> = (0..9)
            .map(|nth| call(&format!("c{nth}"), &format!("rg word{nth}"), ""))
            .collect();
        for call in &calls {
            let separate = ObservedStep {
                report: StepReport::CallOfBatch,
                ..step(vec![call.clone()])
            };
            let messages = harness.observe(source.clone(), separate).await;
            assert_eq!(messages, StepMessages::default());
        }
        harness.observe(source, step(calls)).await;
    }
    let view = harness.session_view().await;
    assert_eq!(view.turns.len(), 2);
    for (turn, steps) in &view.turns {
        assert_eq!((turn.standing.steps, steps.len()), (1, 1));
        assert_eq!(steps[0].calls.len(), 9);
    }
}

async fn an_agent_without_batches_is_judged_by_its_calls(harness: &Harness) {
    harness.begin_turn(source()).await;
    for nth in 0..40 {
        let separate = ObservedStep {
            report: StepReport::CallOfBatch,
            ..step(vec![call(&format!("c{nth}"), "true", "")])
        };
        harness.observe(source(), separate).await;
    }
    let view = harness.session_view().await;
    assert_eq!(view.turns[0].0.standing.steps, 40 - 32);
}

async fn a_call_id_may_be_used_again_in_another_turn(harness: &Harness) {
    for _ in 0..2 {
        harness.begin_turn(source()).await;
        harness
            .observe(source(), step(vec![call("same", "true", "")]))
            .await;
        harness
            .engine
            .end_turn(&harness.me, source())
            .await
            .unwrap();
    }
    let view = harness.session_view().await;
    let steps: Vec<u32> = (view.turns.iter())
        .map(|(turn, _)| turn.standing.steps)
        .collect();
    assert_eq!(steps, [1, 1]);
}

async fn a_tree_in_an_earlier_state_is_not_progress(harness: &Harness) {
    harness.begin_turn(source()).await;
    for (nth, tree) in ["other", "same", "other", "third"].into_iter().enumerate() {
        let step = ObservedStep {
            fingerprint: Fingerprint::Value(tree.to_owned()),
            ..step(vec![call(&format!("c{nth}"), "./toggle", "")])
        };
        harness.observe(source(), step).await;
    }
    let view = harness.session_view().await;
    let judged: Vec<Judgement> = (view.turns[0].1.iter())
        .map(|step| step.judgement)
        .collect();
    use Judgement::{Idle, Progress};
    assert_eq!(judged, [Progress, Idle, Idle, Progress]);
}

async fn an_idle_step_has_the_reason_of_each_call(harness: &Harness) {
    harness.begin_turn(source()).await;
    let calls = vec![call("a", "true", ""), call("b", "rg nothing", "")];
    harness.observe(source(), step(calls)).await;
    let view = harness.session_view().await;
    let step = &view.turns[0].1[0];
    let reasons: Vec<Option<IdleReason>> = step.calls.iter().map(|call| call.idle).collect();
    assert_eq!(reasons, [Some(IdleReason::NoOp), Some(IdleReason::Empty)]);
    assert_eq!(
        step.why,
        Some(format!("{}, {}", IdleReason::NoOp, IdleReason::Empty))
    );
}

on_both_databases![
    the_first_batch_is_one_step_in_every_agent,
    an_agent_without_batches_is_judged_by_its_calls,
    a_call_id_may_be_used_again_in_another_turn,
    a_tree_in_an_earlier_state_is_not_progress,
    an_idle_step_has_the_reason_of_each_call,
];

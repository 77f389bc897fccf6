//! Tool calls reported by hooks: before and after the call, approval requests, and calls still open
//! when a turn or session ends.

use std::time::Duration;

use onward_core::call::{CallStatus, Cause, Limit};
use onward_core::turn::LoopControl;
use onward_core::turn::escalation::ToolGate;
use onward_engine::session::{Fingerprint, HookSource, ObservedCall, ObservedStep, StepReport};
use onward_engine::tool_calls::{Approval, CallRef, InitialState, NewCall};
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::tool_calls::{call, source};

fn input(name: &str) -> Value {
    json!({ "command": format!("make {name}") })
}

fn result(id: Option<&str>, name: &str, ok: bool) -> ObservedCall {
    ObservedCall {
        id: id.map(str::to_owned),
        tool: "Bash".to_owned(),
        input: input(name),
        ok: Some(ok),
        output: format!("output of {name}"),
    }
}

fn approval_request(id: Option<&str>, name: &str) -> CallRef {
    CallRef {
        id: id.map(str::to_owned),
        tool: "Bash".to_owned(),
        input: input(name),
    }
}

impl Harness {
    /// Reports a call before it starts.
    async fn begin_call(&self, id: Option<&str>, name: &str) {
        let owner = Some(self.environment.start_process(7, 100));
        let call = NewCall::from_hook(id.map(str::to_owned), "Bash".to_owned(), input(name), owner);
        let control = LoopControl::default();
        let gated = self
            .engine
            .admit_call(&self.me, source(), call, true, control);
        assert_eq!(gated.await.unwrap().gate, ToolGate::Allow);
    }

    /// Reports results of calls: a whole batch, or single calls.
    async fn report_results(&self, calls: Vec<ObservedCall>, whole: bool) {
        let step = ObservedStep {
            calls,
            report: if whole {
                StepReport::Batch
            } else {
                StepReport::Call
            },
            fingerprint: Fingerprint::Unavailable,
            plans: Vec::new(),
            claims: Vec::new(),
            judged: None,
        };
        let control = LoopControl::default();
        let observed = self.engine.observe_step(&self.me, source(), step, control);
        observed.await.unwrap();
    }

    async fn call_statuses(&self) -> Vec<CallStatus> {
        let states = self.call_states().await;
        states.into_iter().map(|(status, _)| status).collect()
    }
}

async fn a_call_is_running_until_its_result_is_reported(harness: &Harness) {
    harness.begin_call(Some("a"), "a").await;
    harness.begin_call(Some("b"), "b").await;
    let calls = harness.tool_calls().await;
    assert_eq!(calls[0].status(), CallStatus::Running);
    assert_eq!(calls[0].call.owner.as_ref().unwrap().process, 7);
    assert_eq!(
        calls[0].batch, calls[1].batch,
        "one model response, one batch"
    );
    harness
        .report_results(vec![result(Some("b"), "b", false)], false)
        .await;
    harness
        .report_results(vec![result(Some("a"), "a", true)], false)
        .await;
    // Reporting the whole batch afterwards changes nothing.
    let both = vec![result(Some("a"), "a", false), result(Some("b"), "b", true)];
    harness.report_results(both, true).await;
    let [completed, failed] = [CallStatus::Completed, CallStatus::Failed];
    assert_eq!(harness.call_statuses().await, [completed, failed]);
    let result = harness.tool_calls().await[0].result.clone();
    assert_eq!(result.as_deref(), Some("output of a"));
}

async fn matches_results_of_calls_without_ids_by_tool_and_input(harness: &Harness) {
    harness.begin_call(None, "a").await;
    harness.begin_call(None, "a").await;
    harness.begin_call(None, "b").await;
    harness
        .report_results(vec![result(None, "a", true)], false)
        .await;
    let [completed, running] = [CallStatus::Completed, CallStatus::Running];
    assert_eq!(harness.call_statuses().await, [completed, running, running]);
    harness
        .report_results(vec![result(None, "a", true)], false)
        .await;
    harness
        .report_results(vec![result(None, "never begun", true)], false)
        .await;
    assert_eq!(
        harness.call_statuses().await,
        [completed, completed, running]
    );
}

async fn the_timeout_is_suspended_while_a_call_awaits_approval(harness: &Harness) {
    harness.begin_call(Some("a"), "a").await;
    let engine = &harness.engine;
    let report = async |decision| {
        engine
            .record_approval(&harness.me, source(), approval_request(None, "a"), decision)
            .await
    };
    report(Approval::Pending).await.unwrap();
    report(Approval::Pending).await.unwrap();
    assert_eq!(
        harness.call_statuses().await,
        [CallStatus::AwaitingApproval]
    );
    harness.advance(Duration::from_secs(86_400));
    let recovered = engine.recover_session(&harness.me, "one").await.unwrap();
    assert_eq!(recovered, []);
    report(Approval::Granted).await.unwrap();
    assert_eq!(harness.call_statuses().await, [CallStatus::Running]);
    harness.begin_call(Some("b"), "b").await;
    let denied = engine.record_approval(
        &harness.me,
        source(),
        approval_request(Some("b"), "b"),
        Approval::Denied,
    );
    denied.await.unwrap();
    assert_eq!(harness.call_statuses().await[1], CallStatus::Denied);
    let unknown = engine.record_approval(
        &harness.me,
        source(),
        approval_request(Some("x"), "x"),
        Approval::Denied,
    );
    unknown.await.unwrap();
}

async fn ending_a_turn_settles_its_open_calls(harness: &Harness) {
    harness.begin_call(Some("a"), "a").await;
    harness.begin_call(Some("b"), "b").await;
    let engine = &harness.engine;
    let waiting = engine.record_approval(
        &harness.me,
        source(),
        approval_request(Some("b"), "b"),
        Approval::Pending,
    );
    waiting.await.unwrap();
    engine.end_turn(&harness.me, source()).await.unwrap();
    let [interrupted, denied] = [CallStatus::Interrupted, CallStatus::Denied];
    assert_eq!(harness.call_statuses().await, [interrupted, denied]);
    let begun = engine
        .begin_session(&harness.me, source(), Some("startup"))
        .await
        .unwrap();
    assert_eq!(begun.interrupted, [], "the model has already continued");
    // Some agents report results late.
    harness
        .report_results(vec![result(Some("a"), "a", true)], false)
        .await;
    assert_eq!(
        harness.call_statuses().await,
        [CallStatus::Completed, denied]
    );
}

async fn a_resumed_session_reports_interrupted_calls_once(harness: &Harness) {
    harness.begin_call(Some("a"), "a").await;
    let other = HookSource {
        session: "two".to_owned(),
        ..source()
    };
    let owner = Some(harness.environment.start_process(8, 100));
    let call = NewCall::from_hook(None, "Bash".to_owned(), input("x"), owner);
    let control = LoopControl::default();
    let gated = harness
        .engine
        .admit_call(&harness.me, other, call, true, control);
    gated.await.unwrap();
    let engine = &harness.engine;
    let begin = async |reports_interruptions: bool| {
        engine
            .begin_session(
                &harness.me,
                source(),
                reports_interruptions.then_some("startup"),
            )
            .await
            .unwrap()
    };
    assert_eq!(
        begin(true).await.interrupted,
        [],
        "the owner process is running"
    );
    harness.environment.machine().processes.clear();
    assert_eq!(
        begin(false).await.interrupted,
        [],
        "the agent cannot receive them"
    );
    let interrupted = begin(true).await.interrupted;
    assert_eq!(interrupted.len(), 1);
    let interruption = interrupted[0].call.state.interruption();
    let cause = interruption.map(|interruption| interruption.cause);
    assert_eq!(cause, Some(Cause::OutcomeUnknown));
    assert_eq!(begin(true).await.interrupted, []);
    let two = engine.show_session(&harness.me, "two", 9, 9).await.unwrap();
    assert_eq!(
        two.calls[0].status(),
        CallStatus::Interrupted,
        "exited owners of other sessions on this host are detected as well"
    );
    let again = engine
        .take_interrupted_calls(&harness.me, &source())
        .await
        .unwrap();
    assert_eq!(again, []);
}

async fn ending_a_session_settles_its_open_calls(harness: &Harness) {
    harness.begin_call(Some("a"), "a").await;
    harness
        .engine
        .end_session(&harness.me, source())
        .await
        .unwrap();
    assert_eq!(harness.call_statuses().await, [CallStatus::Interrupted]);
    let begun = harness
        .engine
        .begin_session(&harness.me, source(), Some("startup"))
        .await;
    assert_eq!(
        begun.unwrap().interrupted.len(),
        1,
        "reported when the session resumes"
    );
}

async fn settles_calls_without_turn_detection(harness: &Harness) {
    harness.begin_call(Some("a"), "a").await;
    let results = vec![result(Some("a"), "a", true)];
    let settled = harness
        .engine
        .record_results(&harness.me, source(), results);
    settled.await.unwrap();
    assert_eq!(harness.call_statuses().await, [CallStatus::Completed]);
}

async fn a_result_for_a_reused_id_settles_the_call_in_the_latest_batch(harness: &Harness) {
    for batch in [1, 2] {
        let mut call = call("call-1", None);
        call.batch = Some(batch);
        harness.record(call, InitialState::Running).await;
    }
    let settle = async || {
        let results = vec![result(Some("call-1"), "call-1", true)];
        let settled = harness
            .engine
            .record_results(&harness.me, source(), results);
        settled.await.unwrap();
        harness.call_statuses().await
    };
    let [running, completed] = [CallStatus::Running, CallStatus::Completed];
    assert_eq!(settle().await, [running, completed]);
    // Positions restart in the next turn; open calls of the last turn are not matched.
    let begun = harness.engine.begin_turn(
        &harness.me,
        source(),
        Fingerprint::Unavailable,
        LoopControl::default(),
    );
    begun.await.unwrap();
    harness
        .record(call("call-1", None), InitialState::Running)
        .await;
    let interrupted = CallStatus::Interrupted;
    assert_eq!(settle().await, [interrupted, completed, completed]);
}

async fn results_for_a_duplicate_id_in_one_batch_are_assigned_in_order(harness: &Harness) {
    for name in ["first", "second"] {
        let mut call = call(name, None);
        call.id = Some("same".to_owned());
        call.batch = Some(1);
        harness.record(call, InitialState::Running).await;
    }
    let results = vec![
        result(Some("same"), "first", true),
        result(Some("same"), "second", false),
    ];
    let settled = harness
        .engine
        .record_results(&harness.me, source(), results);
    settled.await.unwrap();
    let calls = harness.tool_calls().await;
    let results: Vec<Option<&str>> = calls.iter().map(|call| call.result.as_deref()).collect();
    assert_eq!(results, [Some("output of first"), Some("output of second")]);
    assert_eq!(
        harness.call_statuses().await,
        [CallStatus::Completed, CallStatus::Failed]
    );
}

async fn stores_a_late_result_of_a_call_without_an_id(harness: &Harness) {
    harness.begin_call(None, "a").await;
    harness.advance(Duration::from_secs(200));
    let recovered = harness.engine.recover_session(&harness.me, "one").await;
    assert_eq!(recovered.unwrap().len(), 1);
    for _ in 0..2 {
        harness
            .report_results(vec![result(None, "a", true)], false)
            .await;
    }
    let calls = harness.tool_calls().await;
    assert_eq!(harness.call_statuses().await, [CallStatus::Completed]);
    assert_eq!(calls[0].result.as_deref(), Some("output of a"));
    assert!(calls[0].synthetic.is_some());
    harness.begin_call(None, "a").await;
    harness
        .report_results(vec![result(None, "a", false)], false)
        .await;
    let [completed, failed] = [CallStatus::Completed, CallStatus::Failed];
    assert_eq!(harness.call_statuses().await, [completed, failed]);
}

/// Records a command that its agent answers after ten seconds.
async fn record_command_that_yields(harness: &Harness, id: &str) {
    let call = NewCall {
        limit: Limit::Yields(Duration::from_secs(10)),
        ..call(id, Some(harness.environment.start_process(9, 100)))
    };
    harness.record(call, InitialState::Running).await;
}

async fn a_command_in_the_background_is_completed_at_the_end_of_its_turn(harness: &Harness) {
    record_command_that_yields(harness, "a").await;
    harness.advance(Duration::from_secs(11));
    record_command_that_yields(harness, "b").await;
    harness
        .engine
        .end_turn(&harness.me, source())
        .await
        .unwrap();
    let [completed, interrupted] = [CallStatus::Completed, CallStatus::Interrupted];
    assert_eq!(harness.call_statuses().await, [completed, interrupted]);
    let calls = harness.tool_calls().await;
    assert!(calls[0].is_in_background(), "{:?}", calls[0]);
    assert_eq!(calls[0].synthetic, None);
}

async fn a_command_in_the_background_does_not_time_out(harness: &Harness) {
    record_command_that_yields(harness, "a").await;
    let recover = async || {
        let recovered = harness.engine.recover_session(&harness.me, "one").await;
        assert_eq!(recovered.unwrap(), []);
        harness.call_statuses().await
    };
    harness.advance(Duration::from_secs(40));
    assert_eq!(recover().await, [CallStatus::Running]);
    harness.advance(Duration::from_secs(1));
    assert_eq!(recover().await, [CallStatus::Completed]);
    // The agent exits while a command runs in the background.
    record_command_that_yields(harness, "b").await;
    harness.advance(Duration::from_secs(20));
    harness.environment.machine().processes.clear();
    assert_eq!(recover().await, [CallStatus::Completed; 2]);
}

async fn a_call_times_out_after_its_own_grace_period(harness: &Harness) {
    let call = NewCall {
        grace: Some(Duration::from_secs(5)),
        ..call("a", None)
    };
    harness.record(call, InitialState::Running).await;
    harness.advance(Duration::from_secs(125));
    let recover = async || {
        let recovered = harness.engine.recover_session(&harness.me, "one").await;
        recovered.unwrap().len()
    };
    assert_eq!(recover().await, 0);
    harness.advance(Duration::from_secs(1));
    assert_eq!(recover().await, 1);
}

on_both_databases![
    stores_a_late_result_of_a_call_without_an_id,
    a_command_in_the_background_is_completed_at_the_end_of_its_turn,
    a_command_in_the_background_does_not_time_out,
    a_call_times_out_after_its_own_grace_period,
    a_result_for_a_reused_id_settles_the_call_in_the_latest_batch,
    results_for_a_duplicate_id_in_one_batch_are_assigned_in_order,
    a_call_is_running_until_its_result_is_reported,
    matches_results_of_calls_without_ids_by_tool_and_input,
    the_timeout_is_suspended_while_a_call_awaits_approval,
    ending_a_turn_settles_its_open_calls,
    a_resumed_session_reports_interrupted_calls_once,
    ending_a_session_settles_its_open_calls,
    settles_calls_without_turn_detection,
];

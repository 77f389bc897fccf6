//! Tool calls: recorded before they run, updated until their result, and interrupted once if no
//! result will arrive.

use std::time::Duration;

use onward_core::call::message::for_model;
use onward_core::call::{CallStatus, Cause, Limit, Owner, OwnerExit};
use onward_engine::retention::Retention;
use onward_engine::session::HookSource;
use onward_engine::tool_calls::{Change, InitialState, NewCall};
use onward_engine::{CallKey, CallRecord};
use serde_json::json;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::code;

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

pub(crate) fn source() -> HookSource {
    HookSource {
        session: "one".to_owned(),
        agent: "harness".to_owned(),
        ..HookSource::default()
    }
}

pub(crate) fn call(id: &str, owner: Option<Owner>) -> NewCall {
    let input = json!({ "command": format!("make {id}") });
    NewCall::from_hook(Some(id.to_owned()), "Bash".to_owned(), input, owner)
}

impl Harness {
    pub(crate) async fn record(&self, call: NewCall, state: InitialState) -> CallRecord {
        let recorded = self
            .engine
            .record_call(&self.me, source(), None, call, state);
        recorded.await.unwrap()
    }

    async fn change(&self, key: &CallKey, change: Change) -> CallRecord {
        let changed = self.engine.change_call(&self.me, key.clone(), change);
        changed.await.unwrap()
    }

    pub(crate) async fn tool_calls(&self) -> Vec<CallRecord> {
        let view = self.engine.show_session(&self.me, "one", 99, 99).await;
        view.unwrap().calls
    }

    /// The status and the cause of interruption of every call.
    pub(crate) async fn call_states(&self) -> Vec<(CallStatus, Option<Cause>)> {
        let calls = self.tool_calls().await;
        calls
            .iter()
            .map(|record| (record.status(), cause(record)))
            .collect()
    }

    async fn recover(&self) -> usize {
        let recovered = self.engine.recover_session(&self.me, "one").await;
        recovered.unwrap().len()
    }

    fn due_count(&self) -> String {
        let tenant = &self.me.tenant;
        let count = format!("SELECT count(*) FROM due_calls WHERE tenant_id = '{tenant}'");
        self.sql(&count).unwrap()
    }
}

fn cause(record: &CallRecord) -> Option<Cause> {
    let interruption = record.call.state.interruption();
    interruption.map(|interruption| interruption.cause)
}

const OUTCOME_UNKNOWN: (CallStatus, Option<Cause>) =
    (CallStatus::Interrupted, Some(Cause::OutcomeUnknown));
const NOT_STARTED: (CallStatus, Option<Cause>) = (CallStatus::Interrupted, Some(Cause::NotStarted));
const TIMED_OUT: (CallStatus, Option<Cause>) = (CallStatus::Interrupted, Some(Cause::TimedOut));
const RUNNING: (CallStatus, Option<Cause>) = (CallStatus::Running, None);

async fn records_a_call_from_request_to_result(harness: &Harness) {
    let record = harness
        .record(call("a", None), InitialState::Requested)
        .await;
    assert_eq!((record.key.turn, record.key.position), (1, 1));
    assert_eq!(record.status(), CallStatus::Requested);
    let began_at = harness.now();
    harness.advance(SECOND);
    harness.change(&record.key, Change::Start).await;
    harness.advance(SECOND);
    harness.change(&record.key, Change::Progress).await;
    harness.advance(SECOND);
    let done = harness
        .change(&record.key, Change::Complete("made".to_owned()))
        .await;
    assert_eq!(
        done,
        harness.tool_calls().await[0],
        "the returned record is stored"
    );
    let at = |seconds| began_at.checked_add(SECOND * seconds);
    assert_eq!(
        (
            Some(done.requested_at),
            done.started_at,
            done.last_progress_at
        ),
        (at(0), at(1), at(2))
    );
    assert_eq!(done.result.as_deref(), Some("made"));
    assert_eq!(harness.due_count(), "0");
    let again = harness
        .engine
        .change_call(&harness.me, record.key, Change::Start);
    assert_eq!(code(again.await), "illegal_transition");
}

async fn calls_with_the_same_id_keep_separate_positions(harness: &Harness) {
    for _ in 0..2 {
        harness
            .record(call("same", None), InitialState::Running)
            .await;
    }
    let mut next = call("same", None);
    next.batch = Some(7);
    let recorded =
        harness
            .engine
            .record_call(&harness.me, source(), Some(4), next, InitialState::Running);
    let third = recorded.await.unwrap();
    assert_eq!((third.key.turn, third.key.position, third.batch), (4, 1, 7));
    let second = &harness.tool_calls().await[1].key;
    harness.change(second, Change::Fail("no".to_owned())).await;
    let calls = harness.tool_calls().await;
    let statuses: Vec<CallStatus> = calls.iter().map(CallRecord::status).collect();
    let [running, failed] = [CallStatus::Running, CallStatus::Failed];
    assert_eq!(statuses, [running, failed, running]);
}

async fn truncates_inputs_and_results_and_redacts_secrets(harness: &Harness) {
    let mut secret = call("a", None);
    secret.input = json!({ "command": format!("TOKEN=sesame make \0{}", "x".repeat(5_000)) });
    let record = harness.record(secret, InitialState::Running).await;
    let result = "PASSWORD=hunter2 and so on".to_owned();
    harness.change(&record.key, Change::Complete(result)).await;
    let stored = &harness.tool_calls().await[0];
    assert!(
        stored.input.starts_with("TOKEN=[secret] make \u{fffd}xxx"),
        "{stored:?}"
    );
    assert!(stored.input.chars().count() <= 201, "{stored:?}");
    assert_eq!(
        stored.result.as_deref(),
        Some("PASSWORD=[secret] and so on")
    );
    assert_eq!(stored.input_digest.len(), 64);
    let rows = harness.sql("SELECT * FROM session_calls").unwrap();
    assert!(!rows.contains("sesame") && !rows.contains("hunter2"));
}

async fn an_exited_owner_interrupts_all_calls_of_its_batch_once(harness: &Harness) {
    let owner = harness.environment.start_process(7, 100);
    for (id, state) in [
        ("a", InitialState::Running),
        ("b", InitialState::AwaitingApproval),
        ("c", InitialState::Requested),
    ] {
        let mut call = call(id, (id != "c").then(|| owner.clone()));
        call.batch = Some(1);
        call.limit = Limit::After(SECOND * 600);
        harness.record(call, state).await;
    }
    harness.engine.recover_host().await.unwrap();
    assert_eq!(harness.recover().await, 0, "the owner is running");
    harness.environment.machine().processes.clear();
    let recovered = harness.engine.recover_host().await.unwrap();
    assert_eq!(recovered.sessions.len(), 1);
    assert_eq!(recovered.sessions[0].1, 3);
    assert_eq!(
        harness.call_states().await,
        [OUTCOME_UNKNOWN, NOT_STARTED, NOT_STARTED]
    );
    let before = harness.tool_calls().await;
    let synthetic = before[0].synthetic.as_ref().unwrap();
    assert_eq!(synthetic.to_model, for_model(Cause::OutcomeUnknown, None));
    assert!(
        synthetic
            .to_operator
            .contains(&OwnerExit::ProcessExited.to_string()),
        "{synthetic:?}"
    );
    harness.advance(SECOND * 9_999);
    harness.engine.recover_host().await.unwrap();
    assert_eq!(harness.recover().await, 0);
    assert_eq!(
        harness.tool_calls().await,
        before,
        "at most one synthetic result"
    );
    assert_eq!(harness.due_count(), "0");
}

async fn a_reboot_or_a_reused_process_id_proves_that_the_owner_exited(harness: &Harness) {
    let owner = harness.environment.start_process(7, 100);
    harness
        .record(call("a", Some(owner.clone())), InitialState::Running)
        .await;
    harness.environment.start_process(7, 101);
    harness.engine.recover_host().await.unwrap();
    harness.environment.start_process(7, 100);
    harness
        .record(call("b", Some(owner)), InitialState::Running)
        .await;
    harness.engine.recover_host().await.unwrap();
    assert_eq!(harness.call_states().await, [OUTCOME_UNKNOWN, RUNNING]);
    harness.environment.machine().boot = "second".to_owned();
    harness.engine.recover_host().await.unwrap();
    assert_eq!(
        harness.call_states().await,
        [OUTCOME_UNKNOWN, OUTCOME_UNKNOWN]
    );
    let calls = harness.tool_calls().await;
    for (call, death) in calls
        .iter()
        .zip([OwnerExit::ProcessReplaced, OwnerExit::HostRebooted])
    {
        let to_operator = &call.synthetic.as_ref().unwrap().to_operator;
        assert!(to_operator.contains(&death.to_string()), "{to_operator}");
    }
}

async fn a_remote_or_unknown_owner_is_only_subject_to_the_timeout(harness: &Harness) {
    let remote = Owner {
        host: "remote".to_owned(),
        boot: Some("another".to_owned()),
        process: 7,
        process_started: None,
    };
    harness
        .record(call("a", Some(remote)), InitialState::Running)
        .await;
    harness.record(call("b", None), InitialState::Running).await;
    harness.engine.recover_host().await.unwrap();
    assert_eq!(harness.recover().await, 0);
    assert_eq!(harness.call_states().await, [RUNNING, RUNNING]);
    harness.advance(SECOND * 150 + MILLISECOND);
    assert_eq!(harness.recover().await, 2, "timed out");
    assert_eq!(harness.call_states().await, [TIMED_OUT, TIMED_OUT]);
}

async fn awaiting_approval_restarts_the_timeout(harness: &Harness) {
    let record = harness.record(call("a", None), InitialState::Running).await;
    harness.advance(SECOND * 149);
    harness.change(&record.key, Change::AskApproval).await;
    harness.advance(SECOND * 86_400);
    assert_eq!(harness.recover().await, 0);
    harness.change(&record.key, Change::Start).await;
    harness.advance(SECOND * 150);
    assert_eq!(
        harness.recover().await,
        0,
        "not yet timed out exactly at the limit"
    );
    harness.advance(MILLISECOND);
    assert_eq!(harness.recover().await, 1);
    let synthetic = harness.tool_calls().await[0].synthetic.clone().unwrap();
    let expected = for_model(Cause::TimedOut, Some(SECOND * 120));
    assert_eq!(synthetic.to_model, expected);
}

async fn progress_and_a_custom_timeout_extend_the_deadline(harness: &Harness) {
    let record = harness.record(call("a", None), InitialState::Running).await;
    let mut long = call("b", None);
    long.limit = Limit::After(SECOND * 600);
    harness.record(long, InitialState::Running).await;
    let mut untimed = call("c", None);
    untimed.limit = Limit::Never;
    harness.record(untimed, InitialState::Running).await;
    harness.advance(SECOND * 140);
    harness.change(&record.key, Change::Progress).await;
    harness.advance(SECOND * 140);
    assert_eq!(harness.recover().await, 0);
    harness.advance(SECOND * 400);
    assert_eq!(harness.recover().await, 2);
    assert_eq!(harness.call_states().await, [TIMED_OUT, TIMED_OUT, RUNNING]);
    harness.advance(SECOND * 999_999);
    assert_eq!(harness.recover().await, 0, "`Limit::Never` has no timeout");
}

async fn stores_a_late_result_and_keeps_the_synthetic_one(harness: &Harness) {
    let record = harness.record(call("a", None), InitialState::Running).await;
    harness.advance(SECOND * 200);
    harness.recover().await;
    let synthetic = harness.tool_calls().await[0].synthetic.clone();
    harness.advance(SECOND);
    let late = harness
        .change(&record.key, Change::Complete("made after all".to_owned()))
        .await;
    assert_eq!(late.status(), CallStatus::Completed);
    assert_eq!(late.result.as_deref(), Some("made after all"));
    assert_eq!(
        late.synthetic, synthetic,
        "the model has already received it"
    );
    assert_eq!(cause(&late), Some(Cause::TimedOut));
    let again = Change::Complete("twice".to_owned());
    let again = harness
        .engine
        .change_call(&harness.me, record.key, again)
        .await;
    assert_eq!(code(again), "illegal_transition");
    assert_eq!(harness.tool_calls().await, [late]);
}

async fn concurrent_recoveries_interrupt_each_call_once(harness: &Harness) {
    let owner = harness.environment.start_process(7, 100);
    for id in ["a", "b", "c"] {
        harness
            .record(call(id, Some(owner.clone())), InitialState::Running)
            .await;
    }
    harness.environment.machine().processes.clear();
    let others = [
        harness.another_engine().await,
        harness.another_engine().await,
    ];
    let running = others.clone().map(|engine| {
        let me = harness.me.clone();
        tokio::spawn(async move { engine.recover_session(&me, "one").await.unwrap().len() })
    });
    let mut interrupted = harness.recover().await;
    for running in running {
        interrupted += running.await.unwrap();
    }
    assert_eq!(interrupted, 3);
    for other in others {
        other.close().await;
    }
}

async fn an_operator_closes_a_call(harness: &Harness) {
    let record = harness.record(call("a", None), InitialState::Running).await;
    let agent = harness.caller_with_role(onward_core::Role::Agent);
    let rejected = harness
        .engine
        .interrupt_call(&agent, record.key.clone())
        .await;
    assert_eq!(code(rejected), "forbidden");
    let closed = harness
        .engine
        .interrupt_call(&harness.me, record.key.clone())
        .await;
    let closed = closed.unwrap();
    assert_eq!(harness.call_states().await, [OUTCOME_UNKNOWN]);
    let synthetic = closed.synthetic.unwrap();
    assert!(synthetic.to_operator.contains("`me`"), "{synthetic:?}");
    let again = harness
        .engine
        .interrupt_call(&harness.me, record.key.clone())
        .await;
    assert_eq!(code(again), "illegal_transition");
    harness
        .change(&record.key, Change::Complete("still".to_owned()))
        .await;
}

async fn session_health_counts_calls_by_state(harness: &Harness) {
    let unknown = harness.engine.session_health(&harness.me, "unknown").await;
    assert_eq!(code(unknown), "invalid_input");
    let owner = harness.environment.start_process(7, 100);
    harness
        .record(call("a", Some(owner)), InitialState::Running)
        .await;
    harness.record(call("b", None), InitialState::Running).await;
    harness
        .record(call("c", None), InitialState::AwaitingApproval)
        .await;
    let closed = harness.record(call("d", None), InitialState::Running).await;
    harness
        .engine
        .interrupt_call(&harness.me, closed.key)
        .await
        .unwrap();
    let done = harness.record(call("e", None), InitialState::Running).await;
    harness
        .change(&done.key, Change::Complete(String::new()))
        .await;
    harness.environment.machine().processes.clear();
    let health = harness
        .engine
        .session_health(&harness.me, "one")
        .await
        .unwrap();
    let counts = health.counts;
    assert_eq!(
        (
            counts.running,
            counts.awaiting_approval,
            counts.stale,
            counts.interrupted
        ),
        (2, 1, 1, 1)
    );
    assert_eq!(health.calls.len(), 4, "completed calls are omitted");
    assert_eq!(
        harness.call_states().await[0],
        RUNNING,
        "a read changes nothing"
    );
}

async fn a_session_keeps_its_agent_if_the_api_names_none(harness: &Harness) {
    for (agent, expected) in [
        ("api", "api"),
        ("harness", "harness"),
        ("api", "harness"),
        ("other", "other"),
    ] {
        let source = HookSource {
            agent: agent.to_owned(),
            ..source()
        };
        let recorded = harness.engine.record_call(
            &harness.me,
            source,
            None,
            call(agent, None),
            InitialState::Running,
        );
        recorded.await.unwrap();
        let view = harness.engine.show_session(&harness.me, "one", 9, 9).await;
        assert_eq!(view.unwrap().session.agent, expected);
    }
}

async fn retention_deletes_calls_with_their_session(harness: &Harness) {
    harness.record(call("a", None), InitialState::Running).await;
    harness.advance(SECOND * 86_400);
    let retention = Retention {
        sessions: Some(SECOND * 3_600),
        ..Retention::default()
    };
    let deleted = harness
        .engine
        .apply_retention(&harness.me.tenant, retention)
        .await;
    assert_eq!(deleted.unwrap().sessions, 1);
    let tenant = &harness.me.tenant;
    let left = format!("SELECT count(*) FROM session_calls WHERE tenant_id = '{tenant}'");
    assert_eq!(harness.sql(&left).unwrap(), "0");
    assert_eq!(harness.due_count(), "0");
}

async fn the_next_sweep_is_due_when_a_call_times_out(harness: &Harness) {
    let mut watcher = harness.engine.watcher();
    harness.engine.sweep(&mut watcher).await.unwrap();
    harness.record(call("a", None), InitialState::Running).await;
    let stale_at = harness.now().checked_add(SECOND * 150).unwrap();
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.next_at, Some(stale_at.next()));
    harness.environment.set(stale_at);
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.calls.sessions, []);
    harness.advance(MILLISECOND);
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.calls.sessions.len(), 1);
    assert_eq!(round.next_at, None);
    assert_eq!(harness.call_states().await, [TIMED_OUT]);
}

async fn checks_of_calls_that_are_too_late_are_repaired_at_the_start(harness: &Harness) {
    harness.record(call("a", None), InitialState::Running).await;
    let stale_at = harness.now().checked_add(SECOND * 150).unwrap();
    harness
        .sql("UPDATE due_calls SET at = at + 28800000")
        .unwrap();
    let mut watcher = harness.engine.watcher();
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.next_at, Some(stale_at.next()));
}

async fn after_sleep_the_sweep_expires_no_call_for_one_grace_period(harness: &Harness) {
    let mut watcher = harness.engine.watcher();
    harness.record(call("a", None), InitialState::Running).await;
    harness.engine.sweep(&mut watcher).await.unwrap();
    harness.advance(SECOND * 8 * 3_600);
    let round = harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.calls.sessions, []);
    let ends = harness.now().checked_add(SECOND * 60).unwrap();
    assert_eq!(round.next_at, Some(ends.next()));
    // A call that starts during the grace period has its normal timeout.
    let mut short = call("b", None);
    short.limit = Limit::After(SECOND);
    harness.record(short, InitialState::Running).await;
    harness.advance(SECOND * 31 + MILLISECOND);
    harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(harness.call_states().await, [RUNNING, TIMED_OUT]);
    harness.environment.set(ends.next());
    harness.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(harness.call_states().await, [TIMED_OUT, TIMED_OUT]);
}

on_both_databases![
    records_a_call_from_request_to_result,
    calls_with_the_same_id_keep_separate_positions,
    truncates_inputs_and_results_and_redacts_secrets,
    an_exited_owner_interrupts_all_calls_of_its_batch_once,
    a_reboot_or_a_reused_process_id_proves_that_the_owner_exited,
    a_remote_or_unknown_owner_is_only_subject_to_the_timeout,
    awaiting_approval_restarts_the_timeout,
    progress_and_a_custom_timeout_extend_the_deadline,
    stores_a_late_result_and_keeps_the_synthetic_one,
    concurrent_recoveries_interrupt_each_call_once,
    an_operator_closes_a_call,
    session_health_counts_calls_by_state,
    a_session_keeps_its_agent_if_the_api_names_none,
    retention_deletes_calls_with_their_session,
];

mod sweeps {
    use super::{
        after_sleep_the_sweep_expires_no_call_for_one_grace_period,
        checks_of_calls_that_are_too_late_are_repaired_at_the_start,
        the_next_sweep_is_due_when_a_call_times_out,
    };
    crate::on_both_databases![exclusive:
        the_next_sweep_is_due_when_a_call_times_out,
        checks_of_calls_that_are_too_late_are_repaired_at_the_start,
        after_sleep_the_sweep_expires_no_call_for_one_grace_period,
    ];
}

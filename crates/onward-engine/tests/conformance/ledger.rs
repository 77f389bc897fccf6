//! The ledger of calls: recorded before their effect, followed to their result, given up once where none
//! will come.

use std::time::Duration;

use onward_core::call::{CallStatus, Cause, Limit, Owner};
use onward_engine::ledger::{Begins, Change, NewCall};
use onward_engine::retention::Retention;
use onward_engine::session::Heard;
use onward_engine::{CallKey, CallRecord};
use serde_json::json;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::code;

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);

pub(crate) fn heard() -> Heard {
    Heard {
        session: "one".to_owned(),
        agent: "harness".to_owned(),
        ..Heard::default()
    }
}

pub(crate) fn call(id: &str, owner: Option<Owner>) -> NewCall {
    let input = json!({ "command": format!("make {id}") });
    NewCall::seen(Some(id.to_owned()), "Bash".to_owned(), input, owner)
}

impl Desk {
    pub(crate) async fn record(&self, call: NewCall, begins: Begins) -> CallRecord {
        let recorded = self
            .engine
            .record_call(&self.me, heard(), None, call, begins);
        recorded.await.unwrap()
    }

    async fn change(&self, key: &CallKey, change: Change) -> CallRecord {
        let changed = self.engine.change_call(&self.me, key.clone(), change);
        changed.await.unwrap()
    }

    pub(crate) async fn ledger(&self) -> Vec<CallRecord> {
        let view = self.engine.show_session(&self.me, "one", 99, 99).await;
        view.unwrap().calls
    }

    /// Where every call stands, and why it was given up.
    pub(crate) async fn stands(&self) -> Vec<(CallStatus, Option<Cause>)> {
        let calls = self.ledger().await;
        let standing = |record: &CallRecord| {
            let interruption = record.call.state.interruption();
            (record.status(), interruption.map(|why| why.cause))
        };
        calls.iter().map(standing).collect()
    }

    async fn recover(&self) -> usize {
        let recovered = self.engine.recover_session(&self.me, "one").await;
        recovered.unwrap().len()
    }

    fn due(&self) -> String {
        let tenant = &self.me.tenant;
        let count = format!("SELECT count(*) FROM due_calls WHERE tenant_id = '{tenant}'");
        self.sql(&count).unwrap()
    }
}

const LOST: (CallStatus, Option<Cause>) = (CallStatus::Interrupted, Some(Cause::OutcomeUnknown));
const UNBEGUN: (CallStatus, Option<Cause>) = (CallStatus::Interrupted, Some(Cause::NotStarted));
const LATE: (CallStatus, Option<Cause>) = (CallStatus::Interrupted, Some(Cause::TimedOut));
const RUNS: (CallStatus, Option<Cause>) = (CallStatus::Running, None);

async fn a_call_is_followed_from_its_request_to_its_result(desk: &Desk) {
    let record = desk.record(call("a", None), Begins::Requested).await;
    assert_eq!((record.key.turn, record.key.position), (1, 1));
    assert_eq!(record.status(), CallStatus::Requested);
    let began_at = desk.now();
    desk.advance(SECOND);
    desk.change(&record.key, Change::Start).await;
    desk.advance(SECOND);
    desk.change(&record.key, Change::Progress).await;
    desk.advance(SECOND);
    let done = desk
        .change(&record.key, Change::Complete("made".to_owned()))
        .await;
    assert_eq!(done, desk.ledger().await[0], "what is answered is stored");
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
    assert_eq!(desk.due(), "0");
    let again = desk.engine.change_call(&desk.me, record.key, Change::Start);
    assert_eq!(code(again.await), "illegal_transition");
}

async fn ids_may_repeat_and_each_call_keeps_its_place(desk: &Desk) {
    for _ in 0..2 {
        desk.record(call("same", None), Begins::Running).await;
    }
    let mut next = call("same", None);
    next.batch = Some(7);
    let recorded = desk
        .engine
        .record_call(&desk.me, heard(), Some(4), next, Begins::Running);
    let third = recorded.await.unwrap();
    assert_eq!((third.key.turn, third.key.position, third.batch), (4, 1, 7));
    let second = &desk.ledger().await[1].key;
    desk.change(second, Change::Fail("no".to_owned())).await;
    let stands: Vec<CallStatus> = desk.stands().await.iter().map(|one| one.0).collect();
    let [runs, failed] = [CallStatus::Running, CallStatus::Failed];
    assert_eq!(stands, [runs, failed, runs]);
}

async fn inputs_and_results_are_kept_in_short_and_without_secrets(desk: &Desk) {
    let mut secret = call("a", None);
    secret.input = json!({ "command": format!("TOKEN=sesame make \0{}", "x".repeat(5_000)) });
    let record = desk.record(secret, Begins::Running).await;
    let result = "PASSWORD=hunter2 and so on".to_owned();
    desk.change(&record.key, Change::Complete(result)).await;
    let kept = &desk.ledger().await[0];
    assert!(
        kept.input.starts_with("TOKEN=[secret] make \u{fffd}xxx"),
        "{kept:?}"
    );
    assert!(kept.input.chars().count() <= 201, "{kept:?}");
    assert_eq!(kept.result.as_deref(), Some("PASSWORD=[secret] and so on"));
    assert_eq!(kept.input_digest.len(), 64);
    let rows = desk.sql("SELECT * FROM session_calls").unwrap();
    assert!(!rows.contains("sesame") && !rows.contains("hunter2"));
}

async fn a_dead_owner_settles_all_calls_of_its_batch_once(desk: &Desk) {
    let owner = desk.world.start(7, 100);
    for (id, begins) in [
        ("a", Begins::Running),
        ("b", Begins::AwaitingApproval),
        ("c", Begins::Requested),
    ] {
        let mut call = call(id, (id != "c").then(|| owner.clone()));
        call.batch = Some(1);
        call.limit = Limit::After(SECOND * 600);
        desk.record(call, begins).await;
    }
    desk.engine.recover_here().await.unwrap();
    assert_eq!(desk.recover().await, 0, "it lives");
    desk.world.machine().processes.clear();
    let recovered = desk.engine.recover_here().await.unwrap();
    assert_eq!(recovered.sessions.len(), 1);
    assert_eq!(recovered.sessions[0].1, 3);
    assert_eq!(desk.stands().await, [LOST, UNBEGUN, UNBEGUN]);
    let before = desk.ledger().await;
    let said = before[0].synthetic.as_ref().unwrap();
    assert!(
        said.to_model.contains("outcome of this call is unknown"),
        "{said:?}"
    );
    assert!(said.to_operator.contains("the process is gone"), "{said:?}");
    assert!(!said.to_model.contains("process"), "{said:?}");
    desk.advance(SECOND * 9_999);
    desk.engine.recover_here().await.unwrap();
    assert_eq!(desk.recover().await, 0);
    assert_eq!(desk.ledger().await, before, "one synthetic result, ever");
    assert_eq!(desk.due(), "0");
}

async fn a_reboot_and_a_recycled_process_id_are_proof(desk: &Desk) {
    let owner = desk.world.start(7, 100);
    desk.record(call("a", Some(owner.clone())), Begins::Running)
        .await;
    desk.world.start(7, 101);
    desk.engine.recover_here().await.unwrap();
    desk.world.start(7, 100);
    desk.record(call("b", Some(owner)), Begins::Running).await;
    desk.engine.recover_here().await.unwrap();
    assert_eq!(desk.stands().await, [LOST, RUNS]);
    desk.world.machine().boot = "second".to_owned();
    desk.engine.recover_here().await.unwrap();
    assert_eq!(desk.stands().await, [LOST, LOST]);
    let ledger = desk.ledger().await;
    let grounds = |place: usize| {
        ledger[place]
            .synthetic
            .as_ref()
            .unwrap()
            .to_operator
            .as_str()
    };
    assert!(grounds(0).contains("started later"), "{}", grounds(0));
    assert!(grounds(1).contains("booted again"), "{}", grounds(1));
}

async fn an_owner_elsewhere_or_unknown_is_not_dead(desk: &Desk) {
    let elsewhere = Owner {
        host: "elsewhere".to_owned(),
        boot: Some("another".to_owned()),
        process: 7,
        process_started: None,
    };
    desk.record(call("a", Some(elsewhere)), Begins::Running)
        .await;
    desk.record(call("b", None), Begins::Running).await;
    desk.engine.recover_here().await.unwrap();
    assert_eq!(desk.recover().await, 0);
    assert_eq!(desk.stands().await, [RUNS, RUNS]);
    desk.advance(SECOND * 150 + MOMENT);
    assert_eq!(desk.recover().await, 2, "only the clock is left");
    assert_eq!(desk.stands().await, [LATE, LATE]);
}

async fn approval_pauses_the_clock_and_it_begins_from_zero(desk: &Desk) {
    let record = desk.record(call("a", None), Begins::Running).await;
    desk.advance(SECOND * 149);
    desk.change(&record.key, Change::AskApproval).await;
    desk.advance(SECOND * 86_400);
    assert_eq!(desk.recover().await, 0);
    desk.change(&record.key, Change::Start).await;
    desk.advance(SECOND * 150);
    assert_eq!(desk.recover().await, 0, "exactly at the limit it is alive");
    desk.advance(MOMENT);
    assert_eq!(desk.recover().await, 1);
    let said = desk.ledger().await[0].synthetic.clone().unwrap();
    assert!(
        said.to_model.starts_with("No answer came within 120 s."),
        "{said:?}"
    );
}

async fn a_sign_of_life_and_a_timeout_of_its_own_count(desk: &Desk) {
    let record = desk.record(call("a", None), Begins::Running).await;
    let mut long = call("b", None);
    long.limit = Limit::After(SECOND * 600);
    desk.record(long, Begins::Running).await;
    let mut untimed = call("c", None);
    untimed.limit = Limit::Never;
    desk.record(untimed, Begins::Running).await;
    desk.advance(SECOND * 140);
    desk.change(&record.key, Change::Progress).await;
    desk.advance(SECOND * 140);
    assert_eq!(desk.recover().await, 0);
    desk.advance(SECOND * 400);
    assert_eq!(desk.recover().await, 2);
    assert_eq!(desk.stands().await, [LATE, LATE, RUNS]);
    desk.advance(SECOND * 999_999);
    assert_eq!(desk.recover().await, 0, "it has no clock");
}

async fn a_late_result_is_kept_and_is_no_second_answer(desk: &Desk) {
    let record = desk.record(call("a", None), Begins::Running).await;
    desk.advance(SECOND * 200);
    desk.recover().await;
    let told = desk.ledger().await[0].synthetic.clone();
    desk.advance(SECOND);
    let late = desk
        .change(&record.key, Change::Complete("made after all".to_owned()))
        .await;
    assert_eq!(late.status(), CallStatus::Completed);
    assert_eq!(late.result.as_deref(), Some("made after all"));
    assert_eq!(late.synthetic, told, "what the model was told stays");
    let cause = late.call.state.interruption().map(|why| why.cause);
    assert_eq!(cause, Some(Cause::TimedOut));
    let again = Change::Complete("twice".to_owned());
    let again = desk.engine.change_call(&desk.me, record.key, again).await;
    assert_eq!(code(again), "illegal_transition");
    assert_eq!(desk.ledger().await, [late]);
}

async fn those_who_recover_at_once_give_up_each_call_once(desk: &Desk) {
    let owner = desk.world.start(7, 100);
    for id in ["a", "b", "c"] {
        desk.record(call(id, Some(owner.clone())), Begins::Running)
            .await;
    }
    desk.world.machine().processes.clear();
    let others = [desk.another_engine().await, desk.another_engine().await];
    let running = others.clone().map(|engine| {
        let me = desk.me.clone();
        tokio::spawn(async move { engine.recover_session(&me, "one").await.unwrap().len() })
    });
    let mut given_up = desk.recover().await;
    for running in running {
        given_up += running.await.unwrap();
    }
    assert_eq!(given_up, 3);
    for other in others {
        other.close().await;
    }
}

async fn a_call_is_closed_by_hand(desk: &Desk) {
    let record = desk.record(call("a", None), Begins::Running).await;
    let agent = desk.role(onward_core::Role::Agent);
    let refused = desk.engine.close_call(&agent, record.key.clone()).await;
    assert_eq!(code(refused), "forbidden");
    let closed = desk.engine.close_call(&desk.me, record.key.clone()).await;
    let closed = closed.unwrap();
    assert_eq!(desk.stands().await, [LOST]);
    let said = closed.synthetic.unwrap();
    assert!(
        said.to_operator.starts_with("closed by hand by `me`"),
        "{said:?}"
    );
    let again = desk.engine.close_call(&desk.me, record.key.clone()).await;
    assert_eq!(code(again), "illegal_transition");
    desk.change(&record.key, Change::Complete("still".to_owned()))
        .await;
}

async fn how_a_session_is_can_be_read(desk: &Desk) {
    let unknown = desk.engine.session_health(&desk.me, "nobody").await;
    assert_eq!(code(unknown), "invalid_input");
    let owner = desk.world.start(7, 100);
    desk.record(call("a", Some(owner)), Begins::Running).await;
    desk.record(call("b", None), Begins::Running).await;
    desk.record(call("c", None), Begins::AwaitingApproval).await;
    let gone = desk.record(call("d", None), Begins::Running).await;
    desk.engine.close_call(&desk.me, gone.key).await.unwrap();
    let done = desk.record(call("e", None), Begins::Running).await;
    desk.change(&done.key, Change::Complete(String::new()))
        .await;
    desk.world.machine().processes.clear();
    let health = desk.engine.session_health(&desk.me, "one").await.unwrap();
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
    assert_eq!(health.calls.len(), 4, "what was answered is left out");
    assert_eq!(desk.stands().await[0], RUNS, "reading changes nothing");
}

async fn a_session_keeps_its_agent_where_a_call_names_none(desk: &Desk) {
    for (agent, known) in [
        ("api", "api"),
        ("harness", "harness"),
        ("api", "harness"),
        ("other", "other"),
    ] {
        let heard = Heard {
            agent: agent.to_owned(),
            ..heard()
        };
        let recorded =
            desk.engine
                .record_call(&desk.me, heard, None, call(agent, None), Begins::Running);
        recorded.await.unwrap();
        let view = desk.engine.show_session(&desk.me, "one", 9, 9).await;
        assert_eq!(view.unwrap().session.agent, known);
    }
}

async fn calls_are_forgotten_with_their_session(desk: &Desk) {
    desk.record(call("a", None), Begins::Running).await;
    desk.advance(SECOND * 86_400);
    let retention = Retention {
        sessions: Some(SECOND * 3_600),
        ..Retention::default()
    };
    let forgotten = desk.engine.forget(&desk.me.tenant, retention).await;
    assert_eq!(forgotten.unwrap().sessions, 1);
    let tenant = &desk.me.tenant;
    let left = format!("SELECT count(*) FROM session_calls WHERE tenant_id = '{tenant}'");
    assert_eq!(desk.sql(&left).unwrap(), "0");
    assert_eq!(desk.due(), "0");
}

async fn the_sweep_sleeps_until_a_call_is_past_its_time(desk: &Desk) {
    let mut watcher = desk.engine.watcher();
    desk.engine.sweep(&mut watcher).await.unwrap();
    desk.record(call("a", None), Begins::Running).await;
    let stale_at = desk.now().checked_add(SECOND * 150).unwrap();
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.next_at, Some(stale_at.next()));
    desk.world.set(stale_at);
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.calls.sessions, []);
    desk.advance(MOMENT);
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.calls.sessions.len(), 1);
    assert_eq!(round.next_at, None);
    assert_eq!(desk.stands().await, [LATE]);
}

async fn a_sweep_that_overslept_convicts_no_call_for_one_grace_period(desk: &Desk) {
    let mut watcher = desk.engine.watcher();
    desk.record(call("a", None), Begins::Running).await;
    desk.engine.sweep(&mut watcher).await.unwrap();
    desk.advance(SECOND * 8 * 3_600);
    let round = desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(round.calls.sessions, []);
    let ends = desk.now().checked_add(SECOND * 60).unwrap();
    assert_eq!(round.next_at, Some(ends.next()));
    // A call that begins meanwhile is judged as always.
    let mut short = call("b", None);
    short.limit = Limit::After(SECOND);
    desk.record(short, Begins::Running).await;
    desk.advance(SECOND * 31 + MOMENT);
    desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(desk.stands().await, [RUNS, LATE]);
    desk.world.set(ends.next());
    desk.engine.sweep(&mut watcher).await.unwrap();
    assert_eq!(desk.stands().await, [LATE, LATE]);
}

on_both_databases![
    a_call_is_followed_from_its_request_to_its_result,
    ids_may_repeat_and_each_call_keeps_its_place,
    inputs_and_results_are_kept_in_short_and_without_secrets,
    a_dead_owner_settles_all_calls_of_its_batch_once,
    a_reboot_and_a_recycled_process_id_are_proof,
    an_owner_elsewhere_or_unknown_is_not_dead,
    approval_pauses_the_clock_and_it_begins_from_zero,
    a_sign_of_life_and_a_timeout_of_its_own_count,
    a_late_result_is_kept_and_is_no_second_answer,
    those_who_recover_at_once_give_up_each_call_once,
    a_call_is_closed_by_hand,
    how_a_session_is_can_be_read,
    a_session_keeps_its_agent_where_a_call_names_none,
    calls_are_forgotten_with_their_session,
];

mod sweeps {
    use super::{
        a_sweep_that_overslept_convicts_no_call_for_one_grace_period,
        the_sweep_sleeps_until_a_call_is_past_its_time,
    };
    crate::on_both_databases![alone:
        the_sweep_sleeps_until_a_call_is_past_its_time,
        a_sweep_that_overslept_convicts_no_call_for_one_grace_period,
    ];
}

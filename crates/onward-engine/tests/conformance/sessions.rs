//! Agent sessions: turns and steps reported by hooks, and the escalation when a turn stalls.

use std::time::Duration;

use onward_core::turn::escalation::{self, EscalationState, REJECTION_PREFIX, ToolGate};
use onward_core::turn::{
    ExternalChange, Judgement, LoopControl, OnStall, Progress, State, TurnEnd, TurnJudge,
    TurnPolicy, Verdict,
};
use onward_engine::retention::Retention;
use onward_engine::session::{
    Admission, Fingerprint, HookSource, ObservedCall, ObservedStep, SessionView, StepMessages,
    StepReport,
};
use onward_engine::{Error, ObjectKind};
use serde_json::json;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::code;

/// The default loop control with a stall threshold of 4 steps.
pub(crate) fn control() -> LoopControl {
    LoopControl {
        turn: TurnPolicy {
            stall_threshold: 4,
            ..TurnPolicy::default()
        },
        ..LoopControl::default()
    }
}

pub(crate) fn source() -> HookSource {
    HookSource {
        session: "one".to_owned(),
        agent: "claude-code".to_owned(),
        directory: Some("/src/tides".to_owned()),
        ..HookSource::default()
    }
}

pub(crate) fn call(id: &str, command: &str, output: &str) -> ObservedCall {
    ObservedCall {
        id: Some(id.to_owned()),
        tool: "Bash".to_owned(),
        input: json!({ "command": command }),
        ok: Some(true),
        output: output.to_owned(),
    }
}

pub(crate) fn step(calls: Vec<ObservedCall>) -> ObservedStep {
    ObservedStep {
        calls,
        report: StepReport::Batch,
        fingerprint: Fingerprint::Value("same".to_owned()),
        plans: Vec::new(),
        claims: Vec::new(),
        judged: None,
    }
}

/// A call reported separately from its batch.
pub(crate) fn single_call(call: ObservedCall) -> ObservedStep {
    ObservedStep {
        report: StepReport::Call,
        ..step(vec![call])
    }
}

impl Harness {
    pub(crate) async fn begin_turn(&self, source: HookSource) {
        let fingerprint = Fingerprint::Value("same".to_owned());
        let begun = self
            .engine
            .begin_turn(&self.me, source, fingerprint, control());
        begun.await.unwrap();
    }

    pub(crate) async fn observe(&self, source: HookSource, step: ObservedStep) -> StepMessages {
        self.advance(Duration::from_secs(1));
        let observed = self.engine.observe_step(&self.me, source, step, control());
        observed.await.unwrap()
    }

    /// Requests permission for a tool call.
    pub(crate) async fn gate(&self, source: HookSource, call: &str) -> Admission {
        let call = crate::tool_calls::call(call, None);
        let gated = self
            .engine
            .admit_call(&self.me, source, call, true, control());
        gated.await.unwrap()
    }

    pub(crate) async fn session_view(&self) -> SessionView {
        self.engine
            .show_session(&self.me, "one", 99, 99)
            .await
            .unwrap()
    }

    /// Observes idle steps with these numbers and returns the messages to the agent.
    pub(crate) async fn idle_steps(
        &self,
        source: HookSource,
        numbers: std::ops::Range<u32>,
    ) -> Vec<Option<String>> {
        let mut messages = Vec::new();
        for number in numbers {
            let idle = step(vec![call(&format!("idle{number}"), "true", "")]);
            messages.push(self.observe(source.clone(), idle).await.to_agent);
        }
        messages
    }
}

async fn a_stalled_turn_escalates_until_the_next_prompt(harness: &Harness) {
    harness.begin_turn(source()).await;
    let messages = harness.idle_steps(source(), 0..4).await;
    let sent: Vec<bool> = messages.iter().map(Option::is_some).collect();
    assert_eq!(sent, [false, true, false, true], "{messages:?}");
    let state = EscalationState {
        idle_steps: 2,
        ..EscalationState::default()
    };
    assert_eq!(
        messages[1],
        Some(escalation::nudge(&state, ExternalChange::Unchanged))
    );
    let reminder = messages[3].as_ref().unwrap();
    assert!(reminder.contains("Bash `true`"), "{reminder}");
    for (id, gate) in [
        ("a", ToolGate::Reject),
        ("b", ToolGate::Reject),
        ("c", ToolGate::Stop),
    ] {
        let gated = harness.gate(source(), id).await;
        assert_eq!(gated.gate, gate);
        assert!(
            gated.to_agent.starts_with(REJECTION_PREFIX),
            "{}",
            gated.to_agent
        );
        let state = harness.session_view().await.turns[0].0.standing;
        assert_eq!(gated.to_user, escalation::for_user(&state));
    }
    // Calls of one batch are gated concurrently; none is allowed after the turn was stopped.
    assert_eq!(harness.gate(source(), "d").await.gate, ToolGate::Stop);
    harness
        .observe(
            source(),
            step(vec![call(
                "late",
                "ls",
                "reported after the end of the turn",
            )]),
        )
        .await;
    harness.begin_turn(source()).await;
    assert_eq!(harness.gate(source(), "e").await.gate, ToolGate::Allow);
    let view = harness.session_view().await;
    let [(first, steps), (second, _)] = view.turns.as_slice() else {
        panic!("expected two turns: {:?}", view.turns)
    };
    assert_eq!(
        first.ended.map(|(_, reason)| reason),
        Some(TurnEnd::Stopped)
    );
    assert_eq!(
        (
            first.standing.rejections,
            first.standing.steps,
            first.threshold
        ),
        (4, 4, 4)
    );
    assert_eq!(first.judgement, Some(Judgement::Stalled));
    let judged: Vec<&str> = steps.iter().map(|step| step.judgement.as_str()).collect();
    assert_eq!(judged, ["idle", "idle", "idle", "stalled"]);
    assert_eq!(
        (second.number, second.ended, second.standing.steps),
        (2, None, 0)
    );
}

async fn records_progress_with_its_reason(harness: &Harness) {
    harness.begin_turn(source()).await;
    harness.idle_steps(source(), 0..1).await;
    let changed = ObservedStep {
        fingerprint: Fingerprint::Value("another".to_owned()),
        ..step(vec![call("x", "make", "")])
    };
    assert_eq!(
        harness.observe(source(), changed).await,
        StepMessages::default()
    );
    let view = harness.session_view().await;
    let (turn, steps) = &view.turns[0];
    assert_eq!(turn.progressed_at, Some(harness.now()));
    assert_eq!(steps[1].why, Some(Progress::Changed.to_string()));
    assert_eq!(steps[1].idle_steps, 0);
    assert_eq!(steps[0].calls[0].input, "true");
}

async fn the_first_fingerprint_is_a_baseline_and_a_late_one_is_not_judged(harness: &Harness) {
    // The prompt was not reported: the first step starts the turn and its fingerprint is the
    // baseline.
    harness.idle_steps(source(), 0..1).await;
    let late = ObservedStep {
        fingerprint: Fingerprint::TimedOut,
        ..step(vec![call("x", "true", "")])
    };
    harness.observe(source(), late).await;
    harness.idle_steps(source(), 1..2).await;
    let view = harness.session_view().await;
    let judged: Vec<&str> = (view.turns[0].1.iter())
        .map(|step| step.judgement.as_str())
        .collect();
    assert_eq!(judged, ["idle", "unjudged", "idle"]);
    assert_eq!(view.turns[0].0.standing.idle_steps, 2);
}

async fn counts_a_call_reported_twice_once(harness: &Harness) {
    harness.begin_turn(source()).await;
    harness
        .observe(source(), single_call(call("a", "true", "")))
        .await;
    harness
        .observe(source(), single_call(call("a", "true", "")))
        .await;
    // The batch contains no new call.
    harness
        .observe(source(), step(vec![call("a", "true", "")]))
        .await;
    // Once batches are reported, single calls are not counted as steps.
    harness
        .observe(source(), single_call(call("b", "true", "")))
        .await;
    harness
        .observe(source(), single_call(call("c", "true", "")))
        .await;
    harness
        .observe(
            source(),
            step(vec![call("b", "true", ""), call("c", "true", "")]),
        )
        .await;
    let view = harness.session_view().await;
    let (turn, steps) = &view.turns[0];
    assert_eq!((turn.standing.steps, steps.len()), (2, 2));
    assert_eq!(steps[1].calls.len(), 2);
}

async fn a_denied_call_is_not_counted_as_a_step(harness: &Harness) {
    harness.begin_turn(source()).await;
    harness.idle_steps(source(), 0..4).await;
    let gated = harness.gate(source(), "denied").await;
    harness
        .observe(source(), step(vec![call("denied", "ls", "no")]))
        .await;
    // The denial message reported as the output of a call without an id.
    let mut echo = call("", "ls", &gated.to_agent);
    echo.id = None;
    harness.observe(source(), step(vec![echo])).await;
    assert_eq!(harness.session_view().await.turns[0].0.standing.steps, 4);
}

async fn a_disabled_session_is_recorded_without_intervention(harness: &Harness) {
    harness.begin_turn(source()).await;
    let off = harness
        .engine
        .switch_session(&harness.me, "on", true)
        .await
        .unwrap();
    assert!(off.switched_off);
    let messages = harness.idle_steps(source(), 0..6).await;
    assert_eq!(messages, vec![None; 6]);
    assert_eq!(harness.gate(source(), "a").await.gate, ToolGate::Allow);
    harness
        .engine
        .switch_session(&harness.me, "one", false)
        .await
        .unwrap();
    assert_eq!(harness.gate(source(), "b").await.gate, ToolGate::Reject);
}

async fn the_warn_policy_notifies_only_the_user(harness: &Harness) {
    let control = LoopControl {
        on_stall: OnStall::Warn,
        ..control()
    };
    let mut last = StepMessages::default();
    for number in 0..4 {
        let idle = step(vec![call(&number.to_string(), "true", "")]);
        let observed = harness
            .engine
            .observe_step(&harness.me, source(), idle, control);
        last = observed.await.unwrap();
    }
    assert_eq!(last.to_agent, None);
    let state = harness.session_view().await.turns[0].0.standing;
    assert_eq!(last.to_user, Some(escalation::for_user(&state)));
    let call = crate::tool_calls::call("next", None);
    let gated = harness
        .engine
        .admit_call(&harness.me, source(), call, true, control);
    assert_eq!(gated.await.unwrap().gate, ToolGate::Allow);
}

async fn an_unreadable_detector_state_is_reset_and_reported(harness: &Harness) {
    harness.begin_turn(source()).await;
    harness.idle_steps(source(), 0..3).await;
    let tenant = &harness.me.tenant;
    harness
        .sql(&format!(
            "UPDATE session_agents SET state = '{{\"version\":9}}' WHERE tenant_id = '{tenant}'"
        ))
        .unwrap();
    let observed = harness
        .observe(source(), step(vec![call("x", "true", "")]))
        .await;
    assert!(observed.unreadable.is_some());
    assert_eq!(
        harness.session_view().await.turns[0].0.standing.idle_steps,
        1
    );
    let again = harness
        .observe(source(), step(vec![call("y", "true", "")]))
        .await;
    assert_eq!(again.unreadable, None);
}

async fn ending_a_session_ends_its_turns_and_later_activity_reopens_it(harness: &Harness) {
    harness.begin_turn(source()).await;
    harness
        .engine
        .end_session(&harness.me, source())
        .await
        .unwrap();
    let view = harness.session_view().await;
    assert_eq!(view.session.ended_at, Some(harness.now()));
    assert_eq!(
        view.turns[0].0.ended.map(|(_, reason)| reason),
        Some(TurnEnd::SessionEnded)
    );
    harness.advance(Duration::from_secs(60));
    harness.begin_turn(source()).await;
    let session = harness.session_view().await.session;
    assert_eq!(
        (session.ended_at, session.last_seen_at),
        (None, harness.now())
    );
}

async fn offers_an_unfinished_plan_of_the_directory(harness: &Harness) {
    let begin = async || {
        let begun = harness
            .engine
            .begin_session(&harness.me, source(), Some("startup"))
            .await;
        begun.unwrap().project.plan.map(|plan| plan.sheet)
    };
    assert_eq!(begin().await, None);
    let (first, second) = (harness.plan(1).await, harness.plan(1).await);
    for plan in [second.id, first.id] {
        let with_plan = ObservedStep {
            plans: vec![plan],
            ..step(vec![call(&plan.to_string(), "true", "")])
        };
        harness.observe(source(), with_plan).await;
    }
    assert_eq!(begin().await.map(|sheet| sheet.head.id), Some(first.id));
    harness.complete_steps(first.id, 1).await;
    assert_eq!(begin().await.map(|sheet| sheet.head.id), Some(second.id));
    harness
        .engine
        .delete_plan(&harness.me, second.id)
        .await
        .unwrap();
    assert_eq!(begin().await, None);
    let other_directory = HookSource {
        directory: Some("/src".to_owned()),
        ..source()
    };
    let begun = harness
        .engine
        .begin_session(&harness.me, other_directory, Some("startup"))
        .await;
    assert_eq!(begun.unwrap().project.plan, None);
}

async fn previews_redact_secrets_and_replace_nul(harness: &Harness) {
    let mut secret = call(
        "a\0",
        "curl -H 'Authorization: Bearer abc'\0",
        "PASSWORD=pw",
    );
    secret.input["command"] = json!("PASSWORD=pw curl \0");
    harness.observe(source(), step(vec![secret])).await;
    let view = harness.session_view().await;
    let line = &view.turns[0].1[0].calls[0];
    assert_eq!(line.input, "PASSWORD=[secret] curl \u{FFFD}");
    assert_eq!(line.output, "PASSWORD=[secret]");
    let empty = HookSource {
        session: String::new(),
        ..source()
    };
    let rejected = harness.engine.end_turn(&harness.me, empty).await;
    assert_eq!(code(rejected), "invalid_input");
}

async fn finds_sessions_by_an_id_prefix(harness: &Harness) {
    for session in ["abc-1", "abc-2", "abc"] {
        let source = HookSource {
            session: session.to_owned(),
            ..source()
        };
        harness.advance(Duration::from_secs(1));
        harness.begin_turn(source).await;
    }
    let find = async |id: &str| harness.engine.find_session(&harness.me, id).await;
    assert_eq!(find("abc").await.unwrap().id, "abc");
    assert_eq!(find("abc-1").await.unwrap().id, "abc-1");
    assert_eq!(code(find("ab").await), "invalid_input");
    let missing = find("x").await;
    assert!(
        matches!(&missing, Err(Error::NotFound { kind: ObjectKind::Session, name }) if name == "x"),
        "{missing:?}"
    );
    let listed = harness.engine.list_sessions(&harness.me, 2).await.unwrap();
    let ids: Vec<&str> = listed.iter().map(|line| line.session.id.as_str()).collect();
    assert_eq!(ids, ["abc", "abc-2"]);
    assert_eq!((listed[0].turns, listed[0].held), (1, 0));
}

async fn retention_deletes_inactive_sessions_with_their_turns(harness: &Harness) {
    let day = Duration::from_secs(24 * 3600);
    harness.begin_turn(source()).await;
    harness.idle_steps(source(), 0..1).await;
    harness.advance(day);
    let other = HookSource {
        session: "two".to_owned(),
        ..source()
    };
    harness.begin_turn(other.clone()).await;
    harness.idle_steps(other, 1..2).await;
    let retention = Retention {
        sessions: Some(day),
        ..Retention::default()
    };
    let deleted = harness
        .engine
        .apply_retention(&harness.me.tenant, retention)
        .await
        .unwrap();
    assert_eq!(deleted.sessions, 1);
    let listed = harness.engine.list_sessions(&harness.me, 9).await.unwrap();
    assert_eq!(listed.len(), 1);
    let tenant = &harness.me.tenant;
    for table in ["session_agents", "turns", "turn_steps"] {
        let remaining = harness.sql(&format!(
            "SELECT DISTINCT session_id FROM {table} WHERE tenant_id = '{tenant}'"
        ));
        assert_eq!(remaining.as_deref(), Ok("two"), "{table}");
    }
}

async fn counts_concurrent_steps(harness: &Harness) {
    harness.begin_turn(source()).await;
    let other = harness.another_engine().await;
    let all: Vec<_> = (0..24)
        .map(|number| {
            let engine = if number % 2 == 0 {
                harness.engine.clone()
            } else {
                other.clone()
            };
            let me = harness.me.clone();
            let idle = step(vec![call(&format!("idle{number}"), "true", "")]);
            tokio::spawn(async move {
                let observed = engine.observe_step(&me, source(), idle, control()).await;
                observed.unwrap()
            })
        })
        .collect();
    let mut messages = 0;
    for observed in all {
        messages += u32::from(observed.await.unwrap().to_agent.is_some());
    }
    other.close().await;
    let view = harness.session_view().await;
    let (turn, steps) = &view.turns[0];
    assert_eq!((turn.standing.steps, turn.standing.idle_steps), (24, 24));
    assert_eq!(steps.len(), 24);
    assert_eq!(messages, 2, "one nudge and one reminder");
}

async fn an_in_memory_judge_resumes_from_the_stored_state(harness: &Harness) {
    let load = |subagent: &'static str| {
        harness
            .engine
            .session_snapshot(&harness.me, "one", subagent)
    };
    assert_eq!(load("").await.unwrap(), None);
    let named = HookSource {
        turn: Some("noon".to_owned()),
        ..source()
    };
    harness.begin_turn(named.clone()).await;
    harness.idle_steps(named.clone(), 0..3).await;
    let loaded = load("").await.unwrap().unwrap();
    assert_eq!(loaded.agent, "claude-code");
    assert_eq!(loaded.turn.as_deref(), Some("noon"));
    assert_eq!(loaded.escalation.idle_steps, 3);
    assert_eq!(loaded.known_calls, ["idle0", "idle1", "idle2"]);
    let mut judge = TurnJudge::resume(control(), loaded.state, loaded.escalation);
    let repeated = call("idle3", "true", "");
    let now = harness.engine.now();
    let judged = judge.observe(&[repeated.as_call()], ExternalChange::Unchanged, None, now);
    assert!(matches!(judged.verdict, Verdict::Stalled { steps: 4, .. }));
    // An unreported subagent has no turn; an ended turn has no state.
    let other = load("subagent").await.unwrap().unwrap();
    assert_eq!((other.turn, other.escalation.steps), (None, 0));
    harness.engine.end_turn(&harness.me, named).await.unwrap();
    let ended = load("").await.unwrap().unwrap();
    assert_eq!(ended.escalation, EscalationState::default());
    assert_eq!((ended.state, ended.off), (State::default(), false));
    harness
        .engine
        .switch_session(&harness.me, "one", true)
        .await
        .unwrap();
    assert!(load("").await.unwrap().unwrap().off);
}

on_both_databases![
    a_stalled_turn_escalates_until_the_next_prompt,
    records_progress_with_its_reason,
    the_first_fingerprint_is_a_baseline_and_a_late_one_is_not_judged,
    counts_a_call_reported_twice_once,
    a_denied_call_is_not_counted_as_a_step,
    a_disabled_session_is_recorded_without_intervention,
    the_warn_policy_notifies_only_the_user,
    an_unreadable_detector_state_is_reset_and_reported,
    ending_a_session_ends_its_turns_and_later_activity_reopens_it,
    offers_an_unfinished_plan_of_the_directory,
    previews_redact_secrets_and_replace_nul,
    finds_sessions_by_an_id_prefix,
    retention_deletes_inactive_sessions_with_their_turns,
    counts_concurrent_steps,
    an_in_memory_judge_resumes_from_the_stored_state,
];

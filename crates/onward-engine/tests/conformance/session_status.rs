//! The list of sessions: the status of each for people, its last prompt and the person who runs it,
//! and the texts that were sent to the model.

use std::time::Duration;

use onward_core::session::{IDLE_AFTER, SessionStatus, SubagentStatus};
use onward_engine::session::{HookSource, status};
use onward_engine::tool_calls::{Approval, CallRef, NewCall};
use serde_json::json;

use crate::harness::Harness;
use crate::on_both_databases;
use crate::sessions::{call, control, source, step};

impl Harness {
    async fn session_status(&self, id: &str) -> SessionStatus {
        let lines = self.engine.list_sessions(&self.me, 10).await.unwrap();
        let line = lines.iter().find(|line| line.session.id == id).unwrap();
        let view = self.engine.show_session(&self.me, id, 99, 99).await;
        let now = self.engine.now();
        assert_eq!(view.unwrap().status(now), status(line, now));
        status(line, now).0
    }
}

async fn the_status_follows_the_turn(harness: &Harness) {
    harness.begin_turn(source()).await;
    assert_eq!(harness.session_status("one").await, SessionStatus::Working);
    harness.idle_steps(source(), 0..3).await;
    assert_eq!(harness.session_status("one").await, SessionStatus::Looping);
    harness.idle_steps(source(), 3..5).await;
    assert_eq!(
        harness.session_status("one").await,
        SessionStatus::ToolsClosed
    );
    for _ in 0..3 {
        harness.gate(source(), "rejected").await;
    }
    assert_eq!(harness.session_status("one").await, SessionStatus::Stopped);
    harness.begin_turn(source()).await;
    assert_eq!(harness.session_status("one").await, SessionStatus::Working);
    harness
        .engine
        .end_turn(&harness.me, source())
        .await
        .unwrap();
    assert_eq!(harness.session_status("one").await, SessionStatus::Idle);
    harness
        .engine
        .end_session(&harness.me, source())
        .await
        .unwrap();
    assert_eq!(harness.session_status("one").await, SessionStatus::Ended);
}

async fn the_status_follows_the_calls(harness: &Harness) {
    harness.begin_turn(source()).await;
    let input = json!({ "command": "psql -c 'drop table old'" });
    let owner = Some(harness.environment.start_process(7, 100));
    let (id, tool) = (Some("drop".to_owned()), "Bash".to_owned());
    let dropped = NewCall::from_hook(id, tool, input.clone(), owner);
    let admitted = harness
        .engine
        .admit_call(&harness.me, source(), dropped, true, control());
    admitted.await.unwrap();
    let asked = CallRef {
        id: Some("drop".to_owned()),
        tool: "Bash".to_owned(),
        input,
    };
    let recorded = harness
        .engine
        .record_approval(&harness.me, source(), asked, Approval::Pending);
    recorded.await.unwrap();
    let approval = SessionStatus::AwaitingApproval;
    assert_eq!(harness.session_status("one").await, approval);
    let view = harness.session_view().await;
    let key = view.calls[0].key.clone();
    harness
        .engine
        .interrupt_call(&harness.me, key)
        .await
        .unwrap();
    assert_eq!(harness.session_status("one").await, SessionStatus::DeadCall);
    harness.advance(Duration::from_secs(1));
    let progress = step(vec![call(
        "new",
        "ls",
        "a file that was not listed before, and another",
    )]);
    harness.observe(source(), progress).await;
    assert_eq!(harness.session_status("one").await, SessionStatus::Working);
}

async fn the_last_prompt_and_the_messages_are_stored(harness: &Harness) {
    let prompted = |prompt: &str, subagent: &str| HookSource {
        prompt: Some(prompt.to_owned()),
        subagent: subagent.to_owned(),
        ..source()
    };
    let secret = format!("Deploy with token=ghp_{} now", "a1B2".repeat(9));
    harness.begin_turn(prompted(&secret, "")).await;
    harness
        .begin_turn(prompted("Read all files", "worker"))
        .await;
    let messages = harness.idle_steps(source(), 0..5).await;
    let lines = harness.engine.list_sessions(&harness.me, 10).await.unwrap();
    let session = &lines[0].session;
    assert_eq!(session.actor.as_deref(), Some(harness.me.name.as_str()));
    let prompt = session.prompt.as_deref().unwrap();
    assert!(prompt.starts_with("Deploy"), "{prompt}");
    assert!(!prompt.contains("a1B2a1B2"), "{prompt}");
    assert_eq!(lines[0].responses, 5);
    let view = harness.session_view().await;
    let (_, steps) = view
        .turns
        .iter()
        .find(|(turn, _)| turn.agent.is_empty())
        .unwrap();
    let stored: Vec<_> = steps.iter().map(|step| step.message.clone()).collect();
    assert_eq!(stored, messages);
    assert_eq!(stored.iter().flatten().count(), 2);
}

fn subagent(name: &str) -> HookSource {
    HookSource {
        subagent: name.to_owned(),
        ..source()
    }
}

impl Harness {
    /// The subagents of the session in the order of the page, each with its status and answer.
    async fn subagents(&self) -> Vec<(String, SubagentStatus, Option<String>)> {
        let now = self.engine.now();
        let view = self.session_view().await;
        let line = |one: &onward_engine::session::Subagent<'_>| {
            (one.turn.agent.clone(), one.status, one.turn.answer.clone())
        };
        let shown: Vec<_> = view.subagents(now).iter().map(line).collect();
        let lines = self.engine.list_sessions(&self.me, 10).await.unwrap();
        let listed = onward_engine::session::subagents(&lines[0], now);
        let listed: Vec<_> = listed.iter().map(line).collect();
        assert!(listed.is_empty() || listed == shown, "{listed:?}");
        shown
    }
}

async fn a_silent_subagent_is_stale_and_its_siblings_have_answers(harness: &Harness) {
    let (stale, working) = (SubagentStatus::Stale, SubagentStatus::Working);
    harness.begin_turn(source()).await;
    harness.begin_turn(subagent("silent")).await;
    harness.begin_turn(subagent("done")).await;
    let secret = format!("Three files, token=ghp_{}", "a1B2".repeat(9));
    let ended = HookSource {
        answer: Some(secret),
        ..subagent("done")
    };
    harness.engine.end_turn(&harness.me, ended).await.unwrap();
    let call_threshold = Duration::from_secs(150);
    harness.advance(call_threshold);
    assert_eq!(harness.session_status("one").await, SessionStatus::Working);
    assert_eq!(harness.subagents().await[0].1, working);
    harness.advance(Duration::from_millis(1));
    let shown = harness.subagents().await;
    assert_eq!((shown[0].0.as_str(), shown[0].1), ("silent", stale));
    assert_eq!(
        (shown[1].0.as_str(), shown[1].1),
        ("done", SubagentStatus::Ended)
    );
    let answer = shown[1].2.as_deref().unwrap();
    assert!(answer.starts_with("Three files"), "{answer}");
    assert!(!answer.contains("a1B2a1B2"), "{answer}");
    let status = SessionStatus::StaleSubagent;
    assert_eq!(harness.session_status("one").await, status);
    // An event of the subagent ends the state.
    harness.idle_steps(subagent("silent"), 0..1).await;
    assert_eq!(harness.session_status("one").await, SessionStatus::Working);
    harness.advance(IDLE_AFTER + Duration::from_millis(1));
    assert_eq!(harness.session_status("one").await, status);
    // A person who continues has seen it.
    harness.begin_turn(source()).await;
    assert_eq!(harness.session_status("one").await, SessionStatus::Working);
    assert_eq!(harness.subagents().await[0].1, stale);
    harness
        .engine
        .end_session(&harness.me, source())
        .await
        .unwrap();
    let shown = harness.subagents().await;
    assert!(
        shown
            .iter()
            .all(|(_, status, _)| *status == SubagentStatus::Ended)
    );
}

async fn an_open_call_of_a_subagent_has_its_own_timeout(harness: &Harness) {
    harness.begin_turn(source()).await;
    harness.begin_turn(subagent("builds")).await;
    let (id, tool) = (Some("build".to_owned()), "Bash".to_owned());
    let input = json!({ "command": "make", "timeout": 600_000 });
    let owner = Some(harness.environment.start_process(7, 100));
    let call = NewCall::from_hook(id, tool, input, owner);
    let admitted =
        harness
            .engine
            .admit_call(&harness.me, subagent("builds"), call, true, control());
    admitted.await.unwrap();
    harness.advance(2 * IDLE_AFTER);
    assert_eq!(harness.subagents().await[0].1, SubagentStatus::Working);
}

on_both_databases!(
    the_status_follows_the_turn,
    the_status_follows_the_calls,
    the_last_prompt_and_the_messages_are_stored,
    a_silent_subagent_is_stale_and_its_siblings_have_answers,
    an_open_call_of_a_subagent_has_its_own_timeout,
);

//! Agents' sessions: turns and steps as hooks tell of them, and how the ladder is climbed.

use std::time::Duration;

use onward_core::turn::ladder::{Gate, REFUSAL_OPENING, Standing};
use onward_core::turn::{
    Call, Judgement, LoopControl, Observation, OnStall, Outside, ProgressDetector, State, TurnEnd,
    TurnPolicy, Verdict,
};
use onward_engine::retention::Retention;
use onward_engine::session::{
    Fingerprint, Gated, Heard, Observed, SeenCall, SeenStep, SessionView,
};
use serde_json::json;

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::code;

pub(crate) const CONTROL: fn() -> LoopControl = || LoopControl {
    turn: TurnPolicy {
        stall_threshold: 4,
        ..TurnPolicy::default()
    },
    ..LoopControl::default()
};

pub(crate) fn heard() -> Heard {
    Heard {
        session: "one".to_owned(),
        agent: "claude-code".to_owned(),
        directory: Some("/src/tides".to_owned()),
        ..Heard::default()
    }
}

pub(crate) fn call(id: &str, command: &str, output: &str) -> SeenCall {
    SeenCall {
        id: Some(id.to_owned()),
        tool: "Bash".to_owned(),
        input: json!({ "command": command }),
        ok: Some(true),
        output: output.to_owned(),
    }
}

pub(crate) fn step(calls: Vec<SeenCall>) -> SeenStep {
    SeenStep {
        calls,
        whole: true,
        fingerprint: Fingerprint::Of("same".to_owned()),
        plans: Vec::new(),
    }
}

pub(crate) fn alone(call: SeenCall) -> SeenStep {
    SeenStep {
        whole: false,
        ..step(vec![call])
    }
}

impl Desk {
    pub(crate) async fn prompt(&self, heard: Heard) {
        let print = Fingerprint::Of("same".to_owned());
        let begun = self.engine.begin_turn(&self.me, heard, print, CONTROL());
        begun.await.unwrap();
    }

    pub(crate) async fn see(&self, heard: Heard, step: SeenStep) -> Observed {
        self.advance(Duration::from_secs(1));
        let seen = self.engine.observe_step(&self.me, heard, step, CONTROL());
        seen.await.unwrap()
    }

    pub(crate) async fn asks(&self, heard: Heard, call: &str) -> Gated {
        let call = Some(call.to_owned());
        let gated = self
            .engine
            .before_call(&self.me, heard, call, true, CONTROL());
        gated.await.unwrap()
    }

    pub(crate) async fn view(&self) -> SessionView {
        self.engine
            .show_session(&self.me, "one", 99, 99)
            .await
            .unwrap()
    }

    /// So many steps that do nothing.
    pub(crate) async fn idle(
        &self,
        heard: Heard,
        steps: std::ops::Range<u32>,
    ) -> Vec<Option<String>> {
        let mut said = Vec::new();
        for number in steps {
            let idle = step(vec![call(&format!("idle{number}"), "true", "")]);
            said.push(self.see(heard.clone(), idle).await.to_agent);
        }
        said
    }
}

async fn a_turn_climbs_the_ladder_and_a_prompt_ends_it_all(desk: &Desk) {
    desk.prompt(heard()).await;
    let said = desk.idle(heard(), 0..4).await;
    assert_eq!((&said[0], &said[2]), (&None, &None));
    assert_eq!(
        said[1].as_deref(),
        Some("In the last 2 steps no file changed and nothing new was learned.")
    );
    assert!(
        said[3]
            .as_ref()
            .unwrap()
            .contains("Bash `true`: it does nothing")
    );
    for (id, gate) in [
        ("a", Gate::Refused),
        ("b", Gate::Refused),
        ("c", Gate::Stopped),
    ] {
        let gated = desk.asks(heard(), id).await;
        assert_eq!(gated.gate, gate);
        assert!(
            gated.to_agent.starts_with(REFUSAL_OPENING),
            "{}",
            gated.to_agent
        );
        assert!(
            gated.to_person.contains("4 steps in a row"),
            "{}",
            gated.to_person
        );
    }
    // Calls of one batch ask side by side: none of them slips through behind the end.
    assert_eq!(desk.asks(heard(), "d").await.gate, Gate::Stopped);
    desk.see(
        heard(),
        step(vec![call("late", "ls", "so late that nobody cares")]),
    )
    .await;
    desk.prompt(heard()).await;
    assert_eq!(desk.asks(heard(), "e").await.gate, Gate::Open);
    let view = desk.view().await;
    let [(first, steps), (second, _)] = view.turns.as_slice() else {
        panic!("two turns, found {:?}", view.turns)
    };
    assert_eq!(first.ended.map(|(_, why)| why), Some(TurnEnd::Stopped));
    assert_eq!(
        (
            first.standing.refusals,
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

async fn progress_is_noted_with_its_reason(desk: &Desk) {
    desk.prompt(heard()).await;
    desk.idle(heard(), 0..1).await;
    let changed = SeenStep {
        fingerprint: Fingerprint::Of("another".to_owned()),
        ..step(vec![call("x", "make", "")])
    };
    assert_eq!(desk.see(heard(), changed).await, Observed::default());
    let view = desk.view().await;
    let (turn, steps) = &view.turns[0];
    assert_eq!(turn.progressed_at, Some(desk.now()));
    assert_eq!(steps[1].why.as_deref(), Some("the outside changed"));
    assert_eq!(steps[1].idle_steps, 0);
    assert_eq!(steps[0].calls[0].input, "true");
}

async fn the_first_look_is_a_baseline_and_a_late_one_counts_for_nothing(desk: &Desk) {
    // Nobody saw the prompt: the first step begins the turn, and is no change.
    desk.idle(heard(), 0..1).await;
    let late = SeenStep {
        fingerprint: Fingerprint::Late,
        ..step(vec![call("x", "true", "")])
    };
    desk.see(heard(), late).await;
    desk.idle(heard(), 1..2).await;
    let view = desk.view().await;
    let judged: Vec<&str> = (view.turns[0].1.iter())
        .map(|step| step.judgement.as_str())
        .collect();
    assert_eq!(judged, ["idle", "unjudged", "idle"]);
    assert_eq!(view.turns[0].0.standing.idle_steps, 2);
}

async fn a_call_that_is_told_of_twice_counts_once(desk: &Desk) {
    desk.prompt(heard()).await;
    desk.see(heard(), alone(call("a", "true", ""))).await;
    desk.see(heard(), alone(call("a", "true", ""))).await;
    // Its batch holds nothing that is new.
    desk.see(heard(), step(vec![call("a", "true", "")])).await;
    // From here on batches are told of, and calls alone are not waited for.
    desk.see(heard(), alone(call("b", "true", ""))).await;
    desk.see(heard(), alone(call("c", "true", ""))).await;
    desk.see(
        heard(),
        step(vec![call("b", "true", ""), call("c", "true", "")]),
    )
    .await;
    let view = desk.view().await;
    let (turn, steps) = &view.turns[0];
    assert_eq!((turn.standing.steps, steps.len()), (2, 2));
    assert_eq!(steps[1].calls.len(), 2);
}

async fn a_refused_call_is_no_step_and_does_not_feed_its_own_count(desk: &Desk) {
    desk.prompt(heard()).await;
    desk.idle(heard(), 0..4).await;
    let gated = desk.asks(heard(), "refused").await;
    desk.see(heard(), step(vec![call("refused", "ls", "no")]))
        .await;
    let mut echo = call("nameless", "ls", &gated.to_agent);
    echo.id = None;
    desk.see(heard(), step(vec![echo])).await;
    assert_eq!(desk.view().await.turns[0].0.standing.steps, 4);
}

async fn subagents_have_turns_of_their_own(desk: &Desk) {
    let sub = Heard {
        subagent: "scout".to_owned(),
        ..heard()
    };
    desk.prompt(heard()).await;
    desk.prompt(sub.clone()).await;
    desk.idle(sub.clone(), 0..4).await;
    assert_eq!(desk.asks(sub.clone(), "a").await.gate, Gate::Refused);
    assert_eq!(desk.asks(heard(), "b").await.gate, Gate::Open);
    desk.engine.end_turn(&desk.me, sub.clone()).await.unwrap();
    assert_eq!(desk.asks(sub, "c").await.gate, Gate::Open);
    let view = desk.view().await;
    let ends: Vec<_> = (view.turns.iter())
        .map(|(turn, _)| (turn.agent.as_str(), turn.ended.map(|(_, why)| why)))
        .collect();
    assert_eq!(ends, [("", None), ("scout", Some(TurnEnd::Answered))]);
}

async fn another_name_of_the_turn_is_another_turn(desk: &Desk) {
    let named = |turn: &str| Heard {
        turn: Some(turn.to_owned()),
        ..heard()
    };
    desk.idle(named("p1"), 0..4).await;
    assert_eq!(desk.asks(named("p1"), "a").await.gate, Gate::Refused);
    assert_eq!(desk.asks(named("p2"), "b").await.gate, Gate::Open);
    desk.idle(named("p2"), 4..5).await;
    let view = desk.view().await;
    let ends: Vec<_> = (view.turns.iter())
        .map(|(turn, _)| (turn.key.as_deref(), turn.ended.map(|(_, why)| why)))
        .collect();
    assert_eq!(
        ends,
        [(Some("p1"), Some(TurnEnd::NextPrompt)), (Some("p2"), None)]
    );
}

async fn a_session_that_is_switched_off_is_watched_and_left_alone(desk: &Desk) {
    desk.prompt(heard()).await;
    let off = desk
        .engine
        .switch_session(&desk.me, "on", true)
        .await
        .unwrap();
    assert!(off.switched_off);
    let said = desk.idle(heard(), 0..6).await;
    assert_eq!(said, vec![None; 6]);
    assert_eq!(desk.asks(heard(), "a").await.gate, Gate::Open);
    desk.engine
        .switch_session(&desk.me, "one", false)
        .await
        .unwrap();
    assert_eq!(desk.asks(heard(), "b").await.gate, Gate::Refused);
}

async fn a_policy_that_only_warns_tells_the_person(desk: &Desk) {
    let control = LoopControl {
        on_stall: OnStall::Warn,
        ..CONTROL()
    };
    let mut last = Observed::default();
    for number in 0..4 {
        let idle = step(vec![call(&number.to_string(), "true", "")]);
        let seen = desk.engine.observe_step(&desk.me, heard(), idle, control);
        last = seen.await.unwrap();
    }
    assert_eq!(last.to_agent, None);
    assert!(last.to_person.unwrap().contains("4 steps in a row"));
    let gated = desk
        .engine
        .before_call(&desk.me, heard(), None, true, control);
    assert_eq!(gated.await.unwrap().gate, Gate::Open);
}

async fn a_state_that_cannot_be_read_is_a_fresh_turn_and_says_so(desk: &Desk) {
    desk.prompt(heard()).await;
    desk.idle(heard(), 0..3).await;
    let tenant = &desk.me.tenant;
    desk.sql(&format!(
        "UPDATE session_agents SET state = '{{\"version\":9}}' WHERE tenant_id = '{tenant}'"
    ))
    .unwrap();
    let seen = desk.see(heard(), step(vec![call("x", "true", "")])).await;
    assert_eq!(
        seen.unreadable.as_deref(),
        Some("it has version 9, expected 1")
    );
    assert_eq!(desk.view().await.turns[0].0.standing.idle_steps, 1);
    let again = desk.see(heard(), step(vec![call("y", "true", "")])).await;
    assert_eq!(again.unreadable, None);
}

async fn the_end_of_a_session_ends_its_turns_and_hearing_of_it_goes_on(desk: &Desk) {
    desk.prompt(heard()).await;
    desk.engine.end_session(&desk.me, heard()).await.unwrap();
    let view = desk.view().await;
    assert_eq!(view.session.ended_at, Some(desk.now()));
    assert_eq!(
        view.turns[0].0.ended.map(|(_, why)| why),
        Some(TurnEnd::SessionEnded)
    );
    desk.advance(Duration::from_secs(60));
    desk.prompt(heard()).await;
    let session = desk.view().await.session;
    assert_eq!((session.ended_at, session.last_seen_at), (None, desk.now()));
}

async fn an_unfinished_plan_of_the_directory_is_offered(desk: &Desk) {
    let begin = async || {
        let begun = desk.engine.begin_session(&desk.me, heard(), true).await;
        begun.unwrap().plan
    };
    assert_eq!(begin().await, None);
    let (first, second) = (desk.plan(1).await, desk.plan(1).await);
    for plan in [second.id, first.id] {
        let told = SeenStep {
            plans: vec![plan],
            ..step(vec![call(&plan.to_string(), "true", "")])
        };
        desk.see(heard(), told).await;
    }
    assert_eq!(begin().await.map(|sheet| sheet.head.id), Some(first.id));
    desk.work_off(first.id, 1).await;
    assert_eq!(begin().await.map(|sheet| sheet.head.id), Some(second.id));
    desk.engine.delete_plan(&desk.me, second.id).await.unwrap();
    assert_eq!(begin().await, None);
    let elsewhere = Heard {
        directory: Some("/src".to_owned()),
        ..heard()
    };
    let begun = desk.engine.begin_session(&desk.me, elsewhere, true).await;
    assert_eq!(begun.unwrap().plan, None);
}

async fn previews_hold_no_secrets_and_nothing_that_cannot_be_stored(desk: &Desk) {
    let mut secret = call(
        "a\0",
        "curl -H 'Authorization: Bearer abc'\0",
        "PASSWORD=pw",
    );
    secret.input["command"] = json!("PASSWORD=pw curl \0");
    desk.see(heard(), step(vec![secret])).await;
    let view = desk.view().await;
    let line = &view.turns[0].1[0].calls[0];
    assert_eq!(line.input, "PASSWORD=[secret] curl \u{FFFD}");
    assert_eq!(line.output, "PASSWORD=[secret]");
    let empty = Heard {
        session: String::new(),
        ..heard()
    };
    let refused = desk.engine.end_turn(&desk.me, empty).await;
    assert_eq!(code(refused), "invalid_input");
}

async fn sessions_are_found_by_the_beginning_of_their_id(desk: &Desk) {
    for session in ["abc-1", "abc-2", "abc"] {
        let heard = Heard {
            session: session.to_owned(),
            ..heard()
        };
        desk.advance(Duration::from_secs(1));
        desk.prompt(heard).await;
    }
    let find = async |id: &str| desk.engine.find_session(&desk.me, id).await;
    assert_eq!(find("abc").await.unwrap().id, "abc");
    assert_eq!(find("abc-1").await.unwrap().id, "abc-1");
    assert_eq!(code(find("ab").await), "invalid_input");
    assert_eq!(find("x").await.unwrap_err().to_string(), "no session `x`");
    let listed = desk.engine.list_sessions(&desk.me, 2).await.unwrap();
    let ids: Vec<&str> = listed.iter().map(|line| line.session.id.as_str()).collect();
    assert_eq!(ids, ["abc", "abc-2"]);
    assert_eq!((listed[0].turns, listed[0].held), (1, 0));
}

async fn sessions_that_were_silent_for_long_are_forgotten_with_all_of_theirs(desk: &Desk) {
    let day = Duration::from_secs(24 * 3600);
    desk.prompt(heard()).await;
    desk.idle(heard(), 0..1).await;
    desk.advance(day);
    let other = Heard {
        session: "two".to_owned(),
        ..heard()
    };
    desk.prompt(other.clone()).await;
    desk.idle(other, 1..2).await;
    let retention = Retention {
        sessions: Some(day),
        ..Retention::default()
    };
    let forgotten = desk
        .engine
        .forget(&desk.me.tenant, retention)
        .await
        .unwrap();
    assert_eq!(forgotten.sessions, 1);
    let listed = desk.engine.list_sessions(&desk.me, 9).await.unwrap();
    assert_eq!(listed.len(), 1);
    let tenant = &desk.me.tenant;
    for table in ["session_agents", "turns", "turn_steps"] {
        let left = desk.sql(&format!(
            "SELECT DISTINCT session_id FROM {table} WHERE tenant_id = '{tenant}'"
        ));
        assert_eq!(left.as_deref(), Ok("two"), "{table}");
    }
}

async fn steps_that_come_at_once_are_all_counted(desk: &Desk) {
    desk.prompt(heard()).await;
    let other = desk.another_engine().await;
    let all: Vec<_> = (0..24)
        .map(|number| {
            let engine = if number % 2 == 0 {
                desk.engine.clone()
            } else {
                other.clone()
            };
            let me = desk.me.clone();
            let idle = step(vec![call(&format!("idle{number}"), "true", "")]);
            tokio::spawn(async move {
                let seen = engine.observe_step(&me, heard(), idle, CONTROL()).await;
                seen.unwrap()
            })
        })
        .collect();
    let mut told = 0;
    for one in all {
        told += u32::from(one.await.unwrap().to_agent.is_some());
    }
    other.close().await;
    let view = desk.view().await;
    let (turn, steps) = &view.turns[0];
    assert_eq!((turn.standing.steps, turn.standing.idle_steps), (24, 24));
    assert_eq!(steps.len(), 24);
    assert_eq!(told, 2, "one nudge and one reminder");
}

async fn whoever_judges_in_memory_goes_on_where_a_turn_stands(desk: &Desk) {
    let recall = |subagent: &'static str| desk.engine.recall(&desk.me, "one", subagent);
    assert_eq!(recall("").await.unwrap(), None);
    let named = Heard {
        turn: Some("noon".to_owned()),
        ..heard()
    };
    desk.prompt(named.clone()).await;
    desk.idle(named.clone(), 0..3).await;
    let recalled = recall("").await.unwrap().unwrap();
    assert_eq!(recalled.agent, "claude-code");
    assert_eq!(recalled.turn.as_deref(), Some("noon"));
    assert_eq!(recalled.standing.idle_steps, 3);
    assert_eq!(recalled.known_calls, ["idle0", "idle1", "idle2"]);
    let mut detector = ProgressDetector::resume(CONTROL().turn, recalled.state);
    let input = json!({ "command": "true" });
    let verdict = detector.observe(&Observation {
        calls: &[Call {
            tool: "Bash",
            input: &input,
            ok: Some(true),
            output: "",
        }],
        outside: Outside::Same,
        at: None,
        background: false,
    });
    assert!(matches!(verdict, Verdict::Stalled { steps: 4, .. }));
    // Of a subagent nothing is known, and of a turn that is over only its name.
    let other = recall("sent").await.unwrap().unwrap();
    assert_eq!((other.turn, other.standing.steps), (None, 0));
    desk.engine.end_turn(&desk.me, named).await.unwrap();
    let over = recall("").await.unwrap().unwrap();
    assert_eq!(over.standing, Standing::default());
    assert_eq!((over.state, over.off), (State::default(), false));
    desk.engine
        .switch_session(&desk.me, "one", true)
        .await
        .unwrap();
    assert!(recall("").await.unwrap().unwrap().off);
}

on_both_databases![
    a_turn_climbs_the_ladder_and_a_prompt_ends_it_all,
    progress_is_noted_with_its_reason,
    the_first_look_is_a_baseline_and_a_late_one_counts_for_nothing,
    a_call_that_is_told_of_twice_counts_once,
    a_refused_call_is_no_step_and_does_not_feed_its_own_count,
    subagents_have_turns_of_their_own,
    another_name_of_the_turn_is_another_turn,
    a_session_that_is_switched_off_is_watched_and_left_alone,
    a_policy_that_only_warns_tells_the_person,
    a_state_that_cannot_be_read_is_a_fresh_turn_and_says_so,
    the_end_of_a_session_ends_its_turns_and_hearing_of_it_goes_on,
    an_unfinished_plan_of_the_directory_is_offered,
    previews_hold_no_secrets_and_nothing_that_cannot_be_stored,
    sessions_are_found_by_the_beginning_of_their_id,
    sessions_that_were_silent_for_long_are_forgotten_with_all_of_theirs,
    steps_that_come_at_once_are_all_counted,
    whoever_judges_in_memory_goes_on_where_a_turn_stands,
];

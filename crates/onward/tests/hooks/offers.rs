//! A session that starts where a plan was left unfinished is told of it.

use serde_json::json;

use crate::desk::Desk;

/// A plan in the desk's database, made as an import makes it.
fn plan(desk: &Desk) -> String {
    let id = "0197f1a0-0000-7000-8000-000000000001";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        use onward_core::command::{CreatePlan, StepSpec};
        use onward_engine::{Address, Caller, Engine, engine::Settings};
        let address = Address::File(desk.folder.join("onward.db"));
        let engine = Engine::open(&address, Settings::default()).await.unwrap();
        let steps = vec![StepSpec::new(
            engine.fresh_step(),
            onward_core::StepType::Search,
            "Look.",
        )];
        let plan = CreatePlan::new(id.parse().unwrap(), "Tides", "Why two?", steps);
        engine
            .create_plan(&Caller::local("agent"), plan, None)
            .await
            .unwrap();
        engine.close().await;
    });
    id.to_owned()
}

fn tell_of(desk: &Desk, agent: &str, plan: &str) {
    let payload = desk.payload("plan_made").replace("{plan}", plan);
    desk.send(&["hook", agent], payload.as_bytes()).is_silent();
}

#[test]
fn an_unfinished_plan_of_the_directory_is_offered_when_a_session_starts() {
    let desk = Desk::new("offer", "claude-code");
    let plan = plan(&desk);
    desk.tell("session_start").is_silent();
    tell_of(&desk, "claude-code", &plan);
    let offer = desk.tell("session_start").json();
    let said = &offer["hookSpecificOutput"];
    assert_eq!(said["hookEventName"], "SessionStart");
    let text = said["additionalContext"].as_str().unwrap();
    assert!(text.contains("`Tides`") && text.contains(&plan), "{text}");
    desk.send(&["plan", "abandon", &plan, "--reason", "no"], b"");
    desk.tell("session_start").is_silent();
}

#[test]
fn kimi_is_told_with_its_first_prompt_as_plain_text() {
    let desk = Desk::new("offer-kimi", "kimi");
    let plan = plan(&desk);
    tell_of(&desk, "kimi", &plan);
    desk.tell("session_start").is_silent();
    desk.tell("prompt").is_silent();
    let payload = desk
        .payload("prompt")
        .replace("session_9f2c", "session_new");
    let answer = desk.send(&["hook", "kimi"], payload.as_bytes());
    assert!(answer.stdout.contains("`Tides`"), "{answer:?}");
    assert!(!answer.stdout.starts_with('{'), "{answer:?}");
    assert_eq!(json!(answer.code), json!(0));
}

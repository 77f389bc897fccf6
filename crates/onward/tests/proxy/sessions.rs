//! What is remembered: sessions like those of hooks, kept apart, and never a key.

use std::path::Path;

use serde_json::json;

use crate::house::House;
use crate::speech::{ALL, Api, Talk};
use crate::upstream::Upstream;

#[tokio::test]
async fn sessions_are_shown_like_those_of_hooks() {
    for database in [None, Some(onward_testbed::Cluster::shared().database())] {
        let upstream = Upstream::start().await;
        let name = format!("shown-{}", database.is_some());
        let mut house = House::new(&name);
        if let Some(database) = database {
            house = house.on(database);
        }
        let proxy = house.proxy(&upstream);
        for api in ALL {
            let mut talk = Talk::new(api, true, &format!("{api:?}"));
            talk.idles(&proxy, &upstream, 8).await;
            upstream.will(talk.answers("Noon."));
            talk.sends(&proxy).await;
            talk.says("Noon.");
            talk.asks("Thanks! And low tide?");
            talk.idles(&proxy, &upstream, 1).await;
            talk.sends(&proxy).await;
        }
        let house = proxy.stop();
        let list = house.prints(&["--json", "session", "list"]);
        assert_eq!(list["sessions"].as_array().expect("sessions").len(), 3);
        for api in ALL {
            let turns = house.turns(&format!("{api:?}"));
            assert_eq!(turns.len(), 2, "{turns:?}");
            assert_eq!(turns[0]["whyEnded"], "answered", "{api:?}");
            assert_eq!(turns[0]["held"], "stalled");
            assert_eq!(turns[0]["idleSteps"], 8);
            assert_eq!(turns[0]["stepCount"], 8);
            assert_eq!(turns[0]["steps"][0]["calls"][0]["tool"], "Bash");
            assert_eq!(turns[0]["steps"][0]["calls"][0]["input"], "true");
            assert_eq!(turns[1]["stepCount"], 1);
            assert_eq!(turns[1]["held"], json!(null));
        }
        assert_eq!(list["sessions"][0]["agent"], "proxy");
        assert_eq!(list["sessions"][0]["heldTurns"], 1);
    }
}

#[tokio::test]
async fn a_call_stands_in_the_ledger_until_its_result_comes() {
    for api in ALL {
        for streams in [false, true] {
            let upstream = Upstream::start().await;
            let house = House::new(&format!("ledger-{api:?}-{streams}"));
            let proxy = house.proxy(&upstream);
            let mut talk = Talk::new(api, streams, "ledger");
            upstream.will(talk.calling());
            talk.sends(&proxy).await;
            // What was seen is written behind; a proxy that ends writes the last of it.
            let house = proxy.stop();
            let calls = house.calls("ledger");
            assert_eq!(calls.len(), 1, "{calls:?}");
            assert_eq!(calls[0]["callId"], "call_x");
            assert_eq!(calls[0]["tool"], "Bash");
            assert_eq!(calls[0]["status"], "running", "{api:?}, {streams}");
            assert!(calls[0]["staleAt"].is_string(), "{calls:?}");

            let proxy = house.proxy(&upstream);
            let (call, result) = talk.pair("call_x", "true", "It is noon.");
            talk.rows.extend([call, result]);
            upstream.will(talk.answers("Noon."));
            talk.sends(&proxy).await;
            let house = proxy.stop();
            let calls = house.calls("ledger");
            assert_eq!(calls.len(), 1, "{calls:?}");
            assert_eq!(calls[0]["status"], "completed", "{api:?}, {streams}");
            assert_eq!(calls[0]["result"], "It is noon.");
        }
    }
}

#[tokio::test]
async fn an_answer_in_words_ends_the_turn_whoever_asked_for_it() {
    let upstream = Upstream::start().await;
    let proxy = House::new("ends").proxy(&upstream);
    for api in ALL {
        for streams in [false, true] {
            let mut talk = Talk::new(api, streams, &format!("{api:?}-{streams}"));
            talk.idles(&proxy, &upstream, 5).await;
            upstream.will(talk.answers("Noon."));
            talk.sends(&proxy).await;
        }
    }
    let house = proxy.stop();
    for api in ALL {
        for streams in [false, true] {
            let turns = house.turns(&format!("{api:?}-{streams}"));
            assert_eq!(turns.len(), 1);
            assert_eq!(turns[0]["whyEnded"], "answered", "{api:?}, {streams}");
            assert_eq!(turns[0]["stepCount"], 5);
        }
    }
}

#[tokio::test]
async fn a_session_that_is_switched_off_is_left_alone() {
    let upstream = Upstream::start().await;
    let proxy = House::new("off").proxy(&upstream);
    let mut talk = Talk::new(Api::Anthropic, false, "quiet");
    talk.idles(&proxy, &upstream, 3).await;
    // What was seen is written behind; that the session is there takes a moment.
    let deadline = std::time::Instant::now() + crate::house::PATIENCE;
    while !proxy
        .house()
        .run(&["session", "off", "quiet"])
        .status
        .success()
    {
        assert!(std::time::Instant::now() < deadline, "it is never written");
    }
    for _ in 0..7 {
        upstream.will(talk.calling());
        talk.sends(&proxy).await;
        assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
        talk.steps("true", "");
    }
    assert!(
        proxy
            .house()
            .run(&["session", "on", "quiet"])
            .status
            .success()
    );
    upstream.will(talk.answers("Noon."));
    talk.sends(&proxy).await;
    assert!(talk.forbids(&upstream.last().json()));
}

#[tokio::test]
async fn sessions_that_run_at_once_are_kept_apart() {
    let upstream = Upstream::start().await;
    let proxy = House::new("apart").proxy(&upstream);
    let mut stuck = Talk::new(Api::Anthropic, false, "stuck");
    let mut other = Talk::new(Api::Anthropic, false, "other");
    for _ in 0..8 {
        stuck.idles(&proxy, &upstream, 1).await;
        let page = format!(
            "page {} of the tables, which nobody has read so far",
            other.rows.len()
        );
        other
            .goes_on(
                &proxy,
                &upstream,
                &format!("cat {}", other.rows.len()),
                &page,
            )
            .await;
    }
    upstream.will(other.calling());
    other.sends(&proxy).await;
    assert_eq!(upstream.last().body, other.request().to_string().as_bytes());
    upstream.will(stuck.answers("Noon."));
    stuck.sends(&proxy).await;
    assert!(stuck.forbids(&upstream.last().json()));
}

#[tokio::test]
async fn what_one_agent_asks_side_by_side_is_judged_by_itself() {
    let upstream = Upstream::start().await;
    let proxy = House::new("subagents").proxy(&upstream);
    let mut main = Talk::new(Api::Anthropic, false, "one");
    let mut sent = Talk::new(Api::Anthropic, false, "one");
    sent.rows.clear();
    sent.asks("You are sent to look for the tables.");
    for _ in 0..5 {
        main.idles(&proxy, &upstream, 1).await;
        sent.idles(&proxy, &upstream, 1).await;
    }
    let house = proxy.stop();
    let turns = house.turns("one");
    assert_eq!(turns.len(), 2, "{turns:?}");
    for turn in &turns {
        assert_eq!(turn["idleSteps"], 4, "{turn}");
    }
    let subagents = turns.iter().filter(|turn| turn["subagent"].is_string());
    assert_eq!(subagents.count(), 1);
}

#[tokio::test]
async fn a_proxy_that_is_started_anew_goes_on_where_it_was() {
    let upstream = Upstream::start().await;
    let mut house = House::new("restart");
    let mut talk = Talk::new(Api::Chat, false, "s");
    for _ in 0..4 {
        let proxy = house.proxy(&upstream);
        talk.idles(&proxy, &upstream, 2).await;
        house = proxy.stop();
    }
    let proxy = house.proxy(&upstream);
    upstream.will(talk.answers("Noon."));
    talk.sends(&proxy).await;
    assert!(talk.forbids(&upstream.last().json()));
    assert_eq!(proxy.stop().turns("s").len(), 1);
}

#[tokio::test]
async fn a_conversation_that_was_shortened_goes_on() {
    let upstream = Upstream::start().await;
    let proxy = House::new("compacted").proxy(&upstream);
    let mut talk = Talk::new(Api::Anthropic, false, "s");
    talk.idles(&proxy, &upstream, 6).await;
    upstream.will(talk.calling());
    talk.sends(&proxy).await;
    // The agent asks for a summary, which is no turn, and goes on from it.
    talk.asks("Your task is to create a detailed summary of the conversation so far.");
    upstream.will(talk.answers("Tides."));
    talk.sends(&proxy).await;
    assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
    talk.rows.clear();
    talk.asks("This session is being continued from a previous conversation: tides.");
    talk.idles(&proxy, &upstream, 2).await;
    upstream.will(talk.answers("Noon."));
    talk.sends(&proxy).await;
    let seen = upstream.last().json();
    assert!(talk.forbids(&seen), "{seen}");
    assert_eq!(proxy.stop().turns("s").len(), 1);
}

#[tokio::test]
async fn ids_that_come_again_are_other_calls() {
    let upstream = Upstream::start().await;
    let proxy = House::new("same-ids").proxy(&upstream);
    for api in [Api::Chat, Api::Anthropic] {
        let mut talk = Talk::new(api, false, &format!("{api:?}"));
        for _ in 0..8 {
            upstream.will(talk.calling());
            talk.sends(&proxy).await;
            let (call, result) = talk.pair("call_0", "true", "");
            talk.rows.push(call);
            talk.rows.push(result);
        }
        upstream.will(talk.answers("Noon."));
        talk.sends(&proxy).await;
        assert!(talk.forbids(&upstream.last().json()), "{api:?}");
    }
    let house = proxy.stop();
    assert_eq!(house.turns("Chat")[0]["idleSteps"], 8);
}

#[tokio::test]
async fn a_session_that_hooks_tell_of_is_theirs() {
    let upstream = Upstream::start().await;
    let house = House::new("hooks");
    let payload = json!({
        "session_id": "hooked", "cwd": house.folder, "hook_event_name": "UserPromptSubmit",
        "prompt": "When is high tide?",
    });
    let file = house.folder.join("payload.json");
    std::fs::write(&file, payload.to_string()).expect("it can be written");
    let hook = std::process::Command::new(env!("CARGO_BIN_EXE_onward"))
        .args(["hook", "claude-code"])
        .env("ONWARD_DATABASE", house.folder.join("onward.db"))
        .stdin(std::fs::File::open(file).expect("a file"))
        .status();
    assert!(hook.expect("it runs").success());
    let proxy = house.proxy(&upstream);
    let mut talk = Talk::new(Api::Anthropic, false, "hooked");
    for _ in 0..10 {
        upstream.will(talk.calling());
        talk.sends(&proxy).await;
        assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
        talk.steps("true", "");
    }
    let turns = proxy.stop().turns("hooked");
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["stepCount"], 0);
}

#[tokio::test]
async fn keys_are_neither_kept_nor_logged() {
    let key = "sk-ant-VerySecret0123456789";
    let upstream = Upstream::start().await;
    let proxy = House::new("keys").proxy(&upstream);
    let bearer = format!("Bearer {key}");
    for api in ALL {
        let mut talk = Talk::new(api, true, &format!("{api:?}"));
        for step in 0..10 {
            let headers = [
                ("x-session-id", talk.session.as_str()),
                ("x-api-key", key),
                ("authorization", bearer.as_str()),
            ];
            upstream.will(match step {
                8 => talk.answers("Noon."),
                _ => talk.calling(),
            });
            let path = match api {
                Api::Anthropic => format!("{}&key={key}", talk.path()),
                Api::Chat | Api::Responses => format!("{}?key={key}", talk.path()),
            };
            proxy
                .send_with(&path, &headers, talk.request().to_string())
                .await;
            assert_eq!(upstream.last().headers["x-api-key"], key);
            assert_eq!(upstream.last().headers["authorization"], bearer.as_str());
            assert!(upstream.last().path.ends_with(key));
            talk.steps("true", "");
        }
    }
    // An API that cannot be reached is told of, too.
    let house = proxy.stop();
    let proxy = house.proxy_to("http://127.0.0.1:1");
    let talk = Talk::new(Api::Chat, true, "gone");
    let headers = [("x-api-key", key)];
    let path = format!("{}?key={key}", talk.path());
    let answer = proxy
        .send_with(&path, &headers, talk.request().to_string())
        .await;
    assert_eq!(answer.status.as_u16(), 502);
    assert!(!String::from_utf8_lossy(&answer.body).contains(key));
    let house = proxy.stop();
    assert!(!house.told().is_empty(), "the log says something");
    for entry in std::fs::read_dir(&house.folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.is_file() {
            assert!(!holds(&path, key), "{}", path.display());
        }
    }
}

fn holds(path: &Path, key: &str) -> bool {
    let bytes = std::fs::read(path).expect("it can be read");
    bytes
        .windows(key.len())
        .any(|window| window == key.as_bytes())
}

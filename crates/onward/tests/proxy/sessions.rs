//! Recorded sessions: turns, steps and calls, but no API keys.

use std::path::Path;
use std::time::Instant;

use onward_testbed::mcp_client::{Client, Era};
use onward_testbed::mock_server::{MockServer, Reply};
use onward_testbed::{Server, TIMEOUT};
use serde_json::{Value, json};

use crate::conversation::{ALL_APIS, Api, Conversation};
use crate::{program, session_calls, session_turns};

#[tokio::test]
async fn records_sessions_like_those_of_hooks() {
    for database in [None, Some(onward_testbed::Cluster::shared().database())] {
        let upstream = MockServer::start();
        let name = format!("recorded-{}", database.is_some());
        let mut dir = program(&name);
        if let Some(database) = database {
            dir = dir.with_database(database);
        }
        let proxy = dir.proxy(&upstream.url);
        for api in ALL_APIS {
            let mut conversation = Conversation::new(api, true, &format!("{api:?}"));
            conversation.run_idle_steps(&proxy, &upstream, 8).await;
            upstream.enqueue(conversation.text_reply("Noon."));
            conversation.send(&proxy).await;
            conversation.add_assistant_message("Noon.");
            conversation.add_user_message("Thanks! And low tide?");
            conversation.run_idle_steps(&proxy, &upstream, 1).await;
            conversation.send(&proxy).await;
        }
        let dir = proxy.stop();
        let list = dir.run_json(&["--json", "session", "list"]);
        assert_eq!(
            list["sessions"]
                .as_array()
                .expect("sessions is a list")
                .len(),
            3
        );
        for api in ALL_APIS {
            let turns = session_turns(&dir, &format!("{api:?}"));
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
async fn records_a_call_and_completes_it_with_its_result() {
    for api in ALL_APIS {
        for streaming in [false, true] {
            let upstream = MockServer::start();
            let dir = program(&format!("call-{api:?}-{streaming}"));
            let proxy = dir.proxy(&upstream.url);
            let mut conversation = Conversation::new(api, streaming, "s");
            upstream.enqueue(conversation.call_reply());
            conversation.send(&proxy).await;
            // Stopping the proxy writes all queued events.
            let dir = proxy.stop();
            let calls = session_calls(&dir, "s");
            assert_eq!(calls.len(), 1, "{calls:?}");
            assert_eq!(calls[0]["callId"], "call_x");
            assert_eq!(calls[0]["tool"], "Bash");
            assert_eq!(calls[0]["status"], "running", "{api:?}, {streaming}");
            assert!(calls[0]["staleAt"].is_string(), "{calls:?}");

            let proxy = dir.proxy(&upstream.url);
            let (call, result) = conversation.call_and_result("call_x", "true", "It is noon.");
            conversation.rows.extend([call, result]);
            upstream.enqueue(conversation.text_reply("Noon."));
            conversation.send(&proxy).await;
            let dir = proxy.stop();
            let calls = session_calls(&dir, "s");
            assert_eq!(calls.len(), 1, "{calls:?}");
            assert_eq!(calls[0]["status"], "completed", "{api:?}, {streaming}");
            assert_eq!(calls[0]["result"], "It is noon.");
        }
    }
}

#[tokio::test]
async fn a_request_is_a_sign_of_life_for_the_held_step() {
    for api in ALL_APIS {
        let upstream = MockServer::start();
        let dir = program(&format!("activity-{api:?}"));
        let mut client = Client::start(&dir, Era::Stateless);
        let plan = client.call(
            "create_research_plan",
            json!({
                "name": "Tides",
                "researchQuestion": "Why two?",
                "steps": [{ "stepType": "search", "instructions": "Look." }],
                "stallThresholdMs": 4,
                "onStall": "ignore",
            }),
        );
        let plan = plan["planId"].clone();
        let arguments = json!({ "planId": plan, "sessionId": "s" });
        client.call("get_next_step", arguments);
        let proxy = dir.proxy(&upstream.url);
        let mut conversation = Conversation::new(api, true, "s");
        conversation.run_idle_steps(&proxy, &upstream, 1).await;
        // Stopping the proxy writes all queued events.
        let _dir = proxy.stop();
        let status = client.call("get_plan_status", json!({ "planId": plan }));
        let last = &status["currentStep"]["lastProgressAt"];
        assert!(last.is_string(), "{api:?}: {status}");
    }
}

#[tokio::test]
async fn a_text_answer_ends_the_turn() {
    let upstream = MockServer::start();
    let proxy = program("ends").proxy(&upstream.url);
    for api in ALL_APIS {
        for streaming in [false, true] {
            let mut conversation =
                Conversation::new(api, streaming, &format!("{api:?}-{streaming}"));
            conversation.run_idle_steps(&proxy, &upstream, 5).await;
            upstream.enqueue(conversation.text_reply("Noon."));
            conversation.send(&proxy).await;
        }
    }
    let dir = proxy.stop();
    for api in ALL_APIS {
        for streaming in [false, true] {
            let turns = session_turns(&dir, &format!("{api:?}-{streaming}"));
            assert_eq!(turns.len(), 1);
            assert_eq!(turns[0]["whyEnded"], "answered", "{api:?}, {streaming}");
            assert_eq!(turns[0]["stepCount"], 5);
        }
    }
}

#[tokio::test]
async fn does_not_intervene_in_a_session_with_loop_control_off() {
    let upstream = MockServer::start();
    let proxy = program("off").proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Anthropic, false, "quiet");
    conversation.run_idle_steps(&proxy, &upstream, 3).await;
    // The command fails until the proxy has written the session.
    let deadline = Instant::now() + TIMEOUT;
    while proxy.program().run(&["session", "off", "quiet"]).code != Some(0) {
        assert!(Instant::now() < deadline, "the session was not written");
    }
    for _ in 0..7 {
        upstream.enqueue(conversation.call_reply());
        conversation.send(&proxy).await;
        assert_eq!(
            upstream.last_request().body,
            conversation.request().to_string().as_bytes()
        );
        conversation.add_step("true", "");
    }
    proxy.program().run_ok(&["session", "on", "quiet"]);
    upstream.enqueue(conversation.text_reply("Noon."));
    conversation.send(&proxy).await;
    assert!(conversation.forbids_tools(&upstream.last_request().json()));
}

#[tokio::test]
async fn separates_concurrent_sessions() {
    let upstream = MockServer::start();
    let proxy = program("concurrent").proxy(&upstream.url);
    let mut stuck = Conversation::new(Api::Anthropic, false, "stuck");
    let mut other = Conversation::new(Api::Anthropic, false, "other");
    for _ in 0..8 {
        stuck.run_idle_steps(&proxy, &upstream, 1).await;
        let page = format!(
            "page {} of the tables, which is new in this session",
            other.rows.len()
        );
        other
            .run_step(
                &proxy,
                &upstream,
                &format!("cat {}", other.rows.len()),
                &page,
            )
            .await;
    }
    upstream.enqueue(other.call_reply());
    other.send(&proxy).await;
    assert_eq!(
        upstream.last_request().body,
        other.request().to_string().as_bytes()
    );
    upstream.enqueue(stuck.text_reply("Noon."));
    stuck.send(&proxy).await;
    assert!(stuck.forbids_tools(&upstream.last_request().json()));
}

#[tokio::test]
async fn judges_parallel_conversations_of_a_session_separately() {
    let upstream = MockServer::start();
    let proxy = program("subagents").proxy(&upstream.url);
    let mut main = Conversation::new(Api::Anthropic, false, "one");
    let mut subagent = Conversation::new(Api::Anthropic, false, "one");
    subagent.rows.clear();
    subagent.add_user_message("Find the tables.");
    for _ in 0..5 {
        main.run_idle_steps(&proxy, &upstream, 1).await;
        subagent.run_idle_steps(&proxy, &upstream, 1).await;
    }
    let dir = proxy.stop();
    let turns = session_turns(&dir, "one");
    assert_eq!(turns.len(), 2, "{turns:?}");
    for turn in &turns {
        assert_eq!(turn["idleSteps"], 4, "{turn}");
    }
    let subagents = turns.iter().filter(|turn| turn["subagent"].is_string());
    assert_eq!(subagents.count(), 1);
}

#[tokio::test]
async fn restores_the_state_after_a_restart() {
    let upstream = MockServer::start();
    let mut dir = program("restart");
    let mut conversation = Conversation::new(Api::Chat, false, "s");
    for _ in 0..4 {
        let proxy = dir.proxy(&upstream.url);
        conversation.run_idle_steps(&proxy, &upstream, 2).await;
        dir = proxy.stop();
    }
    let proxy = dir.proxy(&upstream.url);
    upstream.enqueue(conversation.text_reply("Noon."));
    conversation.send(&proxy).await;
    assert!(conversation.forbids_tools(&upstream.last_request().json()));
    assert_eq!(session_turns(&proxy.stop(), "s").len(), 1);
}

#[tokio::test]
async fn continues_a_turn_after_compaction() {
    let upstream = MockServer::start();
    let proxy = program("compacted").proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Anthropic, false, "s");
    conversation.run_idle_steps(&proxy, &upstream, 6).await;
    upstream.enqueue(conversation.call_reply());
    conversation.send(&proxy).await;
    // The request for a summary is not part of the turn, and the summary continues it.
    conversation
        .add_user_message("Your task is to create a detailed summary of the conversation so far.");
    upstream.enqueue(conversation.text_reply("Tides."));
    conversation.send(&proxy).await;
    assert_eq!(
        upstream.last_request().body,
        conversation.request().to_string().as_bytes()
    );
    conversation.rows.clear();
    conversation
        .add_user_message("This session is being continued from a previous conversation: tides.");
    conversation.run_idle_steps(&proxy, &upstream, 2).await;
    upstream.enqueue(conversation.text_reply("Noon."));
    conversation.send(&proxy).await;
    let received = upstream.last_request().json();
    assert!(conversation.forbids_tools(&received), "{received}");
    assert_eq!(session_turns(&proxy.stop(), "s").len(), 1);
}

#[tokio::test]
async fn treats_reused_call_ids_as_different_calls() {
    let upstream = MockServer::start();
    let proxy = program("same-ids").proxy(&upstream.url);
    for api in [Api::Chat, Api::Anthropic] {
        let mut conversation = Conversation::new(api, false, &format!("{api:?}"));
        for _ in 0..8 {
            upstream.enqueue(conversation.call_reply());
            conversation.send(&proxy).await;
            let (call, result) = conversation.call_and_result("call_0", "true", "");
            conversation.rows.push(call);
            conversation.rows.push(result);
        }
        upstream.enqueue(conversation.text_reply("Noon."));
        conversation.send(&proxy).await;
        assert!(
            conversation.forbids_tools(&upstream.last_request().json()),
            "{api:?}"
        );
    }
    let dir = proxy.stop();
    assert_eq!(session_turns(&dir, "Chat")[0]["idleSteps"], 8);
}

#[tokio::test]
async fn ignores_a_session_reported_by_hooks() {
    let upstream = MockServer::start();
    let dir = program("hooks");
    let payload = json!({
        "session_id": "hooked", "cwd": dir.dir.path(), "hook_event_name": "UserPromptSubmit",
        "prompt": "When is high tide?",
    });
    let hook = dir.run_with_input(&["hook", "claude-code"], payload.to_string().as_bytes());
    assert_eq!(hook.code, Some(0), "{hook:?}");
    let proxy = dir.proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Anthropic, false, "hooked");
    for _ in 0..10 {
        upstream.enqueue(conversation.call_reply());
        conversation.send(&proxy).await;
        assert_eq!(
            upstream.last_request().body,
            conversation.request().to_string().as_bytes()
        );
        conversation.add_step("true", "");
    }
    let turns = session_turns(&proxy.stop(), "hooked");
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["stepCount"], 0);
}

#[tokio::test]
async fn neither_stores_nor_logs_api_keys() {
    let key = "sk-ant-VerySecret0123456789";
    let upstream = MockServer::start();
    let proxy = program("keys").proxy(&upstream.url);
    let bearer = format!("Bearer {key}");
    for api in ALL_APIS {
        let mut conversation = Conversation::new(api, true, &format!("{api:?}"));
        for step in 0..10 {
            let headers = [
                ("x-session-id", conversation.session.as_str()),
                ("x-api-key", key),
                ("authorization", bearer.as_str()),
            ];
            upstream.enqueue(match step {
                8 => conversation.text_reply("Noon."),
                _ => conversation.call_reply(),
            });
            let path = match api {
                Api::Anthropic => format!("{}&key={key}", conversation.path()),
                Api::Chat | Api::Responses => format!("{}?key={key}", conversation.path()),
            };
            proxy
                .send_with(&path, &headers, conversation.request().to_string())
                .await;
            assert_eq!(upstream.last_request().headers["x-api-key"], key);
            assert_eq!(
                upstream.last_request().headers["authorization"],
                bearer.as_str()
            );
            assert!(upstream.last_request().path.ends_with(key));
            conversation.add_step("true", "");
        }
    }
    // An unreachable API is logged as well.
    let dir = proxy.stop();
    let proxy = dir.proxy("http://127.0.0.1:1");
    let conversation = Conversation::new(Api::Chat, true, "unreachable");
    let headers = [("x-api-key", key)];
    let path = format!("{}?key={key}", conversation.path());
    let response = proxy
        .send_with(&path, &headers, conversation.request().to_string())
        .await;
    assert_eq!(response.status.as_u16(), 502);
    assert!(!String::from_utf8_lossy(&response.body).contains(key));
    let dir = proxy.stop();
    assert!(!dir.log().is_empty(), "the log is empty");
    for entry in std::fs::read_dir(dir.dir.path()).expect("directory read") {
        let path = entry.expect("directory entry").path();
        if path.is_file() {
            assert!(!contains(&path, key), "{}", path.display());
        }
    }
}

fn contains(path: &Path, key: &str) -> bool {
    let bytes = std::fs::read(path).expect("file read");
    bytes
        .windows(key.len())
        .any(|window| window == key.as_bytes())
}

/// Sends a conversation without a session id.
async fn send_unnamed(proxy: &Server, conversation: &Conversation) {
    let body = conversation.request().to_string();
    let response = proxy.send(conversation.path(), body).await;
    assert!(response.status.is_success(), "{response:?}");
}

#[tokio::test]
async fn separates_unnamed_sessions_with_the_same_beginning() {
    let upstream = MockServer::start();
    let proxy = program("unnamed").proxy(&upstream.url);
    let mut first = Conversation::new(Api::Anthropic, false, "");
    let mut second = Conversation::new(Api::Anthropic, false, "");
    for step in 0..6 {
        for (name, conversation) in [("a", &mut first), ("b", &mut second)] {
            upstream.enqueue(conversation.call_reply());
            send_unnamed(&proxy, conversation).await;
            let id = format!("{name}_{step}");
            let (call, result) = conversation.call_and_result(&id, "true", "");
            conversation.rows.extend([call, result]);
        }
    }
    // A third session begins after the others.
    upstream.enqueue(first.call_reply());
    send_unnamed(&proxy, &Conversation::new(Api::Anthropic, false, "")).await;
    let dir = proxy.stop();
    let list = dir.run_json(&["--json", "session", "list"]);
    let sessions = list["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 3, "{list}");
    let mut idle: Vec<u64> = Vec::new();
    for session in sessions {
        let turns = session_turns(&dir, session["sessionId"].as_str().unwrap());
        assert_eq!(turns.len(), 1, "{turns:?}");
        idle.push(turns[0]["idleSteps"].as_u64().unwrap());
    }
    idle.sort_unstable();
    assert_eq!(idle, [0, 5, 5]);
}

#[tokio::test]
async fn a_message_beside_results_starts_a_turn() {
    let upstream = MockServer::start();
    let proxy = program("interrupted-turn").proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Anthropic, false, "s");
    conversation.run_idle_steps(&proxy, &upstream, 3).await;
    let beside = |conversation: &mut Conversation, text: &str| {
        let row = conversation.rows.last_mut().unwrap();
        let blocks = row["content"].as_array_mut().unwrap();
        blocks.push(json!({ "type": "text", "text": text }));
    };
    beside(
        &mut conversation,
        "<system-reminder>Be brief.</system-reminder>",
    );
    conversation.run_idle_steps(&proxy, &upstream, 1).await;
    beside(
        &mut conversation,
        "[Request interrupted by user for tool use]",
    );
    beside(&mut conversation, "Look at the tables instead.");
    upstream.enqueue(conversation.call_reply());
    conversation.send(&proxy).await;
    let dir = proxy.stop();
    let turns = session_turns(&dir, "s");
    let mut idle: Vec<u64> = turns
        .iter()
        .map(|turn| turn["idleSteps"].as_u64().unwrap())
        .collect();
    idle.sort_unstable();
    assert_eq!(idle, [0, 3], "{turns:?}");
}

#[tokio::test]
async fn judges_results_without_reminders() {
    let upstream = MockServer::start();
    let proxy = program("reminders").proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Anthropic, false, "s");
    for word in ["ebb", "flow", "moon", "sun", "reef"] {
        let output = format!(
            "<system-reminder>The {word} is a new sentence that is long enough to count as new \
             information in this turn.</system-reminder>"
        );
        conversation
            .run_step(&proxy, &upstream, "true", &output)
            .await;
    }
    let dir = proxy.stop();
    assert_eq!(session_turns(&dir, "s")[0]["idleSteps"], 4);
}

#[tokio::test]
async fn records_the_calls_of_compressed_responses() {
    let upstream = MockServer::start();
    let proxy = program("compressed").proxy(&upstream.url);
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant",
        "content": [{
            "type": "tool_use", "id": "c1", "name": "Bash", "input": { "command": "make deploy" },
        }],
        "stop_reason": "tool_use",
    });
    let body = body.to_string().into_bytes();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &body).unwrap();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(body.as_slice(), level);
    for (coding, body) in [
        ("gzip", gzip.finish().unwrap()),
        ("br", BROTLI_CALL.to_vec()),
        ("zstd", zstd),
    ] {
        let conversation = Conversation::new(Api::Anthropic, false, coding);
        let reply = Reply::new("application/json", body.clone());
        upstream.enqueue(reply.header("content-encoding", coding));
        let response = conversation.send(&proxy).await;
        assert_eq!(response.body, body, "{coding}: the response is unchanged");
    }
    let dir = proxy.stop();
    for coding in ["gzip", "br", "zstd"] {
        let calls = session_calls(&dir, coding);
        assert_eq!(calls[0]["input"], "make deploy", "{coding}");
    }
}

/// The response of the test above, compressed with Brotli.
const BROTLI_CALL: &[u8] = &[
    27, 164, 0, 128, 44, 14, 236, 134, 239, 205, 240, 211, 55, 53, 224, 236, 156, 87, 132, 82, 100,
    107, 175, 200, 230, 42, 166, 14, 100, 155, 215, 191, 235, 236, 122, 68, 66, 42, 208, 148, 234,
    169, 117, 88, 186, 250, 234, 228, 196, 15, 102, 21, 180, 5, 248, 45, 172, 121, 129, 104, 26,
    216, 198, 40, 29, 24, 226, 139, 76, 241, 185, 5, 226, 14, 33, 239, 151, 65, 88, 28, 56, 233,
    14, 49, 73, 97, 163, 243, 149, 47, 101, 89, 187, 232, 134, 173, 177, 155, 158, 100, 150, 194,
    14, 134, 240, 191, 110, 86, 158, 159, 127, 185, 47, 75, 160, 18, 150, 54, 100, 227,
];

#[tokio::test]
async fn a_batch_with_a_subagent_times_out_without_activity() {
    let upstream = MockServer::start();
    let proxy = program("subagent-timeout").proxy(&upstream.url);
    let calls = |tools: &[&str]| {
        let block =
            |tool: &&str| json!({ "type": "tool_use", "id": tool, "name": tool, "input": {} });
        let blocks: Vec<Value> = tools.iter().map(block).collect();
        Reply::json(&json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": blocks, "stop_reason": "tool_use",
        }))
    };
    for (session, tools) in [
        ("agent", &["Task", "Bash"][..]),
        ("question", &["AskUserQuestion", "Task"]),
    ] {
        upstream.enqueue(calls(tools));
        let conversation = Conversation::new(Api::Anthropic, false, session);
        conversation.send(&proxy).await;
    }
    // The subagent sends a separate request.
    let mut subagent = Conversation::new(Api::Anthropic, false, "agent");
    subagent.rows.clear();
    subagent.add_user_message("Find the tables.");
    upstream.enqueue(subagent.call_reply());
    subagent.send(&proxy).await;
    let dir = proxy.stop();
    let waiting: Vec<Value> = session_calls(&dir, "agent")
        .into_iter()
        .filter(|call| call["subagent"].is_null())
        .collect();
    assert_eq!(waiting.len(), 2);
    for call in waiting {
        assert_eq!(call["timeoutMs"], 1_800_000, "{call}");
        assert!(call["lastProgressAt"].is_string(), "{call}");
    }
    for call in session_calls(&dir, "question") {
        assert_eq!(call["staleAt"], Value::Null, "{call}");
    }
}

#[tokio::test]
async fn an_exit_code_in_the_output_of_codex_is_a_failure() {
    let upstream = MockServer::start();
    let proxy = program("exit-code").proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Responses, false, "s");
    upstream.enqueue(conversation.call_reply());
    conversation.send(&proxy).await;
    let output =
        "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nno rule";
    let (call, result) = conversation.call_and_result("call_x", "make", output);
    conversation.rows.extend([call, result]);
    upstream.enqueue(conversation.text_reply("No."));
    conversation.send(&proxy).await;
    let calls = session_calls(&proxy.stop(), "s");
    assert_eq!(calls[0]["status"], "failed", "{calls:?}");
}

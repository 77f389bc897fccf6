//! Escalation of a looping turn: nudge, reminder and text only.

use onward_testbed::mock_server::{MockServer, Reply, ReplyBody};
use serde_json::json;

use crate::conversation::{ALL_APIS, Api, Conversation};
use crate::messages::{is_reminder, max_steps_reminder, nudge, user_warning};
use crate::program;

#[tokio::test]
async fn nudges_a_looping_turn_and_then_requires_a_text_answer() {
    let upstream = MockServer::start();
    let proxy = program("escalation").proxy(&upstream.url);
    for api in ALL_APIS {
        for streaming in [false, true] {
            let mut conversation =
                Conversation::new(api, streaming, &format!("{api:?}-{streaming}"));
            for idle in 0..8 {
                upstream.enqueue(conversation.call_reply());
                let response = conversation.send(&proxy).await;
                assert!(response.status.is_success());
                let received = upstream.last_request();
                if idle == 4 {
                    assert_eq!(conversation.injected_text(&received.json()), nudge(4));
                    assert_eq!(received.json()["tools"], conversation.request()["tools"]);
                    assert!(!conversation.forbids_tools(&received.json()), "{api:?}");
                } else {
                    assert_eq!(
                        received.body,
                        conversation.request().to_string().as_bytes(),
                        "{idle}"
                    );
                }
                conversation.add_step("true", "");
            }
            let reply = conversation.text_reply("High tide is at noon.");
            let expected = reply.bytes();
            upstream.enqueue(reply);
            let before = upstream.request_count();
            let response = conversation.send(&proxy).await;
            let received = upstream.last_request().json();
            assert!(conversation.forbids_tools(&received), "{api:?}: {received}");
            let text = conversation.injected_text(&received);
            assert!(is_reminder(&text, 8), "{text}");
            // A text answer is relayed unchanged, without a second request.
            assert_eq!(response.body, expected);
            assert_eq!(
                conversation.response_text(&response),
                "High tide is at noon."
            );
            assert_eq!(upstream.request_count(), before + 1);
        }
    }
}

#[tokio::test]
async fn changes_only_the_reminder_and_the_tool_choice() {
    let upstream = MockServer::start();
    let proxy = program("kept").proxy(&upstream.url);
    for api in ALL_APIS {
        let mut conversation = Conversation::new(api, false, &format!("{api:?}"));
        conversation.run_idle_steps(&proxy, &upstream, 8).await;
        upstream.enqueue(conversation.text_reply("So."));
        conversation.send(&proxy).await;
        let received = upstream.last_request();
        let text = std::str::from_utf8(&received.body).expect("UTF-8 body");
        // Removing the additions must restore the original.
        let injected = json!(conversation.injected_text(&received.json())).to_string();
        let (row, choice) = match api {
            Api::Anthropic => (
                format!(r#",{{"type":"text","text":{injected}}}"#),
                (r#","tool_choice":{"type":"none"}"#, ""),
            ),
            Api::Chat => (
                format!(r#",{{"role":"user","content":{injected}}}"#),
                (r#""tool_choice":"none""#, r#""tool_choice":"auto""#),
            ),
            Api::Responses => (
                format!(
                    r#",{{"type":"message","role":"user","content":[{{"type":"input_text","text":{injected}}}]}}"#
                ),
                (r#""tool_choice":"none""#, r#""tool_choice":"auto""#),
            ),
        };
        assert!(text.contains(&row) && text.contains(choice.0), "{text}");
        let without = text.replace(&row, "").replace(choice.0, choice.1);
        assert_eq!(without, conversation.request().to_string());
    }
}

#[tokio::test]
async fn sends_the_same_bytes_for_a_retried_request() {
    let upstream = MockServer::start();
    let proxy = program("again").proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Anthropic, false, "s");
    for steps in [4, 4] {
        conversation.run_idle_steps(&proxy, &upstream, steps).await;
        let mut bodies = Vec::new();
        for _ in 0..3 {
            upstream.enqueue(Reply::new("application/json", "{}").with_status(529));
            conversation.send(&proxy).await;
            bodies.push(upstream.last_request().body);
        }
        assert_ne!(bodies[0], conversation.request().to_string().as_bytes());
        assert!(bodies.iter().all(|body| *body == bodies[0]));
    }
}

#[tokio::test]
async fn a_text_answer_resets_the_escalation() {
    let upstream = MockServer::start();
    let proxy = program("after").proxy(&upstream.url);
    for api in ALL_APIS {
        let mut conversation = Conversation::new(api, true, &format!("{api:?}"));
        conversation.run_idle_steps(&proxy, &upstream, 8).await;
        upstream.enqueue(conversation.text_reply("I do not know."));
        conversation.send(&proxy).await;
        conversation.add_assistant_message("I do not know.");
        conversation.add_user_message("Look at the table, then.");
        for _ in 0..4 {
            upstream.enqueue(conversation.call_reply());
            conversation.send(&proxy).await;
            assert_eq!(
                upstream.last_request().body,
                conversation.request().to_string().as_bytes()
            );
            conversation.add_step("true", "");
        }
    }
}

#[tokio::test]
async fn detects_a_loop_in_the_first_request_of_a_turn() {
    let upstream = MockServer::start();
    let proxy = program("first-request").proxy(&upstream.url);
    for api in ALL_APIS {
        let mut conversation = Conversation::new(api, false, &format!("{api:?}"));
        for _ in 0..9 {
            conversation.add_step("true", "");
        }
        upstream.enqueue(conversation.text_reply("Noon."));
        conversation.send(&proxy).await;
        let received = upstream.last_request().json();
        assert!(conversation.forbids_tools(&received), "{api:?}");
        let text = conversation.injected_text(&received);
        assert!(is_reminder(&text, 9), "{text}");
    }
}

#[tokio::test]
async fn a_restarted_conversation_is_a_new_turn() {
    let upstream = MockServer::start();
    let proxy = program("restarted").proxy(&upstream.url);
    for api in ALL_APIS {
        // The user abandons the first conversation while it is stuck.
        let mut conversation = Conversation::new(api, false, &format!("{api:?}"));
        conversation.run_idle_steps(&proxy, &upstream, 8).await;
        upstream.enqueue(Reply::new("application/json", "{}").with_status(529));
        conversation.send(&proxy).await;
        assert!(conversation.forbids_tools(&upstream.last_request().json()));
        let mut conversation = Conversation::new(api, false, &format!("{api:?}"));
        for _ in 0..4 {
            upstream.enqueue(conversation.call_reply());
            conversation.send(&proxy).await;
            assert_eq!(
                upstream.last_request().body,
                conversation.request().to_string().as_bytes()
            );
            conversation.add_step("true", "");
        }
    }
}

#[tokio::test]
async fn progress_resets_the_idle_count() {
    let upstream = MockServer::start();
    let proxy = program("progress").proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Chat, false, "s");
    conversation.run_idle_steps(&proxy, &upstream, 7).await;
    let output = "High tide at Dover is at 11:04 and again at 23:27 on that day.";
    conversation
        .run_step(&proxy, &upstream, "cat dover.md", output)
        .await;
    for _ in 0..4 {
        upstream.enqueue(conversation.call_reply());
        conversation.send(&proxy).await;
        assert_eq!(
            upstream.last_request().body,
            conversation.request().to_string().as_bytes()
        );
        conversation.add_step("true", "");
    }
}

#[tokio::test]
async fn on_stall_limits_the_escalation() {
    for (on_stall, nudges, reminds) in [
        ("nudge", true, true),
        ("warn", false, false),
        ("off", false, false),
    ] {
        let upstream = MockServer::start();
        let dir = program(&format!("on-{on_stall}"))
            .with_config(&format!("[loop_control]\non_stall = \"{on_stall}\""));
        let proxy = dir.proxy(&upstream.url);
        let mut conversation = Conversation::new(Api::Responses, false, "s");
        for idle in 0..=9 {
            upstream.enqueue(conversation.call_reply());
            conversation.send(&proxy).await;
            let received = upstream.last_request();
            let expected = (idle == 4 && nudges) || (idle == 8 && reminds);
            let is_modified = received.body != conversation.request().to_string().as_bytes();
            assert_eq!(is_modified, expected, "{on_stall}, {idle}");
            assert_eq!(received.json()["tool_choice"], "auto");
            conversation.add_step("true", "");
        }
        let dir = proxy.stop();
        let log = dir.log();
        assert_eq!(log.contains(&user_warning(8)), on_stall == "warn", "{log}");
        let is_recorded = dir.run(&["session", "show", "s"]).code == Some(0);
        assert_eq!(is_recorded, on_stall != "off");
    }
}

#[tokio::test]
async fn applies_the_configured_step_limit() {
    let upstream = MockServer::start();
    let dir = program("step-limit").with_config("[loop_control]\nmax_steps_per_turn = 3");
    let proxy = dir.proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Anthropic, false, "s");
    for step in 0..3 {
        let output = format!(
            "{step}: {}",
            "text that is new in this session ".repeat(step + 2)
        );
        conversation
            .run_step(&proxy, &upstream, &format!("cat {step}"), &output)
            .await;
    }
    upstream.enqueue(conversation.text_reply("So far."));
    conversation.send(&proxy).await;
    let received = upstream.last_request().json();
    assert!(conversation.forbids_tools(&received));
    assert_eq!(conversation.injected_text(&received), max_steps_reminder(3));
}

#[tokio::test]
async fn forwards_a_request_without_tools_unchanged() {
    let upstream = MockServer::start();
    let proxy = program("no-tools").proxy(&upstream.url);
    for api in ALL_APIS {
        let mut conversation = Conversation::new(api, false, &format!("{api:?}"));
        conversation.run_idle_steps(&proxy, &upstream, 8).await;
        for key in ["tools", "tool_choice"] {
            let mut request = conversation.request();
            match key {
                "tools" => {
                    request.as_object_mut().unwrap().remove("tools");
                    request.as_object_mut().unwrap().remove("tool_choice");
                }
                _ => request[key] = json!("none"),
            }
            let headers = [("x-session-id", conversation.session.as_str())];
            proxy
                .send_with(conversation.path(), &headers, request.to_string())
                .await;
            assert_eq!(upstream.last_request().body, request.to_string().as_bytes());
        }
    }
}

#[tokio::test]
async fn detects_a_loop_in_a_conversation_stored_by_the_server() {
    let upstream = MockServer::start();
    let proxy = program("stored").proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Responses, true, "unused");
    let mut previous = None;
    let mut last = json!(null);
    for step in 0..9 {
        let mut request = conversation.request();
        if let Some(previous) = &previous {
            request["previous_response_id"] = json!(previous);
        }
        let id = format!("resp_{step}");
        let mut reply = match step {
            8 => conversation.text_reply("Noon."),
            _ => conversation.call_reply(),
        };
        let text = String::from_utf8(reply.bytes())
            .expect("UTF-8 body")
            .replace("resp_1", &id);
        reply.body = ReplyBody::Complete(text.into_bytes());
        upstream.enqueue(reply);
        // Without a session id, the proxy identifies the conversation by the previous response.
        let response = proxy.send(conversation.path(), request.to_string()).await;
        assert!(response.status.is_success());
        last = upstream.last_request().json();
        previous = Some(id);
        let (_, result) = conversation.call_and_result("call_x", "true", "");
        conversation.rows = vec![result];
    }
    assert!(conversation.forbids_tools(&last), "{last}");
    // The request does not contain the call, so the proxy takes it from the response.
    let text = conversation.injected_text(&last);
    assert!(text.contains("Bash `true`"), "{text}");
}

//! Servers that call tools although the request forbids them.

use onward_testbed::Server;
use onward_testbed::mock_server::{MockServer, Reply};
use serde_json::Value;

use crate::conversation::{ALL_APIS, Api, Conversation};
use crate::messages::{final_message, is_reminder};
use crate::program;

/// A conversation whose next response must be text.
async fn stuck(
    proxy: &Server,
    upstream: &MockServer,
    api: Api,
    streaming: bool,
    name: &str,
) -> Conversation {
    let mut conversation =
        Conversation::new(api, streaming, &format!("{api:?}-{streaming}-{name}"));
    conversation.run_idle_steps(proxy, upstream, 8).await;
    conversation
}

/// Asserts that a request has no tools, and contains the calls as text.
#[track_caller]
fn assert_no_tools(conversation: &Conversation, request: &Value) {
    for key in ["tools", "tool_choice", "parallel_tool_calls"] {
        assert!(request.get(key).is_none(), "{key}: {request}");
    }
    let text = request.to_string();
    for marker in [
        "tool_use",
        "tool_result",
        "tool_calls",
        "function_call",
        "\"role\":\"tool\"",
    ] {
        assert!(!text.contains(marker), "{marker}: {request}");
    }
    assert!(text.contains("Bash"), "{request}");
    assert!(text.contains("When is high tide?") && text.contains("You are an agent."));
    assert_eq!(request["stream"], conversation.streaming);
    let rows = match conversation.api {
        Api::Anthropic | Api::Chat => &request["messages"],
        Api::Responses => &request["input"],
    };
    let last = rows.as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    let text = match conversation.api {
        Api::Anthropic => &last["content"].as_array().unwrap().last().unwrap()["text"],
        Api::Chat => &last["content"],
        Api::Responses => &last["content"][0]["text"],
    };
    // A row of Chat also contains the last result.
    let text = text.as_str().unwrap().rsplit("\n\n").next().unwrap();
    assert!(is_reminder(text, 8), "{last}");
}

#[tokio::test]
async fn repeats_the_request_without_tools_after_a_forbidden_call() {
    let upstream = MockServer::start();
    let proxy = program("ignored").proxy(&upstream.url);
    for api in ALL_APIS {
        for streaming in [false, true] {
            let conversation = stuck(&proxy, &upstream, api, streaming, "once").await;
            upstream.enqueue(conversation.call_reply());
            upstream.enqueue(conversation.text_reply("High tide is at noon."));
            let before = upstream.request_count();
            let response = conversation.send(&proxy).await;
            assert_eq!(
                conversation.response_text(&response),
                "High tide is at noon.",
                "{api:?}"
            );
            assert_eq!(upstream.request_count(), before + 2);
            let received = upstream.requests();
            assert!(conversation.forbids_tools(&received[before].json()));
            assert_no_tools(&conversation, &received[before + 1].json());
            assert_eq!(received[before].path, received[before + 1].path);
            assert_eq!(
                received[before].headers["x-session-id"],
                conversation.session.as_str()
            );
            assert_eq!(
                received[before + 1].headers["x-session-id"],
                conversation.session.as_str()
            );
        }
    }
}

#[tokio::test]
async fn ends_the_turn_with_a_final_message_after_a_second_forbidden_call() {
    let upstream = MockServer::start();
    let proxy = program("twice").proxy(&upstream.url);
    for api in ALL_APIS {
        for streaming in [false, true] {
            let mut conversation = stuck(&proxy, &upstream, api, streaming, "twice").await;
            upstream.enqueue(conversation.call_reply());
            upstream.enqueue(conversation.call_reply());
            let before = upstream.request_count();
            let response = conversation.send(&proxy).await;
            let text = conversation.response_text(&response);
            assert_eq!(text, final_message(8));
            assert_eq!(upstream.request_count(), before + 2);
            // The next turn is forwarded unchanged.
            conversation.add_assistant_message(&text);
            conversation.add_user_message("Continue.");
            upstream.enqueue(conversation.call_reply());
            conversation.send(&proxy).await;
            assert_eq!(
                upstream.last_request().body,
                conversation.request().to_string().as_bytes()
            );
        }
    }
}

#[tokio::test]
async fn appends_the_second_response_to_the_text_before_the_call() {
    let upstream = MockServer::start();
    let proxy = program("text").proxy(&upstream.url);
    for api in ALL_APIS {
        let conversation = stuck(&proxy, &upstream, api, true, "text").await;
        upstream.enqueue(conversation.reply(Some("Let me look. "), true));
        upstream.enqueue(conversation.text_reply("It is at noon."));
        let response = conversation.send(&proxy).await;
        assert_eq!(
            conversation.response_text(&response),
            "Let me look. It is at noon.",
            "{api:?}"
        );

        // Without streaming, the second response replaces the first.
        let conversation = stuck(&proxy, &upstream, api, false, "text").await;
        upstream.enqueue(conversation.reply(Some("Let me look. "), true));
        upstream.enqueue(conversation.text_reply("It is at noon."));
        let response = conversation.send(&proxy).await;
        assert_eq!(
            conversation.response_text(&response),
            "It is at noon.",
            "{api:?}"
        );
    }
}

#[tokio::test]
async fn appends_the_final_message_to_the_text_before_the_second_call() {
    let upstream = MockServer::start();
    let proxy = program("text-twice").proxy(&upstream.url);
    for api in ALL_APIS {
        let conversation = stuck(&proxy, &upstream, api, true, "both").await;
        upstream.enqueue(conversation.call_reply());
        upstream.enqueue(conversation.reply(Some("Hm."), true));
        let response = conversation.send(&proxy).await;
        let text = conversation.response_text(&response);
        assert_eq!(text, format!("Hm.\n\n{}", final_message(8)), "{api:?}");
    }
}

#[tokio::test]
async fn ends_the_turn_with_a_final_message_if_the_second_request_fails() {
    let upstream = MockServer::start();
    let proxy = program("second-fails").proxy(&upstream.url);
    for (number, second) in [
        Reply::new("application/json", "{\"error\":{}}").with_status(500),
        Reply::new("application/json", "not JSON"),
        Reply::new("text/html", "<p>"),
    ]
    .into_iter()
    .enumerate()
    {
        for streaming in [false, true] {
            let name = format!("{number}");
            let conversation = stuck(&proxy, &upstream, Api::Anthropic, streaming, &name).await;
            upstream.enqueue(conversation.call_reply());
            let kind = second.headers[0].1.clone();
            let second = Reply::new(&kind, second.bytes()).with_status(second.status);
            upstream.enqueue(second);
            let response = conversation.send(&proxy).await;
            assert_eq!(conversation.response_text(&response), final_message(8));
        }
    }
}

fn rejection(error: &str) -> Reply {
    Reply::new("application/json", format!("{{\"error\":\"{error}\"}}")).with_status(400)
}

#[tokio::test]
async fn repeats_the_request_without_tools_if_the_api_rejects_it() {
    let upstream = MockServer::start();
    let proxy = program("rejected").proxy(&upstream.url);
    for api in ALL_APIS {
        for streaming in [false, true] {
            let conversation = stuck(&proxy, &upstream, api, streaming, "rejected").await;
            upstream.enqueue(rejection("tool_choice"));
            upstream.enqueue(conversation.text_reply("High tide is at noon."));
            let before = upstream.request_count();
            let response = conversation.send(&proxy).await;
            assert_eq!(
                conversation.response_text(&response),
                "High tide is at noon.",
                "{api:?} {streaming}"
            );
            let received = upstream.requests();
            assert_eq!(received.len(), before + 2);
            assert!(conversation.forbids_tools(&received[before].json()));
            assert_no_tools(&conversation, &received[before + 1].json());
        }
    }
}

#[tokio::test]
async fn ends_the_turn_if_the_api_rejects_both_requests() {
    let upstream = MockServer::start();
    let proxy = program("rejected-twice").proxy(&upstream.url);
    for api in ALL_APIS {
        for streaming in [false, true] {
            let conversation = stuck(&proxy, &upstream, api, streaming, "twice").await;
            upstream.enqueue(rejection("tool_choice"));
            upstream.enqueue(rejection("tools are required"));
            let response = conversation.send(&proxy).await;
            assert!(response.status.is_success(), "{response:?}");
            assert_eq!(
                conversation.response_text(&response),
                final_message(8),
                "{api:?} {streaming}"
            );
        }
    }
}

#[tokio::test]
async fn relays_an_error_that_does_not_concern_tools() {
    let upstream = MockServer::start();
    let proxy = program("rejected-length").proxy(&upstream.url);
    let conversation = stuck(&proxy, &upstream, Api::Anthropic, true, "length").await;
    upstream.enqueue(rejection("prompt is too long"));
    upstream.enqueue(rejection("prompt is too long"));
    let response = conversation.send(&proxy).await;
    assert_eq!(response.status.as_u16(), 400);
    assert_eq!(response.body, rejection("prompt is too long").bytes());
}

#[tokio::test]
async fn stays_text_only_after_an_api_error() {
    let upstream = MockServer::start();
    let proxy = program("overloaded").proxy(&upstream.url);
    let conversation = stuck(&proxy, &upstream, Api::Anthropic, true, "529").await;
    let error = "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}";
    upstream.enqueue(Reply::new("application/json", error).with_status(529));
    let response = conversation.send(&proxy).await;
    assert_eq!(
        (response.status.as_u16(), response.body.as_slice()),
        (529, error.as_bytes())
    );
    upstream.enqueue(conversation.text_reply("Noon."));
    let response = conversation.send(&proxy).await;
    assert!(
        conversation.forbids_tools(&upstream.last_request().json()),
        "tools were enabled again"
    );
    assert_eq!(conversation.response_text(&response), "Noon.");
}

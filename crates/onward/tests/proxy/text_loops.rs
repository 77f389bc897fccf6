//! Loops in texts: `on_text_loop`.

use onward_core::turn::TextMonitor;
use onward_testbed::mock_server::MockServer;

use crate::conversation::{ALL_APIS, Conversation};
use crate::program;

/// A paragraph that repeats itself within one response.
fn repeated_text() -> String {
    "I will read the tide table once more, to be certain of the time of high water at Dover. "
        .repeat(8)
}

/// The loop as the core finds it in one response.
fn expected_loop(text: &str) -> String {
    TextMonitor::default()
        .observe(text, false)
        .expect("the core finds a loop")
        .to_string()
}

#[tokio::test]
async fn reacts_to_repeated_text_as_configured() {
    let text = repeated_text();
    let expected = expected_loop(&text);
    for (on_text_loop, warns, nudges) in [
        ("warn", true, false),
        ("nudge", true, true),
        ("off", false, false),
    ] {
        let upstream = MockServer::start();
        let dir = program(&format!("text-loop-{on_text_loop}")).with_config(&format!(
            "[loop_control]\non_text_loop = \"{on_text_loop}\""
        ));
        let proxy = dir.proxy(&upstream.url);
        for api in ALL_APIS {
            for streaming in [false, true] {
                let session = format!("{api:?}-{streaming}");
                let mut conversation = Conversation::new(api, streaming, &session);
                upstream.enqueue(conversation.text_reply(&text));
                let response = conversation.send(&proxy).await;
                assert_eq!(conversation.response_text(&response), text, "{session}");
                conversation.add_assistant_message(&text);
                conversation.add_user_message("And?");
                // Only the next request carries the message.
                for is_next in [true, false] {
                    upstream.enqueue(conversation.call_reply());
                    conversation.send(&proxy).await;
                    let received = upstream.last_request();
                    if nudges && is_next {
                        let body = received.json().to_string();
                        assert!(body.contains(&expected), "{session}: {body}");
                    } else {
                        let sent = conversation.request().to_string();
                        assert_eq!(received.body, sent.as_bytes(), "{session}");
                    }
                    conversation.add_step("cat dover.md", "High tide at Dover is at 11:04.");
                }
            }
        }
        let log = proxy.stop().log();
        assert_eq!(log.contains(&expected), warns, "{on_text_loop}: {log}");
    }
}

#[tokio::test]
async fn ignores_text_that_does_not_repeat_itself() {
    let upstream = MockServer::start();
    let dir = program("text-no-loop").with_config("[loop_control]\non_text_loop = \"nudge\"");
    let proxy = dir.proxy(&upstream.url);
    for api in ALL_APIS {
        let mut conversation = Conversation::new(api, true, &format!("{api:?}"));
        let text: String = (0..20)
            .map(|day| format!("On day {day}, high water at Dover is {day} minutes later. "))
            .collect();
        upstream.enqueue(conversation.text_reply(&text));
        conversation.send(&proxy).await;
        conversation.add_assistant_message(&text);
        conversation.add_user_message("And?");
        upstream.enqueue(conversation.text_reply("That is all."));
        conversation.send(&proxy).await;
        let sent = conversation.request().to_string();
        assert_eq!(upstream.last_request().body, sent.as_bytes());
    }
}

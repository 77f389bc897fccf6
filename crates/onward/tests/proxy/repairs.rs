//! Repair of conversations that the API would reject.

use onward_testbed::mock_server::MockServer;
use serde_json::{Value, json};

use crate::conversation::{ALL_APIS, Api, Conversation};
use crate::messages::is_reminder;
use crate::program;

/// The rows of a request without system messages.
fn rows(api: Api, request: &Value) -> Vec<Value> {
    let rows = match api {
        Api::Anthropic | Api::Chat => &request["messages"],
        Api::Responses => &request["input"],
    };
    let rows = rows.as_array().expect("rows is a list").iter();
    rows.filter(|row| row["role"] != "system")
        .cloned()
        .collect()
}

#[tokio::test]
async fn adds_a_result_for_a_call_without_one() {
    let upstream = MockServer::start();
    let proxy = program("dangling").proxy(&upstream.url);
    for api in ALL_APIS {
        let mut conversation = Conversation::new(api, false, &format!("{api:?}"));
        conversation.add_step("make", "ok");
        conversation.rows.pop();
        conversation.add_user_message("Well?");
        conversation.send(&proxy).await;
        let repaired = upstream.last_request();
        let rows = rows(api, &repaired.json());
        let result = match api {
            Api::Anthropic => {
                assert_eq!(rows[2]["content"][0]["type"], "tool_result");
                assert_eq!(rows[2]["content"][0]["is_error"], true);
                assert_eq!(rows[2]["content"][1]["text"], "Well?");
                rows[2]["content"][0].clone()
            }
            Api::Chat => {
                assert_eq!(rows[2]["role"], "tool");
                rows[2].clone()
            }
            Api::Responses => {
                assert_eq!(rows[2]["type"], "function_call_output");
                rows[2].clone()
            }
        };
        assert!(result.to_string().contains("call_1"), "{result}");
        // The repair is deterministic, which keeps prompt caches valid.
        conversation.send(&proxy).await;
        assert_eq!(upstream.last_request().body, repaired.body);
    }
}

#[tokio::test]
async fn converts_a_result_without_a_call_to_text() {
    let upstream = MockServer::start();
    let proxy = program("orphan").proxy(&upstream.url);
    for api in ALL_APIS {
        let mut conversation = Conversation::new(api, false, &format!("{api:?}"));
        conversation.add_step("make", "it is done");
        let call = conversation.rows.len() - 2;
        conversation.rows.remove(call);
        conversation.add_user_message("Well?");
        conversation.send(&proxy).await;
        let text = upstream.last_request().json().to_string();
        for marker in ["tool_result", "function_call_output", "\"role\":\"tool\""] {
            assert!(!text.contains(marker), "{text}");
        }
        assert!(
            text.contains("it is done") && text.contains("call_1"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn leaves_cosmetic_defects_unchanged() {
    let upstream = MockServer::start();
    let proxy = program("cosmetic").proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Anthropic, false, "s");
    conversation.add_user_message("Are you there?");
    conversation.add_assistant_message("Yes.");
    conversation.add_assistant_message("Yes.");
    conversation.add_user_message(" ");
    conversation.send(&proxy).await;
    assert_eq!(
        upstream.last_request().body,
        conversation.request().to_string().as_bytes()
    );
    // Responses accepts results that do not directly follow their calls.
    let mut conversation = Conversation::new(Api::Responses, false, "t");
    conversation.add_step("make", "ok");
    let result = conversation.rows.pop().expect("result row");
    conversation.add_user_message("Quick!");
    conversation.rows.push(result);
    conversation.send(&proxy).await;
    assert_eq!(
        upstream.last_request().body,
        conversation.request().to_string().as_bytes()
    );
}

#[tokio::test]
async fn does_not_repair_results_of_calls_stored_by_the_server() {
    let upstream = MockServer::start();
    let proxy = program("continued").proxy(&upstream.url);
    let request = json!({
        "model": "m", "previous_response_id": "resp_0", "tools": [{ "type": "function", "name": "Bash" }],
        "input": [{ "type": "function_call_output", "call_id": "call_1", "output": "ok" }],
    });
    proxy.send("/v1/responses", request.to_string()).await;
    assert_eq!(upstream.last_request().body, request.to_string().as_bytes());
}

#[tokio::test]
async fn combines_a_repair_with_a_reminder() {
    let upstream = MockServer::start();
    let proxy = program("both").proxy(&upstream.url);
    for api in ALL_APIS {
        let mut conversation = Conversation::new(api, false, &format!("{api:?}"));
        // A call without a result before this turn.
        let (call, _) = conversation.call_and_result("call_dead", "make", "");
        conversation.rows.push(call);
        conversation.add_user_message("And now?");
        conversation.run_idle_steps(&proxy, &upstream, 8).await;
        upstream.enqueue(conversation.text_reply("Noon."));
        conversation.send(&proxy).await;
        let received = upstream.last_request().json();
        assert!(conversation.forbids_tools(&received));
        let text = conversation.injected_text(&received);
        assert!(is_reminder(&text, 8), "{text}");
        // The call and its result.
        assert_eq!(
            received.to_string().matches("call_dead").count(),
            2,
            "{received}"
        );
    }
}

//! Conversations that the API would reject, put right on the way.

use serde_json::{Value, json};

use crate::house::House;
use crate::speech::{ALL, Api, Talk};
use crate::upstream::Upstream;

/// The rows of a request, without the system's.
fn rows(api: Api, request: &Value) -> Vec<Value> {
    let rows = match api {
        Api::Anthropic | Api::Chat => &request["messages"],
        Api::Responses => &request["input"],
    };
    let rows = rows.as_array().expect("rows").iter();
    rows.filter(|row| row["role"] != "system")
        .cloned()
        .collect()
}

#[tokio::test]
async fn a_call_without_a_result_is_given_one() {
    let upstream = Upstream::start().await;
    let proxy = House::new("dangling").proxy(&upstream);
    for api in ALL {
        let mut talk = Talk::new(api, false, &format!("{api:?}"));
        talk.steps("make", "ok");
        talk.rows.pop();
        talk.asks("Well?");
        talk.sends(&proxy).await;
        let repaired = upstream.last();
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
        // The same request is given the same bytes, so that prompt caches hold.
        talk.sends(&proxy).await;
        assert_eq!(upstream.last().body, repaired.body);
    }
}

#[tokio::test]
async fn a_result_without_a_call_becomes_words() {
    let upstream = Upstream::start().await;
    let proxy = House::new("orphan").proxy(&upstream);
    for api in ALL {
        let mut talk = Talk::new(api, false, &format!("{api:?}"));
        talk.steps("make", "it is done");
        let call = talk.rows.len() - 2;
        talk.rows.remove(call);
        talk.asks("Well?");
        talk.sends(&proxy).await;
        let text = upstream.last().json().to_string();
        for gone in ["tool_result", "function_call_output", "\"role\":\"tool\""] {
            assert!(!text.contains(gone), "{text}");
        }
        assert!(
            text.contains("it is done") && text.contains("call_1"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_conversation_that_is_only_untidy_keeps_its_bytes() {
    let upstream = Upstream::start().await;
    let proxy = House::new("untidy").proxy(&upstream);
    let mut talk = Talk::new(Api::Anthropic, false, "s");
    talk.asks("Are you there?");
    talk.says("Yes.");
    talk.says("Yes.");
    talk.asks(" ");
    talk.sends(&proxy).await;
    assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
    // Items of Responses may stand apart from their calls.
    let mut talk = Talk::new(Api::Responses, false, "t");
    talk.steps("make", "ok");
    let result = talk.rows.pop().expect("a result");
    talk.asks("Quick!");
    talk.rows.push(result);
    talk.sends(&proxy).await;
    assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
}

#[tokio::test]
async fn what_the_server_remembers_is_not_missing() {
    let upstream = Upstream::start().await;
    let proxy = House::new("continued").proxy(&upstream);
    let request = json!({
        "model": "m", "previous_response_id": "resp_0", "tools": [{ "type": "function", "name": "Bash" }],
        "input": [{ "type": "function_call_output", "call_id": "call_1", "output": "ok" }],
    });
    proxy.send("/v1/responses", request.to_string()).await;
    assert_eq!(upstream.last().body, request.to_string().as_bytes());
}

#[tokio::test]
async fn a_repair_and_a_reminder_go_together() {
    let upstream = Upstream::start().await;
    let proxy = House::new("both").proxy(&upstream);
    for api in ALL {
        let mut talk = Talk::new(api, false, &format!("{api:?}"));
        // A call that died before this turn began.
        let (call, _) = talk.pair("call_dead", "make", "");
        talk.rows.push(call);
        talk.asks("And now?");
        talk.idles(&proxy, &upstream, 8).await;
        upstream.will(talk.answers("Noon."));
        talk.sends(&proxy).await;
        let seen = upstream.last().json();
        assert!(talk.forbids(&seen));
        assert!(talk.said_last(&seen).contains("In the last 8 steps"));
        let results = seen.to_string().matches("call_dead").count();
        assert_eq!(results, 2, "the call and its result: {seen}");
    }
}

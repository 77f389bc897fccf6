//! Interruption of recorded calls that get no result, with no other process than the proxy.
//!
//! These tests take the grace period of every call, 30 seconds.

use std::time::{Duration, Instant};

use onward_testbed::mock_server::{MockServer, Reply};
use onward_testbed::{Cluster, Program};
use serde_json::{Value, json};

use crate::conversation::{Api, Conversation};
use crate::{program, session_calls};

/// The deadline for the interruption, longer than the grace period.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The interval of checks.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A reply with two tool calls, with timeouts in milliseconds.
fn two_calls(timeouts: [u64; 2]) -> Reply {
    let call = |id: &str, timeout: u64| {
        let input = json!({ "command": format!("deploy {id}"), "timeout": timeout });
        json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input })
    };
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [call("one", timeouts[0]), call("two", timeouts[1])],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": { "input_tokens": 1, "output_tokens": 5 },
    });
    Reply::new("application/json", body.to_string())
}

/// Waits until all calls of the session `s` are interrupted. `onward session show` only reads, so
/// it does not interrupt calls itself.
async fn wait_until_interrupted(dir: &Program, count: usize) -> Vec<Value> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        // The session does not exist until the proxy has written its first event.
        let run = dir.run(&["--json", "session", "show", "s"]);
        let view: Value = serde_json::from_str(&run.stdout).unwrap_or_default();
        let calls = view["calls"].as_array().cloned().unwrap_or_default();
        if calls.len() == count && calls.iter().all(|call| call["status"] == "interrupted") {
            return calls;
        }
        assert!(Instant::now() < deadline, "{calls:?}: {}", dir.log());
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn interrupts_calls_and_accepts_late_results(dir: Program) {
    let upstream = MockServer::start();
    let proxy = dir.proxy(&upstream.url);
    let mut conversation = Conversation::new(Api::Anthropic, false, "s");
    upstream.enqueue(two_calls([1, 2]));
    conversation.send(&proxy).await;
    let calls = wait_until_interrupted(proxy.program(), 2).await;
    for call in &calls {
        assert_eq!(
            (&call["cause"], &call["synthetic"]),
            (&json!("timed_out"), &json!(true))
        );
    }
    let model_message = calls[0]["toldModel"].clone();
    let shown = proxy.program().run_ok(&["session", "show", "s"]);
    assert!(
        shown.contains("deploy one") && shown.contains("deploy two"),
        "{shown}"
    );

    // Late results are forwarded to the model and replace the synthetic ones.
    let (mut call, mut result) = conversation.call_and_result("one", "deploy one", "deployed");
    let (second_call, second_result) =
        conversation.call_and_result("two", "deploy two", "deployed as well");
    let append = |row: &mut Value, other: &Value| {
        let block = other["content"][0].clone();
        let blocks = row["content"].as_array_mut().expect("content is a list");
        blocks.push(block);
    };
    append(&mut call, &second_call);
    append(&mut result, &second_result);
    conversation.rows.extend([call, result]);
    upstream.enqueue(conversation.text_reply("Noon."));
    conversation.send(&proxy).await;
    assert_eq!(
        upstream.last_request().body,
        conversation.request().to_string().as_bytes()
    );
    let calls = session_calls(&proxy.stop(), "s");
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert_eq!(calls[0]["result"], "deployed");
    assert_eq!(calls[1]["result"], "deployed as well");
    for call in &calls {
        assert_eq!(
            (&call["status"], &call["late"], &call["synthetic"]),
            (&json!("completed"), &json!(true), &json!(false))
        );
        assert_eq!(call["toldModel"], model_message, "{call}");
    }
}

#[tokio::test]
async fn parallel_calls_get_the_longest_timeout_of_their_batch() {
    let upstream = MockServer::start();
    let proxy = program("parallel").proxy(&upstream.url);
    let conversation = Conversation::new(Api::Anthropic, false, "s");
    upstream.enqueue(two_calls([1, 600_000]));
    conversation.send(&proxy).await;
    let calls = session_calls(&proxy.stop(), "s");
    let timeouts: Vec<&Value> = calls.iter().map(|call| &call["timeoutMs"]).collect();
    assert_eq!(timeouts, [600_000, 600_000], "{calls:?}");
}

#[tokio::test]
async fn interrupts_calls_after_their_timeout_on_sqlite() {
    interrupts_calls_and_accepts_late_results(program("interrupted")).await;
}

#[tokio::test]
async fn interrupts_calls_after_their_timeout_on_postgresql() {
    let database = Cluster::shared().database();
    let dir = program("interrupted-postgres").with_database(database);
    interrupts_calls_and_accepts_late_results(dir).await;
}

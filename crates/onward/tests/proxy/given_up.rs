//! A call that the proxy recorded and that nobody answers is given up, with nothing running but the
//! proxy. It takes the grace that every call has, half a minute.

use std::process::Stdio;
use std::time::Duration;

use onward_testbed::Cluster;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::house::{House, Proxy};
use crate::speech::{Api, Talk};
use crate::upstream::{Reply, Upstream};

/// Longer than the grace, and than anything else takes.
const PATIENCE: Duration = Duration::from_secs(180);

/// An answer that calls two tools: one whose own timeout is over at once, and one with an hour.
fn calling() -> Reply {
    let call = |id: &str, timeout: u64| {
        let input = json!({ "command": format!("deploy {id}"), "timeout": timeout });
        json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input })
    };
    let whole = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [call("short", 1), call("long", 3_600_000)],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": { "input_tokens": 1, "output_tokens": 5 },
    });
    Reply::of("application/json", whole.to_string())
}

/// Waits until the log of the proxy says something.
async fn says(proxy: &Proxy, words: &str) {
    let mut tail = tokio::process::Command::new("tail")
        .args(["-n", "+1", "-f"])
        .arg(proxy.house().folder.join("stderr"))
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("tail runs");
    let mut lines = BufReader::new(tail.stdout.take().expect("it is piped")).lines();
    let heard = async {
        while let Some(line) = lines.next_line().await.expect("it can be read") {
            if line.contains(words) {
                return;
            }
        }
    };
    let heard = tokio::time::timeout(PATIENCE, heard).await;
    assert!(heard.is_ok(), "{}", proxy.house().told());
}

async fn given_up(house: House) {
    let upstream = Upstream::start().await;
    let proxy = house.proxy(&upstream);
    let mut talk = Talk::new(Api::Anthropic, false, "s");
    upstream.will(calling());
    talk.sends(&proxy).await;
    says(&proxy, "the sweep gave up calls past their time").await;
    let calls = proxy.house().calls("s");
    assert_eq!(calls.len(), 2, "{calls:?}");
    let short = &calls[0];
    assert_eq!(
        (&short["callId"], &short["status"], &short["cause"]),
        (&json!("short"), &json!("interrupted"), &json!("timed_out"))
    );
    assert_eq!(short["synthetic"], true, "{short}");
    assert_eq!(
        calls[1]["status"], "running",
        "it has its own time: {calls:?}"
    );
    let told = short["toldModel"].clone();

    // It answers after all: the model gets that very result, and people see it in place of the other.
    let (mut call, mut result) = talk.pair("short", "deploy short", "deployed");
    let (other, answer) = talk.pair("long", "deploy long", "deployed as well");
    let blocks = |row: &mut serde_json::Value, more: &serde_json::Value| {
        let more = more["content"][0].clone();
        row["content"].as_array_mut().expect("blocks").push(more);
    };
    blocks(&mut call, &other);
    blocks(&mut result, &answer);
    talk.rows.extend([call, result]);
    upstream.will(talk.answers("Noon."));
    talk.sends(&proxy).await;
    assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
    let calls = proxy.stop().calls("s");
    assert_eq!(calls.len(), 2, "{calls:?}");
    let short = &calls[0];
    assert_eq!(
        (&short["status"], &short["late"], &short["result"]),
        (&json!("completed"), &json!(true), &json!("deployed"))
    );
    assert_eq!(short["toldModel"], told, "{short}");
    assert_eq!(
        (&calls[1]["status"], &calls[1]["late"]),
        (&json!("completed"), &json!(false))
    );
}

#[tokio::test]
async fn a_call_past_its_time_is_given_up_with_only_the_proxy_running_on_a_file() {
    given_up(House::new("given-up")).await;
}

#[tokio::test]
async fn a_call_past_its_time_is_given_up_with_only_the_proxy_running_on_postgresql() {
    let database = Cluster::shared().database();
    given_up(House::new("given-up-postgres").on(database)).await;
}

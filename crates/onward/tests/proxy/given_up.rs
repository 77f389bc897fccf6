//! A call that the proxy recorded and that nobody answers is given up, with nothing running but the
//! proxy. It takes the grace that every call has, half a minute.

use std::process::Stdio;
use std::time::Duration;

use onward_testbed::Cluster;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::house::{House, Proxy};
use crate::speech::{Api, Talk};
use crate::upstream::{Reply, Upstream};

/// Longer than the grace, and than anything else takes.
const PATIENCE: Duration = Duration::from_secs(180);

/// An answer that calls two tools, with timeouts of their own in milliseconds.
fn calling(timeouts: [u64; 2]) -> Reply {
    let call = |id: &str, timeout: u64| {
        let input = json!({ "command": format!("deploy {id}"), "timeout": timeout });
        json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input })
    };
    let whole = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [call("one", timeouts[0]), call("two", timeouts[1])],
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
    upstream.will(calling([1, 2]));
    talk.sends(&proxy).await;
    says(&proxy, "the sweep gave up calls past their time").await;
    let calls = proxy.house().calls("s");
    assert_eq!(calls.len(), 2, "{calls:?}");
    for call in &calls {
        assert_eq!(
            (&call["status"], &call["cause"], &call["synthetic"]),
            (&json!("interrupted"), &json!("timed_out"), &json!(true))
        );
    }
    let told = calls[0]["toldModel"].clone();
    let shown = proxy.house().run(&["session", "show", "s"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let words = ": no answer came in time; it may still be running";
    assert_eq!(shown.matches(words).count(), 2, "{shown}");

    // They answer after all: the model gets these very results, and people see them in place of the others.
    let (mut call, mut result) = talk.pair("one", "deploy one", "deployed");
    let (other, answer) = talk.pair("two", "deploy two", "deployed as well");
    let add = |row: &mut Value, more: &Value| {
        let more = more["content"][0].clone();
        row["content"].as_array_mut().expect("blocks").push(more);
    };
    add(&mut call, &other);
    add(&mut result, &answer);
    talk.rows.extend([call, result]);
    upstream.will(talk.answers("Noon."));
    talk.sends(&proxy).await;
    assert_eq!(upstream.last().body, talk.request().to_string().as_bytes());
    let calls = proxy.stop().calls("s");
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert_eq!(calls[0]["result"], "deployed");
    assert_eq!(calls[1]["result"], "deployed as well");
    for call in &calls {
        assert_eq!(
            (&call["status"], &call["late"], &call["synthetic"]),
            (&json!("completed"), &json!(true), &json!(false))
        );
        assert_eq!(call["toldModel"], told, "what was said before is kept");
    }
}

#[tokio::test]
async fn a_fast_call_has_the_time_of_the_slow_one_beside_it_since_both_are_answered_together() {
    let upstream = Upstream::start().await;
    let proxy = House::new("together").proxy(&upstream);
    let talk = Talk::new(Api::Anthropic, false, "s");
    upstream.will(calling([1, 600_000]));
    talk.sends(&proxy).await;
    let calls = proxy.stop().calls("s");
    let limits: Vec<&Value> = calls.iter().map(|call| &call["timeoutMs"]).collect();
    assert_eq!(limits, [600_000, 600_000], "{calls:?}");
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

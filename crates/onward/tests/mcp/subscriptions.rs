//! Resource subscriptions: changes by this and other processes notify exactly the subscribers.

use onward_engine::machine;
use onward_engine::session::HookSource;
use onward_engine::tool_calls::{InitialState, NewCall};
use onward_testbed::mcp_client::{Client, Era};
use onward_testbed::{Program, ToolProcess};
use serde_json::{Value, json};

use crate::engine::with_engine;
use crate::fixtures;
use crate::program;

const UPDATED: &str = "notifications/resources/updated";

/// Waits for the next update. Returns its URI.
fn next_update(client: &mut Client) -> String {
    let updated = client.notification(UPDATED);
    updated["params"]["uri"].as_str().expect("URI").to_owned()
}

/// Discards received updates.
fn discard_updates(client: &mut Client, uri: &str) {
    client
        .notifications
        .retain(|message| message["params"]["uri"] != uri);
}

#[test]
fn a_handshake_client_is_notified_of_its_subscriptions() {
    for dir in [program(), program().on_postgres()] {
        let mut client = Client::start(&dir, Era::Handshake);
        let (one, other) = (
            fixtures::create_plan(&mut client, 9),
            fixtures::create_plan(&mut client, 9),
        );
        let uri = format!("onward://plan/{one}");
        let response = client.request("resources/subscribe", json!({ "uri": uri }));
        assert_eq!(response["result"], json!({}), "{response}");
        fixtures::claim_step(&mut client, &one);
        assert_eq!(next_update(&mut client), uri);
        fixtures::claim_step(&mut client, &other);
        fixtures::claim_step(&mut client, &one);
        assert_eq!(next_update(&mut client), uri);
        let response = client.request("resources/unsubscribe", json!({ "uri": uri }));
        assert_eq!(response["result"], json!({}));
        discard_updates(&mut client, &uri);
        fixtures::claim_step(&mut client, &one);
        // Only the new subscription causes notifications.
        client.request("resources/subscribe", json!({ "uri": "onward://plans" }));
        fixtures::claim_step(&mut client, &one);
        assert_eq!(next_update(&mut client), "onward://plans");
        let left: Vec<&Value> = client
            .notifications
            .iter()
            .filter(|message| message["params"]["uri"] != "onward://plans")
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Changes by this process are published, and on SQLite a poll finds them again. A change by another
/// process makes the poll certain: its notification comes last.
#[test]
fn a_subscriber_is_notified_once_per_change() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let (plan, last) = (
        fixtures::create_plan(&mut client, 9),
        fixtures::create_plan(&mut client, 1),
    );
    let (uri, last_uri) = (
        format!("onward://plan/{plan}"),
        format!("onward://plan/{last}"),
    );
    for uri in [&uri, &last_uri] {
        client.request("resources/subscribe", json!({ "uri": uri }));
    }
    let (step, _) = fixtures::claim_step(&mut client, &plan);
    let submit = json!({
        "stepId": step, "resultSummary": "done", "claimNext": true,
    });
    client.call("submit_step_result", submit);
    fixtures::claim_step(&mut client, &plan);
    dir.run_ok(&["plan", "abandon", &last, "--reason", "enough"]);
    let mut updates = Vec::new();
    loop {
        let update = next_update(&mut client);
        if update == last_uri {
            break;
        }
        updates.push(update);
    }
    assert_eq!(updates, [uri.clone(), uri.clone(), uri]);
}

#[test]
fn a_stateless_client_listens() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut client, 9);
    let audit = format!("onward://plan/{plan}/audit");
    let id = client.send(
        "subscriptions/listen",
        json!({ "notifications": {
            "resourceSubscriptions": [audit, "onward://nothing"],
            "toolsListChanged": true,
        } }),
    );
    let accepted = client.notification("notifications/subscriptions/acknowledged");
    let accepted = &accepted["params"]["notifications"];
    assert_eq!(accepted["resourceSubscriptions"], json!([audit]));
    assert!(accepted.get("toolsListChanged").is_none(), "{accepted}");
    fixtures::claim_step(&mut client, &plan);
    let updated = client.notification(UPDATED);
    assert_eq!(updated["params"]["uri"], audit);
    let subscription = &updated["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*subscription, json!(id));
    // Cancelling ends the subscription and nothing else.
    client.send_message(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": id },
    }));
    fixtures::claim_step(&mut client, &plan);
    // An open subscription does not delay shutdown.
    let other = client.send(
        "subscriptions/listen",
        json!({ "notifications": { "resourceSubscriptions": ["onward://plans"] } }),
    );
    client.notification("notifications/subscriptions/acknowledged");
    client.close_input();
    let rest = client.remaining();
    assert!(rest.iter().any(|line| line["id"] == other), "{rest:?}");
    assert!(client.wait().success());
}

#[test]
fn notifies_of_changes_by_another_process() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    let plan = fixtures::create_plan(&mut client, 1);
    let uri = format!("onward://plan/{plan}");
    client.request("resources/subscribe", json!({ "uri": uri }));
    dir.run_ok(&["plan", "abandon", &plan, "--reason", "enough"]);
    loop {
        assert_eq!(next_update(&mut client), uri);
        let status = client.call("get_plan_status", json!({ "planId": plan }));
        if status["status"] == "failed" {
            break;
        }
    }
}

#[test]
fn rejects_subscriptions_to_unknown_resources() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Handshake);
    for uri in [
        "onward://plan/00000000-0000-4000-8000-000000000000",
        "onward://nothing",
    ] {
        let response = client.request("resources/subscribe", json!({ "uri": uri }));
        assert_eq!(response["error"]["code"], -32002, "{response}");
    }
    // Each era has its own subscription method.
    let response = client.request("subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(response["error"]["code"], -32601);
    let mut client = Client::start(&dir, Era::Stateless);
    let response = client.request("resources/subscribe", json!({ "uri": "onward://plans" }));
    assert_eq!(response["error"]["code"], -32601);
}

/// Records a running call of a real process, in a session whose id needs percent-encoding.
fn recorded_tool(dir: &Program) -> ToolProcess {
    let tool = ToolProcess::start();
    let source = HookSource {
        session: "a b/1".to_owned(),
        agent: "harness".to_owned(),
        ..HookSource::default()
    };
    let input = json!({ "command": "deploy" });
    let owner = machine::owner(tool.id());
    assert!(owner.is_some(), "the platform identifies processes");
    let call = NewCall::from_hook(Some("c1".to_owned()), "Bash".to_owned(), input, owner);
    with_engine(dir, async |engine, caller| {
        let recorded = engine.record_call(caller, source, None, call, InitialState::Running);
        recorded.await.expect("call is recorded");
    });
    tool
}

/// The only call in a session's resource.
fn only_call(client: &mut Client, uri: &str) -> Value {
    let response = client.request("resources/read", json!({ "uri": uri }));
    let text = response["result"]["contents"][0]["text"].as_str();
    let health: Value = serde_json::from_str(text.expect("text content")).expect("JSON");
    assert_eq!(health["sessionId"], "a b/1");
    health["calls"]["list"][0].clone()
}

#[test]
fn notifies_of_an_interrupted_call_in_a_session() {
    let uri = "onward://session/a%20b%2F1";
    for (dir, era) in [
        (program(), Era::Handshake),
        (program(), Era::Stateless),
        (program().on_postgres(), Era::Handshake),
        (program().on_postgres(), Era::Stateless),
    ] {
        let mut tool = recorded_tool(&dir);
        let mut client = Client::start(&dir, era);
        let plan = fixtures::create_plan(&mut client, 9);
        match era {
            Era::Handshake => {
                let response = client.request("resources/subscribe", json!({ "uri": uri }));
                assert_eq!(response["result"], json!({}), "{response}");
            }
            Era::Stateless => {
                let uris = json!({ "notifications": { "resourceSubscriptions": [uri] } });
                client.send("subscriptions/listen", uris);
                client.notification("notifications/subscriptions/acknowledged");
            }
        }
        assert_eq!(only_call(&mut client, uri)["status"], "running");
        // There is no subscription to plans.
        fixtures::claim_step(&mut client, &plan);
        tool.kill();
        let call = loop {
            assert_eq!(next_update(&mut client), uri);
            let call = only_call(&mut client, uri);
            if call["status"] != "running" {
                break call;
            }
        };
        assert_eq!(
            (&call["status"], &call["cause"], &call["synthetic"]),
            (
                &json!("interrupted"),
                &json!("outcome_unknown"),
                &json!(true)
            )
        );
    }
}

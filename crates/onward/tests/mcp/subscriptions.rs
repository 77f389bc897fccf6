//! A change of a plan is told to whoever subscribed to it, and to nobody else; also one that another
//! process made.

use std::process::{Child, Command};

use onward_engine::ledger::{Begins, NewCall};
use onward_engine::machine;
use onward_engine::session::Heard;
use serde_json::{Value, json};

use crate::agent::{Agent, Era};
use crate::place::Place;
use crate::works;

const UPDATED: &str = "notifications/resources/updated";

/// The URI of the next change that is told.
fn told(agent: &mut Agent) -> String {
    let note = agent.note(UPDATED);
    note["params"]["uri"].as_str().expect("a uri").to_owned()
}

/// Lets what was told so far pass by. A subscription may tell of what happened right before it.
fn settle(agent: &mut Agent, uri: &str) {
    agent.notes.retain(|note| note["params"]["uri"] != uri);
}

#[test]
fn a_client_of_the_handshake_hears_of_what_it_subscribed_to() {
    for place in [Place::file(), Place::server()] {
        let mut agent = Agent::start(&place, Era::Handshake);
        let (one, other) = (works::created(&mut agent, 9), works::created(&mut agent, 9));
        let uri = format!("onward://plan/{one}");
        let answer = agent.ask("resources/subscribe", json!({ "uri": uri }));
        assert_eq!(answer["result"], json!({}), "{answer}");
        works::next(&mut agent, &one);
        assert_eq!(told(&mut agent), uri);
        works::next(&mut agent, &other);
        works::next(&mut agent, &one);
        assert_eq!(told(&mut agent), uri);
        let answer = agent.ask("resources/unsubscribe", json!({ "uri": uri }));
        assert_eq!(answer["result"], json!({}));
        settle(&mut agent, &uri);
        works::next(&mut agent, &one);
        // The list is told again only once it is asked for; the plan, not at all.
        agent.ask("resources/subscribe", json!({ "uri": "onward://plans" }));
        works::next(&mut agent, &one);
        assert_eq!(told(&mut agent), "onward://plans");
        let left: Vec<&Value> = agent
            .notes
            .iter()
            .filter(|note| note["params"]["uri"] != "onward://plans")
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_client_without_a_handshake_listens() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Stateless);
    let plan = works::created(&mut agent, 9);
    let audit = format!("onward://plan/{plan}/audit");
    let id = agent.send(
        "subscriptions/listen",
        json!({ "notifications": {
            "resourceSubscriptions": [audit, "onward://nothing"],
            "toolsListChanged": true,
        } }),
    );
    let accepted = agent.note("notifications/subscriptions/acknowledged");
    let accepted = &accepted["params"]["notifications"];
    assert_eq!(accepted["resourceSubscriptions"], json!([audit]));
    assert!(accepted.get("toolsListChanged").is_none(), "{accepted}");
    works::next(&mut agent, &plan);
    let note = agent.note(UPDATED);
    assert_eq!(note["params"]["uri"], audit);
    let subscription = &note["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*subscription, json!(id));
    // Listening ends when the client says so, and the rest goes on.
    agent.say(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": id },
    }));
    works::next(&mut agent, &plan);
    // It also does not hold up the end.
    let other = agent.send(
        "subscriptions/listen",
        json!({ "notifications": { "resourceSubscriptions": ["onward://plans"] } }),
    );
    agent.note("notifications/subscriptions/acknowledged");
    agent.hang_up();
    let rest = agent.rest();
    assert!(rest.iter().any(|line| line["id"] == other), "{rest:?}");
    assert!(agent.wait().success());
}

#[test]
fn what_another_process_does_is_told_too() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    let plan = works::created(&mut agent, 1);
    let uri = format!("onward://plan/{plan}");
    agent.ask("resources/subscribe", json!({ "uri": uri }));
    // What is told of the time before the subscription is told in the first look.
    told(&mut agent);
    place.run(&["plan", "abandon", &plan, "--reason", "enough"]);
    loop {
        assert_eq!(told(&mut agent), uri);
        let status = agent.call("get_plan_status", json!({ "planId": plan }));
        if status["status"] == "failed" {
            break;
        }
    }
}

#[test]
fn nobody_subscribes_to_what_is_not_there() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Handshake);
    for uri in [
        "onward://plan/00000000-0000-4000-8000-000000000000",
        "onward://nothing",
    ] {
        let answer = agent.ask("resources/subscribe", json!({ "uri": uri }));
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
    }
    // Each era has its own way.
    let answer = agent.ask("subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(answer["error"]["code"], -32601);
    let mut agent = Agent::start(&place, Era::Stateless);
    let answer = agent.ask("resources/subscribe", json!({ "uri": "onward://plans" }));
    assert_eq!(answer["error"]["code"], -32601);
}

/// A process that runs a tool for as long as nobody kills it.
struct Tool(Child);

impl Drop for Tool {
    fn drop(&mut self) {
        // It may be dead already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A tool whose call is on record, in a session with a name that has to be escaped.
fn tool(place: &Place) -> Tool {
    let tool = Command::new("sleep").arg("600").spawn();
    let tool = Tool(tool.expect("a process can be started"));
    let heard = Heard {
        session: "a b/1".to_owned(),
        agent: "harness".to_owned(),
        ..Heard::default()
    };
    let input = json!({ "command": "deploy" });
    let owner = machine::owner(tool.0.id());
    assert!(owner.is_some(), "the machine tells who lives");
    let call = NewCall::seen(Some("c1".to_owned()), "Bash".to_owned(), input, owner);
    place.engine(async |engine, caller| {
        let recorded = engine.record_call(caller, heard, None, call, Begins::Running);
        recorded.await.expect("it can be recorded");
    });
    tool
}

/// What a session's resource says of its only call.
fn only_call(agent: &mut Agent, uri: &str) -> Value {
    let answer = agent.ask("resources/read", json!({ "uri": uri }));
    let text = answer["result"]["contents"][0]["text"].as_str();
    let health: Value = serde_json::from_str(text.expect("a text")).expect("JSON");
    assert_eq!(health["sessionId"], "a b/1");
    health["calls"]["list"][0].clone()
}

#[test]
fn whoever_watches_a_session_hears_that_its_call_was_given_up() {
    let uri = "onward://session/a%20b%2F1";
    for (place, era) in [
        (Place::file(), Era::Handshake),
        (Place::file(), Era::Stateless),
        (Place::server(), Era::Handshake),
        (Place::server(), Era::Stateless),
    ] {
        let mut tool = tool(&place);
        let mut agent = Agent::start(&place, era);
        let plan = works::created(&mut agent, 9);
        match era {
            Era::Handshake => {
                let answer = agent.ask("resources/subscribe", json!({ "uri": uri }));
                assert_eq!(answer["result"], json!({}), "{answer}");
            }
            Era::Stateless => {
                let uris = json!({ "notifications": { "resourceSubscriptions": [uri] } });
                agent.send("subscriptions/listen", uris);
                agent.note("notifications/subscriptions/acknowledged");
            }
        }
        assert_eq!(only_call(&mut agent, uri)["status"], "running");
        // Of plans nobody asked to be told.
        works::next(&mut agent, &plan);
        tool.0.kill().expect("it can be killed");
        tool.0.wait().expect("it is dead");
        let call = loop {
            assert_eq!(told(&mut agent), uri);
            let call = only_call(&mut agent, uri);
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

//! A change of a plan is told to whoever subscribed to it, and to nobody else; also one that another
//! process made.

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

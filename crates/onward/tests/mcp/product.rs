//! What is only there for the conformance suite is not in what people run.

use serde_json::{Value, json};

use crate::agent::{Agent, ERAS};
use crate::place::Place;

/// Everything that can be listed, as text.
fn listed(agent: &mut Agent) -> String {
    let all = [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ];
    let all = all.map(|method| agent.ask(method, json!({}))["result"].take());
    assert!(all.iter().all(Value::is_object), "{all:?}");
    json!(all).to_string()
}

#[test]
fn nothing_of_the_conformance_suite_is_in_the_product() {
    for era in ERAS {
        let place = Place::file();
        let mut agent = Agent::start(&place, era);
        let all = listed(&mut agent);
        for name in ["test_", "test://", "json_schema_2020_12_tool"] {
            assert!(!all.contains(name), "`{name}` is offered: {all}");
        }
        let called = json!({ "name": "test_simple_text", "arguments": {} });
        let called = agent.ask("tools/call", called);
        assert_eq!(called["error"]["code"], -32602, "{called}");
        let read = agent.ask("resources/read", json!({ "uri": "test://static-text" }));
        assert!(read["error"].is_object(), "{read}");
        let prompt = agent.ask("prompts/get", json!({ "name": "test_simple_prompt" }));
        assert!(prompt["error"].is_object(), "{prompt}");
    }
}

#[test]
fn nothing_of_the_conformance_suite_is_in_the_binary() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_onward")).expect("the binary can be read");
    let found = String::from_utf8_lossy(&binary).contains("test_input_required_result_");
    assert!(!found, "the tools of the suite are built in");
}

//! The binary contains nothing of the conformance suite.

use onward_testbed::mcp_client::{Client, ERAS};
use serde_json::{Value, json};

use crate::program;

/// All lists of the server as one text.
fn all_lists(client: &mut Client) -> String {
    let all = [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ];
    let all = all.map(|method| client.request(method, json!({}))["result"].take());
    assert!(all.iter().all(Value::is_object), "{all:?}");
    json!(all).to_string()
}

#[test]
fn the_conformance_suite_is_not_offered() {
    for era in ERAS {
        let dir = program();
        let mut client = Client::start(&dir, era);
        let all = all_lists(&mut client);
        for name in ["test_", "test://", "json_schema_2020_12_tool"] {
            assert!(!all.contains(name), "`{name}` is offered: {all}");
        }
        let called = json!({ "name": "test_simple_text", "arguments": {} });
        let called = client.request("tools/call", called);
        assert_eq!(called["error"]["code"], -32602, "{called}");
        let read = client.request("resources/read", json!({ "uri": "test://static-text" }));
        assert!(read["error"].is_object(), "{read}");
        let prompt = client.request("prompts/get", json!({ "name": "test_simple_prompt" }));
        assert!(prompt["error"].is_object(), "{prompt}");
    }
}

#[test]
fn the_conformance_suite_is_not_compiled_in() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_onward")).expect("binary is readable");
    let found = String::from_utf8_lossy(&binary).contains("test_input_required_result_");
    assert!(!found, "the binary contains the suite's tools");
}

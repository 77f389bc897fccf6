//! The token cost of the tool list, the server instructions and the responses of the loop.

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Map, Value, json};

use crate::fixtures;
use crate::program;

/// Tokens (o200k) of all tools.
const MAX_TOKENS: usize = 5_500;
/// Tokens of `--tools core`.
const MAX_CORE_TOKENS: usize = 2_400;

/// The tokens of the names, descriptions and input schemas, which clients pass to the model.
fn tokens(tools: &[Map<String, Value>]) -> usize {
    let tokenizer = tiktoken_rs::o200k_base_singleton();
    let texts = tools.iter().map(|tool| {
        json!({
            "name": tool["name"],
            "description": tool["description"],
            "inputSchema": tool["inputSchema"],
        })
        .to_string()
    });
    texts
        .map(|text| tokenizer.encode_ordinary(&text).len())
        .sum()
}

#[test]
fn the_tool_list_stays_within_the_token_budget() {
    let dir = program();
    let mut all = Client::start(&dir, Era::Stateless);
    let all = all.tools();
    for tool in &all {
        println!("{} {}", tool["name"], tokens(std::slice::from_ref(tool)));
    }
    let cost = tokens(&all);
    println!("all: {cost}");
    assert!(cost <= MAX_TOKENS, "all tools cost {cost} tokens");
    let mut core = Client::with_options(&dir, Era::Stateless, &["--tools", "core"], json!({}));
    let cost = tokens(&core.tools());
    println!("core: {cost}");
    assert!(cost <= MAX_CORE_TOKENS, "the core tools cost {cost} tokens");
}

#[test]
fn core_offers_exactly_the_tools_of_the_loop() {
    let dir = program();
    let mut client = Client::with_options(&dir, Era::Handshake, &["--tools", "core"], json!({}));
    let tools = client.tools();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, CORE);
    let response = client.request("tools/call", json!({ "name": "ping", "arguments": {} }));
    assert_eq!(response["error"]["code"], -32602, "{response}");
}

const CORE: [&str; 12] = [
    "create_research_plan",
    "list_active_plans",
    "get_plan_status",
    "modify_plan",
    "get_next_step",
    "submit_step_result",
    "report_step_progress",
    "request_user_review",
    "submit_user_decision",
    "get_research_context",
    "store_research_output",
    "get_artifact",
];

#[test]
fn the_server_instructions_have_fewer_than_150_words() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let server = client.request("server/discover", json!({}));
    let instructions = server["result"]["instructions"].as_str();
    let instructions = instructions.expect("server has instructions");
    let words = instructions.split_whitespace().count();
    assert!(words < 150, "{words} words");
    assert!(instructions.contains("get_next_step"), "{instructions}");
}

#[test]
fn the_responses_of_the_loop_are_short() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    let plan = fixtures::create_plan(&mut client, 3);
    let step = client.call("get_next_step", json!({ "planId": plan }));
    let instructions = step["instructions"].as_str().expect("instructions");
    let submitted = client.call(
        "submit_step_result",
        json!({
            "stepId": step["stepId"],
            "claimToken": step["claimToken"],
            "resultSummary": "Done",
        }),
    );
    let bytes = step.to_string().len() + submitted.to_string().len() - instructions.len();
    println!("{bytes} bytes");
    assert!(bytes < 900, "{bytes} bytes");
}

#[test]
fn every_tool_is_complete_and_has_no_unsupported_keywords() {
    let dir = program();
    let mut client = Client::start(&dir, Era::Stateless);
    for tool in client.tools() {
        let name = tool["name"].to_string();
        for field in ["title", "description"] {
            assert!(tool[field].is_string(), "{name}: {field}");
        }
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name}: {schema}");
            let text = tool[schema].to_string();
            for keyword in ["\"format\"", "\"$ref\"", "$defs", "$schema"] {
                assert!(!text.contains(keyword), "{name}: {keyword} in {text}");
            }
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        let hints = &tool["annotations"];
        for hint in [
            "readOnlyHint",
            "idempotentHint",
            "destructiveHint",
            "openWorldHint",
        ] {
            assert!(hints[hint].is_boolean(), "{name}: {hint}");
        }
    }
}

//! What Onward costs a model: the list of tools, the instructions, the answers of the loop.

use serde_json::{Map, Value, json};

use crate::agent::{Agent, Era};
use crate::place::Place;
use crate::works;

/// The tokens of what a model is shown of the tools.
fn tokens(tools: &[Map<String, Value>]) -> usize {
    let tokenizer = tiktoken_rs::o200k_base_singleton();
    let shown = tools.iter().map(|tool| {
        json!({
            "name": tool["name"],
            "description": tool["description"],
            "inputSchema": tool["inputSchema"],
        })
        .to_string()
    });
    shown
        .map(|tool| tokenizer.encode_ordinary(&tool).len())
        .sum()
}

#[test]
fn the_list_of_tools_costs_little() {
    let place = Place::file();
    let mut all = Agent::start(&place, Era::Stateless);
    let all = all.tools();
    for tool in &all {
        println!("{} {}", tool["name"], tokens(std::slice::from_ref(tool)));
    }
    let cost = tokens(&all);
    println!("all: {cost}");
    assert!(cost < 3_700, "all tools cost {cost} tokens");
    let mut core = Agent::with(&place, Era::Stateless, &["--tools", "core"], json!({}));
    let cost = tokens(&core.tools());
    println!("core: {cost}");
    assert!(cost < 1_750, "the tools of the loop cost {cost} tokens");
}

#[test]
fn core_is_what_the_loop_needs_and_nothing_else() {
    let place = Place::file();
    let mut agent = Agent::with(&place, Era::Handshake, &["--tools", "core"], json!({}));
    let tools = agent.tools();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, CORE);
    let answer = agent.ask("tools/call", json!({ "name": "ping", "arguments": {} }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

const CORE: [&str; 10] = [
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
];

#[test]
fn the_instructions_have_less_than_150_words() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Stateless);
    let found = agent.ask("server/discover", json!({}));
    let instructions = found["result"]["instructions"].as_str().expect("a text");
    let words = instructions.split_whitespace().count();
    assert!(words < 150, "{words} words");
    assert!(instructions.contains("get_next_step"), "{instructions}");
}

#[test]
fn the_answers_of_the_loop_are_short() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Stateless);
    let plan = works::created(&mut agent, 3);
    let step = agent.call("get_next_step", json!({ "planId": plan }));
    let instructions = step["instructions"].as_str().expect("a text");
    let submitted = agent.call(
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

/// Every tool says what it is for, and no word of it is for somebody else.
#[test]
fn every_tool_says_what_a_model_needs() {
    let place = Place::file();
    let mut agent = Agent::start(&place, Era::Stateless);
    for tool in agent.tools() {
        let name = tool["name"].to_string();
        for field in ["title", "description"] {
            assert!(tool[field].is_string(), "{name}: {field}");
        }
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name}: {schema}");
            let text = tool[schema].to_string();
            for word in ["\"format\"", "$ref", "$defs", "$schema"] {
                assert!(!text.contains(word), "{name}: {word} in {text}");
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

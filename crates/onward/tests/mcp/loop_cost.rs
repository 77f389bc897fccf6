//! The token cost (o200k) of the responses in a typical loop of six steps.
//!
//! Prints a table and compares it with `golden/loop_cost.txt`; each call also has a limit. Ids,
//! claim tokens and times differ between runs, so they are replaced with fixed ones of the same
//! form before counting.

use std::fmt;

use onward_testbed::golden;
use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::program;

const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/mcp/golden/loop_cost.txt"
);

/// A call and the maximum tokens of its response.
const LIMITS: [(&str, usize); 6] = [
    ("get_next_step", 120),
    ("submit_step_result with claimNext", 150),
    ("get_plan_status", 380),
    ("get_research_context", 900),
    ("modify_plan", 120),
    ("error", 72),
];

const STEPS: [(&str, &str); 6] = [
    (
        "search",
        "Find at least five primary sources on tidal range in the Bay of Fundy and record their URLs.",
    ),
    (
        "extract",
        "Extract mean and maximum tidal range per station from the sources, with the year of each value.",
    ),
    (
        "analyze",
        "Compare the stations and explain the differences with the basin's resonance period.",
    ),
    (
        "critique",
        "Check each claim against its source. Set `result.verdict` to `ok` or `redo`.",
    ),
    (
        "synthesize",
        "Write a report of two pages with a table of all stations.",
    ),
    (
        "checkpoint",
        "Ask the user to review the report before it is published.",
    ),
];

fn plan() -> Value {
    let steps =
        STEPS.map(|(kind, instructions)| json!({ "stepType": kind, "instructions": instructions }));
    json!({
        "name": "Tides of the Bay of Fundy",
        "researchQuestion": "Why does the Bay of Fundy have the highest tides in the world?",
        "steps": steps,
        "branchingConditions": [{
            "afterStepOrder": 3,
            "conditionExpression": "result.verdict == 'redo'",
            "ifTrueAction": "fail",
        }],
        "sessionId": "session-1",
    })
}

fn summary(order: u64) -> String {
    format!("Step {order} is done: the mean range of all five stations is above 11 m.")
}

/// The costs of the responses, in order of the calls.
#[derive(Default)]
struct Table(Vec<(&'static str, usize)>);

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<36}{:>8}{:>8}", "call", "tokens", "limit")?;
        for (call, tokens) in &self.0 {
            let limit = limit(call).map(|limit| limit.to_string());
            let limit = limit.unwrap_or_default();
            writeln!(
                f,
                "{}",
                format!("{call:<36}{tokens:>8}{limit:>8}").trim_end()
            )?;
        }
        Ok(())
    }
}

fn limit(call: &str) -> Option<usize> {
    let found = LIMITS.iter().find(|(name, _)| *name == call);
    found.map(|(_, limit)| *limit)
}

/// Calls a tool and counts the tokens of its response, without the random parts.
struct Meter {
    client: Client,
    table: Table,
}

impl Meter {
    fn call(&mut self, label: &'static str, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let response = self.client.request("tools/call", params);
        let text = response["result"]["content"][0]["text"].as_str();
        let text = text.expect("the response has text");
        let tokenizer = tiktoken_rs::o200k_base_singleton();
        let tokens = tokenizer.encode_ordinary(&with_fixed_values(text)).len();
        self.table.0.push((label, tokens));
        println!("{label}: {text}\n");
        serde_json::from_str(text).expect("the text is JSON")
    }
}

/// Replaces ids, claim tokens, times and durations with fixed ones.
fn with_fixed_values(text: &str) -> String {
    let mut value: Value = serde_json::from_str(text).expect("the text is JSON");
    fix(&mut value, "");
    value.to_string()
}

fn fix(value: &mut Value, name: &str) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| fix(value, name)),
        Value::Array(entries) => entries.iter_mut().for_each(|entry| fix(entry, name)),
        // A hash, without hexadecimal letters.
        Value::String(text) if name == "keptArtifactId" => {
            *text = sample(text, "43120112-4254-8428-8754-307756073570");
        }
        Value::String(text) if name == "claimToken" => *text = sample(text, "oadpueisjvertliy"),
        Value::String(text)
            if (name.ends_with("Id") || name.ends_with("Ids")) && text.len() == 36 =>
        {
            *text = sample(text, "4d3f0112-4254-4428-8754-307756073570");
        }
        Value::String(text)
            if (name.ends_with("At") || name == "at" || name == "since") && text.ends_with('Z') =>
        {
            *text = sample(text, "2026-11-16T19:04:05.678Z");
        }
        Value::Number(number) if name == "elapsedMs" => *number = 12_345.into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The fixed value, as long as the original.
fn sample(original: &str, fixed: &str) -> String {
    fixed
        .chars()
        .cycle()
        .take(original.chars().count())
        .collect()
}

#[test]
fn the_responses_of_a_typical_loop_stay_within_their_token_limits() {
    let dir = program();
    let mut meter = Meter {
        client: Client::start(&dir, Era::Stateless),
        table: Table::default(),
    };
    let created = meter.call("create_research_plan", "create_research_plan", plan());
    let plan = created["planId"].clone();
    let mut step = meter.call(
        "get_next_step",
        "get_next_step",
        json!({ "planId": plan, "sessionId": "session-1" }),
    );
    for order in 1..=2 {
        let submitted = meter.call(
            "submit_step_result with claimNext",
            "submit_step_result",
            json!({
                "stepId": step["stepId"],
                "claimToken": step["claimToken"],
                "resultSummary": summary(order),
                "confidence": 0.9,
                "sessionId": "session-1",
                "claimNext": true,
            }),
        );
        step = submitted["nextStep"].clone();
    }
    meter.call(
        "get_plan_status",
        "get_plan_status",
        json!({ "planId": plan }),
    );
    meter.call(
        "report_step_progress",
        "report_step_progress",
        json!({
            "stepId": step["stepId"],
            "claimToken": step["claimToken"],
            "note": "two of five claims checked",
        }),
    );
    meter.call(
        "get_research_context",
        "get_research_context",
        json!({ "planId": plan, "sessionId": "session-2" }),
    );
    meter.call(
        "list_plan_steps",
        "list_plan_steps",
        json!({ "planId": plan }),
    );
    meter.call(
        "modify_plan",
        "modify_plan",
        json!({
            "planId": plan,
            "action": "add_steps",
            "steps": [{ "stepType": "search", "instructions": "Find two more stations." }],
        }),
    );
    for (name, arguments) in [
        (
            "submit_step_result",
            json!({
                "stepId": created["firstStep"]["stepId"],
                "resultSummary": "Another result",
            }),
        ),
        (
            "get_plan_status",
            json!({ "planId": "0198a1b2-0000-7000-8000-000000000000" }),
        ),
        (
            "modify_plan",
            json!({ "planId": plan, "action": "requeue_step", "stepId": created["firstStep"]["stepId"] }),
        ),
        (
            "submit_user_decision",
            json!({ "stepId": step["stepId"], "decision": "approve" }),
        ),
    ] {
        let error = meter.call("error", name, arguments);
        assert!(error["error"]["code"].is_string(), "{error}");
    }
    let table = meter.table;
    println!("{table}");
    for (call, tokens) in &table.0 {
        if let Some(limit) = limit(call) {
            assert!(*tokens <= limit, "{call}: {tokens} tokens, at most {limit}");
        }
    }
    golden::assert_matches(GOLDEN, &table.to_string());
}

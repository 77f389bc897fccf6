//! Token counts from the transcript of Claude Code.

use onward_testbed::mcp_client::{Client, Era};
use serde_json::{Value, json};

use crate::harness::Harness;

fn line(id: &str, output: u64) -> String {
    let usage = json!({
        "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30,
        "output_tokens": output,
    });
    let message = json!({ "id": id, "role": "assistant", "usage": usage });
    format!("{}\n", json!({ "type": "assistant", "message": message }))
}

#[test]
fn counts_the_tokens_of_the_transcript() {
    let harness = Harness::new("tokens", "claude-code");
    let mut payload: Value = serde_json::from_str(&harness.payload("before_tool")).unwrap();
    let session = payload["session_id"]
        .as_str()
        .expect("a session")
        .to_owned();
    let mut client = Client::start(&harness.program, Era::Stateless);
    let plan = json!({
        "name": "Tides", "researchQuestion": "Why two?",
        "steps": [
            { "stepType": "search", "instructions": "Look." },
            { "stepType": "search", "instructions": "Compare." },
        ],
        "budget": { "maxTokens": 150 },
    });
    let plan = client.call("create_research_plan", plan)["planId"].clone();
    let next = json!({ "planId": plan, "sessionId": session });
    let step = client.call("get_next_step", next.clone());
    let path = harness.program.dir.join("transcript.jsonl");
    let text = [line("a", 5), line("a", 40), line("b", 60)].concat();
    std::fs::write(&path, &text).unwrap();
    let show = || {
        let shown = ["--json", "session", "show", session.as_str()];
        harness.program.run_json(&shown)["tokens"].clone()
    };
    harness.send("prompt");
    assert_eq!(show(), Value::Null);
    payload["transcript_path"] = path.display().to_string().into();
    // Other calls do not read it.
    harness.send_payload(&payload.to_string());
    assert_eq!(show(), Value::Null);
    payload["tool_name"] = "mcp__onward__submit_step_result".into();
    for _ in 0..2 {
        harness.send_payload(&payload.to_string());
        let tokens = show();
        assert_eq!(tokens["total"], 100 + 120);
        assert_eq!(
            (&tokens["output"], &tokens["source"]),
            (&json!(100), &json!("transcript"))
        );
    }
    let result = json!({
        "stepId": step["stepId"], "claimToken": step["claimToken"], "resultSummary": "done",
        "claimNext": true,
    });
    let submitted = client.call("submit_step_result", result);
    let exhausted = json!({ "limit": "maxTokens", "max": 150, "used": 220 });
    assert_eq!(submitted["nextStep"]["exhausted"], exhausted);
    let status = client.call("get_plan_status", json!({ "planId": plan }));
    assert_eq!(status["tokens"], 220);
    assert_eq!(status["budget"]["used"]["tokens"], 220);
}

#[test]
fn a_transcript_that_is_a_pipe_is_skipped() {
    let harness = Harness::new("pipe", "claude-code");
    let path = harness.program.dir.join("transcript.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo is installed").success());
    let mut payload: Value = serde_json::from_str(&harness.payload("before_tool")).unwrap();
    payload["transcript_path"] = path.display().to_string().into();
    payload["tool_name"] = "mcp__onward__submit_step_result".into();
    let sent = harness.send_payload(&payload.to_string());
    assert_eq!(sent.stderr, "", "the hook waited for the pipe");
}

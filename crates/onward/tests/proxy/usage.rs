//! Token counts from the `usage` of responses.

use onward_testbed::mcp_client::{Client, Era};
use onward_testbed::mock_server::MockServer;
use serde_json::json;

use crate::conversation::{Api, Conversation};
use crate::program;

#[tokio::test]
async fn counts_the_tokens_of_a_session_and_the_step_that_it_holds() {
    let upstream = MockServer::start();
    let dir = program("tokens");
    let mut client = Client::start(&dir, Era::Stateless);
    let steps = json!([{ "stepType": "search", "instructions": "Look." }]);
    let plan = json!({
        "name": "Tides", "researchQuestion": "Why two?", "steps": steps,
        "budget": { "maxTokens": 1_000 },
    });
    let plan = client.call("create_research_plan", plan)["planId"].clone();
    let proxy = dir.proxy(&upstream.url);
    for streaming in [false, true] {
        let mut conversation = Conversation::new(Api::Anthropic, streaming, "s");
        upstream.enqueue(conversation.call_reply());
        conversation.send(&proxy).await;
        let (call, result) = conversation.call_and_result("call_x", "true", "It is noon.");
        conversation.rows.extend([call, result]);
        upstream.enqueue(conversation.text_reply("Noon."));
        conversation.send(&proxy).await;
        client.call("get_next_step", json!({ "planId": plan, "sessionId": "s" }));
    }
    let dir = proxy.stop();
    let session = dir.run_json(&["--json", "session", "show", "s"]);
    let tokens = &session["tokens"];
    assert_eq!(tokens["source"], "proxy");
    let total = tokens["total"].as_u64().expect("a count");
    assert!(total >= 8, "{tokens}");
    let plan = plan.as_str().expect("plan id");
    let shown = dir.run_json(&["--json", "plan", "show", plan]);
    let of_plan = shown["tokens"].as_u64().expect("a count");
    assert!(of_plan > 0 && of_plan <= total, "{shown}");
    assert_eq!(shown["budget"]["used"]["tokens"], of_plan);
    let step = dir.run_json(&["--json", "step", "show", &format!("{plan}/1")]);
    assert_eq!(step["tokens"], of_plan);
}

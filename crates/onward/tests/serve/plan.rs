//! A whole plan over `/api/v1`: made, worked on, branched, reviewed, finished; and its trail.

use reqwest::Method;
use serde_json::{Value, json};

use crate::house::{House, Server, send};

#[tokio::test]
async fn a_plan_is_carried_through() {
    carried(House::new("plan").serve()).await;
}

#[tokio::test]
async fn a_plan_is_carried_through_on_postgresql() {
    let database = onward_testbed::Cluster::shared().database();
    carried(House::new("plan-postgres").on(database).serve()).await;
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// A plan with a branch and a question.
fn boats() -> Value {
    json!({
        "name": "Boats",
        "researchQuestion": "Which one?",
        "steps": [
            { "stepType": "search", "instructions": "Find offers." },
            { "stepType": "analyze", "instructions": "Dig deeper." },
            { "stepType": "checkpoint", "instructions": "Ask." },
            { "stepType": "synthesize", "instructions": "Write." },
        ],
        "branchingConditions": [{
            "afterStepOrder": 1,
            "conditionExpression": "confidence >= 0.8",
            "ifTrueAction": "skip_to",
            "actionParams": { "targetStepOrder": 3 },
        }],
        "idempotencyKey": "once",
    })
}

async fn carried(server: Server) {
    let made = boats();
    let answer = server.post("/api/v1/plans", made.clone()).await;
    assert_eq!(answer.status.as_u16(), 201);
    let plan = answer.done();
    assert_eq!(
        server.post("/api/v1/plans", made).await.done()["planId"],
        plan["planId"]
    );
    let at = format!("/api/v1/plans/{}", text(&plan["planId"]));

    let first = server
        .post(&format!("{at}/next"), json!({ "sessionId": "s" }))
        .await
        .done();
    assert_eq!(first["status"], "step_started");
    let result = json!({
        "resultSummary": "three offers",
        "confidence": 0.9,
        "claimToken": first["claimToken"],
        "claimNext": true,
    });
    let step = format!("/api/v1/steps/{}", text(&first["stepId"]));
    let progress = server
        .post(&format!("{step}/progress"), json!({ "note": "one" }))
        .await;
    assert_eq!(progress.done()["planStatus"], "executing");
    let done = server
        .post(&format!("{step}/result"), result.clone())
        .await
        .done();
    assert_eq!(done["branchTaken"]["action"], "skip_to");
    // The same once more is the same answer.
    let again = server.post(&format!("{step}/result"), result).await.done();
    assert_eq!(again, done);
    let asks = &done["nextStep"];
    assert_eq!(asks["stepOrder"], 3);

    let step = format!("/api/v1/steps/{}", text(&asks["stepId"]));
    let question = json!({ "summary": "the blue one", "questions": ["fine?"] });
    let review = server
        .post(&format!("{step}/review"), question)
        .await
        .done();
    assert_eq!(review["planStatus"], "awaiting_review");
    let open = server.get("/api/v1/reviews").await.done();
    assert_eq!(open["reviews"][0]["reviewId"], review["reviewId"]);
    assert_eq!(open["reviews"][0]["planName"], "Boats");
    let wrong = server
        .post(&format!("{step}/decision"), json!({ "decision": "modify" }))
        .await;
    wrong.refused(400, "feedback_required");
    let decision = json!({ "decision": "approve" });
    let decided = server
        .post(&format!("{step}/decision"), decision)
        .await
        .done();
    assert_eq!(decided["stepStatus"], "completed");

    let last = server.post(&format!("{at}/next"), json!({})).await.done();
    let step = format!("/api/v1/steps/{}", text(&last["stepId"]));
    let end = server
        .post(
            &format!("{step}/result"),
            json!({ "resultSummary": "blue" }),
        )
        .await;
    assert_eq!(end.done()["next"], "plan_complete");
    let status = server.get(&at).await.done();
    assert_eq!(status["status"], "completed");
    assert_eq!(status["counts"]["skipped"], 1);
    let late = server
        .post(&format!("{step}/result"), json!({ "resultSummary": "red" }))
        .await;
    let refused = late.refused(409, "plan_is_terminal");
    assert!(
        refused["details"]["keptArtifactId"].is_string(),
        "{refused}"
    );
    read(&server, &at).await;
}

/// What is shown of a plan that is over.
async fn read(server: &Server, at: &str) {
    let steps = server.get(&format!("{at}/steps?limit=2")).await.done();
    assert_eq!(steps["steps"].as_array().map(Vec::len), Some(2));
    let cursor = text(&steps["nextCursor"]);
    let rest = server
        .get(&format!("{at}/steps?cursor={cursor}&status=completed"))
        .await
        .done();
    assert_eq!(rest["steps"].as_array().map(Vec::len), Some(2));
    let wrong = server.get(&format!("{at}/steps?limit=many")).await;
    let issues = &wrong.refused(400, "invalid_input")["details"]["issues"];
    assert_eq!(issues[0]["path"], "limit");
    server
        .get(&format!("{at}/steps?limt=2"))
        .await
        .refused(400, "invalid_input");
    server
        .get(&format!("{at}/steps?limit=2&limit=3"))
        .await
        .refused(400, "invalid_input");

    let audit = server.get(&format!("{at}/audit?limit=3")).await.done();
    let events = audit["events"].as_array().expect("events");
    assert_eq!(events.len(), 3);
    let after = events[2]["seq"].as_u64().expect("a number");
    let rest = server
        .get(&format!("{at}/audit?after={after}"))
        .await
        .done();
    let rest = rest["events"].as_array().expect("events").clone();
    assert_eq!(rest[0]["seq"], after + 1);
    let named = |name: &str| rest.iter().any(|event| event["eventType"] == name);
    assert!(
        named("plan_completed") && named("late_result_kept"),
        "{rest:?}"
    );

    assert!(
        server.get("/api/v1/plans").await.done()["plans"]
            .as_array()
            .is_some_and(Vec::is_empty)
    );
    let all = server
        .get("/api/v1/plans?includeFinished=true")
        .await
        .done();
    assert_eq!(all["plans"].as_array().map(Vec::len), Some(1));
    let document = server.get(&format!("{at}/export")).await.done();
    assert!(document.is_object());
    let again = server.post(&format!("{at}/abandon"), json!({})).await;
    again.refused(409, "plan_is_terminal");
    let gone = send(server.ask(Method::DELETE, at)).await.done();
    assert_eq!(gone["name"], "Boats");
    server.get(at).await.refused(404, "plan_not_found");
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_its_place() {
    let server = House::new("input").serve();
    let sent = async |kind: &str, body: &str| {
        let request = server.ask(Method::POST, "/api/v1/plans");
        send(request.header("content-type", kind).body(body.to_owned())).await
    };
    let json = "application/json";
    sent(json, "{").await.refused(400, "invalid_input");
    sent(json, "[]").await.refused(400, "invalid_input");
    sent(json, &"[".repeat(100_000))
        .await
        .refused(400, "invalid_input");
    sent("text/plain", "{}").await.refused(415, "invalid_input");
    sent("application/x-www-form-urlencoded", "name=a")
        .await
        .refused(415, "invalid_input");
    let nothing = sent(json, "").await.refused(400, "invalid_input");
    let missing: Vec<&str> = nothing["details"]["issues"]
        .as_array()
        .expect("issues")
        .iter()
        .map(|issue| issue["path"].as_str().expect("a path"))
        .collect();
    assert_eq!(missing.len(), 3, "{missing:?}");
    let plan = server
        .post("/api/v1/plans", crate::basics::plan())
        .await
        .done();
    let at = format!("/api/v1/plans/{}", text(&plan["planId"]));
    // An id stands in the path, and nowhere else.
    let twice = server
        .post(&format!("{at}/next"), json!({ "planId": plan["planId"] }))
        .await;
    twice.refused(400, "invalid_input");
    let hostile = server
        .get("/api/v1/plans/%27%3B%20drop%20table%20plans%3B--")
        .await;
    hostile.refused(404, "plan_not_found");
    let bytes = server.get("/api/v1/plans/%FF%FE").await;
    assert!(bytes.status.is_client_error(), "{bytes:?}");
    assert!(
        server.get(&at).await.status.is_success(),
        "and the next request works"
    );
}

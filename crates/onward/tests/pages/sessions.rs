//! Session pages: tool calls, and marking a call as dead.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::program;

#[tokio::test]
async fn displays_calls_and_marks_one_as_dead() {
    let server = program("pages-sessions").serve();
    let browser = Browser::new(&server);
    let empty = browser.get("/sessions").await;
    empty.assert_contains("id=\"no-sessions\"");
    empty.assert_contains("<a href=\"/sessions\" aria-current=\"page\">Sessions</a>");
    let at = "/api/v1/sessions/a%20b%2F%3Cc%3E/calls";
    for (tool, command) in [("Bash", "make <all>"), ("Read", "notes")] {
        let call = json!({ "tool": tool, "input": { "command": command }, "status": "running" });
        server.post(at, call).await.expect_success();
    }
    let list = browser.get("/sessions").await;
    list.assert_contains("href=\"/sessions/a%20b%2F%3Cc%3E\"");
    list.assert_lacks("<c>");
    list.assert_contains("class=\"badge working\"");
    let page = "/sessions/a%20b%2F%3Cc%3E";
    let response = browser.get(page).await;
    response.assert_contains("make &#60;all&#62;");
    response.assert_contains("class=\"badge running\"");
    response.assert_lacks("badge interrupted");
    let close = format!("{page}/calls/1/1/close");
    let without_token = browser.post(&close, &[]).await;
    assert_eq!(without_token.status, StatusCode::FORBIDDEN);
    let redirect = browser.submit(page, &close, &[("subagent", "")]).await;
    assert_eq!(redirect.location, format!("{page}?done=closed"));
    let response = browser.get(&redirect.location).await;
    response.assert_contains("class=\"flash\"");
    response.assert_contains("id=\"dead-title\"");
    response.assert_contains("class=\"sent synthetic\"");
    response.assert_contains("badge interrupted");
    response.assert_lacks(&format!("action=\"{close}\""));
    let list = browser.get("/sessions").await;
    list.assert_contains("class=\"badge dead_call\"");
    list.assert_contains("href=\"/sessions?status=dead_call\"");
    browser
        .get("/sessions?status=looping")
        .await
        .assert_contains("id=\"no-matches\"");
    let csrf_token = response.csrf_token();
    let again = browser.post(&close, &[("csrf_token", &csrf_token)]).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let missing = browser.get("/sessions/missing").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn lists_the_most_urgent_state_first_and_a_dead_call_since_its_last_activity() {
    let program = program("pages-session-order");
    let database = program.dir.join("onward.db");
    let server = program.serve();
    for (session, status) in [
        ("dead", "running"),
        ("asks", "awaiting_approval"),
        ("works", "running"),
    ] {
        let call = json!({ "tool": "Bash", "status": status });
        let at = format!("/api/v1/sessions/{session}/calls");
        server.post(&at, call).await.expect_success();
        if session == "dead" {
            let close = server.post(&format!("{at}/1/1/close"), json!({})).await;
            close.expect_success();
        }
    }
    let file = rusqlite::Connection::open(database).unwrap();
    file.execute_batch("UPDATE session_calls SET started_at = 1000000 WHERE session_id = 'dead'")
        .unwrap();
    let list = Browser::new(&server).get("/sessions").await;
    let rows: Vec<&str> = list.html.split("<tr data-row>").skip(1).collect();
    let order = ["dead_call", "awaiting_approval", "working"];
    assert_eq!(rows.len(), order.len());
    for (row, state) in rows.iter().zip(order) {
        assert!(row.contains(&format!("badge {state}")), "{state}: {row}");
    }
    assert!(
        rows[0].contains("datetime=\"1970-01-01T00:16:40.000Z\""),
        "{}",
        rows[0]
    );
}

#[tokio::test]
async fn a_call_that_continued_in_the_background_is_not_done() {
    let server = program("pages-background").serve();
    let send = |mut event: Value| {
        event["session_id"] = "s".into();
        event["turn_id"] = "turn-1".into();
        let event = event.to_string();
        let sent = server
            .program()
            .run_with_input(&["hook", "codex"], event.as_bytes());
        sent.assert_empty();
    };
    for id in ["a", "b"] {
        // Codex answers the model after this time.
        send(json!({
            "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": id,
            "tool_input": { "command": id, "yield_time_ms": 1 },
        }));
    }
    send(json!({
        "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "a",
        "tool_input": { "command": "a" }, "tool_response": "done",
    }));
    send(json!({ "hook_event_name": "Stop", "stop_hook_active": false }));
    let page = Browser::new(&server).get("/sessions/s").await;
    assert_eq!(page.html.matches("badge returned").count(), 1);
    assert_eq!(page.html.matches("badge running").count(), 1);
}

#[tokio::test]
async fn viewers_and_other_tenants_cannot_close_a_call() {
    let setup = program("pages-closes").with_config("[access]\nrequire_tokens = true");
    let owner = setup.token("local", "owner", "owner");
    let viewer = setup.token("local", "viewer", "viewer");
    let stranger = setup.token("other", "stranger", "owner");
    let server = setup.serve();
    let call = json!({ "tool": "Bash", "status": "running" });
    server
        .post_as(&owner, "/api/v1/sessions/s/calls", call)
        .await
        .expect_success();
    let browser = Browser::signed_in(&server, &viewer).await;
    let response = browser.get("/sessions/s").await;
    response.assert_lacks("/close\"");
    response.assert_contains("id=\"read-only\"");
    let csrf_token = response.csrf_token();
    let rejected = browser
        .post(
            "/sessions/s/calls/1/1/close",
            &[("csrf_token", &csrf_token)],
        )
        .await;
    assert_eq!(rejected.status, StatusCode::FORBIDDEN);
    let other_tenant = Browser::signed_in(&server, &stranger).await;
    other_tenant
        .get("/sessions")
        .await
        .assert_contains("id=\"no-sessions\"");
    assert_eq!(
        other_tenant.get("/sessions/s").await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn displays_a_stale_subagent_with_the_answer_of_its_sibling() {
    let program = program("pages-subagents");
    let event = |name: &str, agent: &str, answer: &str| {
        let payload = json!({
            "session_id": "s", "cwd": "/srv/boats", "hook_event_name": name, "agent_id": agent,
            "last_assistant_message": answer,
        });
        let run = program.run_with_input(&["hook", "claude-code"], payload.to_string().as_bytes());
        assert_eq!(run.code, Some(0), "{run:?}");
    };
    event("UserPromptSubmit", "", "");
    event("SubagentStart", "lost", "");
    event("SubagentStart", "found", "");
    event("SubagentStop", "found", "Three <files>");
    let file = rusqlite::Connection::open(program.dir.join("onward.db")).unwrap();
    file.execute_batch("UPDATE turns SET began_at = began_at - 200000, seen_at = seen_at - 200000")
        .unwrap();
    let server = program.serve();
    let browser = Browser::new(&server);
    let response = browser.get("/sessions/s").await;
    response.assert_contains("class=\"badge stale_subagent\"");
    response.assert_contains("class=\"badge stale\"");
    // The subagents have no responses, so only the session itself has a turn.
    assert_eq!(response.html.matches("class=\"box turn\"").count(), 1);
    response.assert_contains("Three &#60;files&#62;");
    response.assert_lacks("<files>");
    browser
        .get("/sessions")
        .await
        .assert_contains("class=\"badge stale_subagent\"");
    browser
        .get("/")
        .await
        .assert_contains("class=\"badge stale_subagent\"");
}

//! Session pages: tool calls, and marking a call as dead.

use reqwest::StatusCode;
use serde_json::json;

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

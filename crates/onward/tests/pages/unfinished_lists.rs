//! Unfinished lists on the overview and the list of plans, and the journal of a project.

use onward_testbed::{Program, Server};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::program;

/// Reports the list of a session that then ends, in the working directory of the program.
fn leave_list(program: &Program, session: &str, title: &str) {
    let directory = program.current_dir().display().to_string();
    let send = |event: Value| {
        let mut event = event;
        event["session_id"] = json!(session);
        event["cwd"] = json!(directory);
        let run = program.run_with_input(&["hook", "claude-code"], event.to_string().as_bytes());
        assert_eq!(run.code, Some(0), "{run:?}");
    };
    let task = |text: &str, status: &str| json!({ "content": text, "status": status });
    let todos = json!([
        task(&format!("Read {title}"), "completed"),
        task(&format!("Write {title}"), "in_progress"),
        task(&format!("Check {title}"), "pending"),
    ]);
    send(json!({ "hook_event_name": "UserPromptSubmit", "prompt": title }));
    send(json!({
        "hook_event_name": "PostToolUse", "tool_name": "TodoWrite", "tool_use_id": "t",
        "tool_input": { "todos": todos }, "tool_response": { "newTodos": todos },
    }));
    send(json!({ "hook_event_name": "SessionEnd", "reason": "exit" }));
}

async fn only_list(server: &Server) -> String {
    let plans = server.get("/api/v1/plans").await.expect_success();
    let plan = &plans["plans"][0];
    assert_eq!(plan["attention"], "unfinished_list");
    plan["planId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_unfinished_list_is_in_a_section_and_can_be_dropped_on_both_pages() {
    let program = program("pages-unfinished").with_current_dir("shop");
    leave_list(&program, "a", "the <i>orders</i>");
    let server = program.serve();
    let id = only_list(&server).await;
    let browser = Browser::new(&server);
    for page in ["/", "/plans"] {
        let response = browser.get(page).await;
        response.assert_contains("id=\"unfinished\"");
        response.assert_contains(&format!("data-copy=\"continue-{id}\""));
        response.assert_lacks("<i>orders");
        response.assert_lacks("class=\"tile stuck\"");
    }
    // Only in its section, and in its filter.
    browser
        .get("/plans")
        .await
        .assert_lacks("<table class=\"list");
    let filtered = browser.get("/plans?state=unfinished_list").await;
    filtered.assert_contains("<table class=\"list");
    filtered.assert_lacks("id=\"unfinished\"");
    let page = browser.get(&format!("/plans/{id}")).await;
    page.assert_contains("class=\"verdict unfinished_list\"");
    page.assert_lacks("badge stuck");
    let fields = [
        ("plan", id.as_str()),
        ("action", "cancel"),
        ("page", "overview"),
    ];
    let dropped = browser.submit("/", "/plans/selected", &fields).await;
    assert_eq!(dropped.location, "/");
    browser.get("/").await.assert_lacks("id=\"unfinished\"");
    let plan = server.get(&format!("/api/v1/plans/{id}")).await;
    assert_eq!(plan.expect_success()["attention"], "cancelled");
}

#[tokio::test]
async fn the_journal_lists_the_completed_steps_of_a_project() {
    let program = program("pages-journal").with_current_dir("shop");
    leave_list(&program, "a", "the <i>orders</i>");
    let directory = program.current_dir().display().to_string();
    let server = program.serve();
    let id = only_list(&server).await;
    let browser = Browser::new(&server);
    let query = directory.replace('/', "%2F");
    for page in ["/journal".to_owned(), format!("/journal?directory={query}")] {
        let response = browser.get(&page).await;
        response.assert_contains(&format!("href=\"/plans/{id}\""));
        response.assert_contains("Read the &#60;i&#62;orders");
        response.assert_lacks("Write the");
    }
    let other = browser.get("/journal?directory=%2Fother").await;
    other.assert_lacks(&id);
    let invalid = browser.get("/journal?after=x").await;
    invalid.assert_contains(&id);
}

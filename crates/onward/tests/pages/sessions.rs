//! Agents' sessions on the dashboard: what is shown of their calls, and who may give one up.

use reqwest::StatusCode;
use serde_json::json;

use crate::browser::Browser;
use crate::house::House;

#[tokio::test]
async fn a_session_shows_its_calls_and_one_is_closed_by_hand() {
    let server = House::new("pages-sessions").serve();
    let browser = Browser::at(&server);
    let empty = browser.get("/sessions").await;
    empty.shows("No agent has told of a session yet");
    empty.shows("<a href=\"/sessions\" aria-current=\"page\">Sessions</a>");
    let at = "/api/v1/sessions/a%20b%2F%3Cc%3E/calls";
    for (tool, command) in [("Bash", "make <all>"), ("Read", "notes")] {
        let call = json!({ "tool": tool, "input": { "command": command }, "status": "running" });
        server.post(at, call).await.done();
    }
    let list = browser.get("/sessions").await;
    list.shows("href=\"/sessions/a%20b%2F%3Cc%3E\"");
    list.hides("<c>");
    let page = "/sessions/a%20b%2F%3Cc%3E";
    let seen = browser.get(page).await;
    seen.shows("make &#60;all&#62;");
    seen.shows("given up in 2 min");
    seen.shows("0 idle of 8");
    seen.hides("interrupted");
    let close = format!("{page}/calls/1/1/close");
    let unmarked = browser.post(&close, &[]).await;
    assert_eq!(unmarked.status, StatusCode::FORBIDDEN);
    let led = browser.fill(page, &close, &[("subagent", "")]).await;
    assert_eq!(led.to, format!("{page}?done=closed"));
    let seen = browser.get(&led.to).await;
    seen.shows("The call was given up");
    seen.shows("A call was interrupted");
    seen.shows("it had begun, and nobody knows how far it came");
    seen.shows("closed by hand by");
    seen.shows("badge interrupted");
    seen.hides(&format!("action=\"{close}\""));
    let mark = seen.mark();
    let again = browser.post(&close, &[("mark", &mark)]).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let lost = browser.get("/sessions/nobody").await;
    assert_eq!(lost.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn who_may_not_close_a_call_is_told_why() {
    let house = House::new("pages-closes").configured("[access]\nrequire_tokens = true");
    let owner = house.token("local", "owner", "owner");
    let viewer = house.token("local", "viewer", "viewer");
    let stranger = house.token("other", "stranger", "owner");
    let server = house.serve();
    let call = json!({ "tool": "Bash", "status": "running" });
    server
        .post_as(&owner, "/api/v1/sessions/s/calls", call)
        .await
        .done();
    let browser = Browser::signed_in(&server, &viewer).await;
    let seen = browser.get("/sessions/s").await;
    seen.hides("Give it up");
    seen.shows("the role viewer may not");
    let mark = seen.mark();
    let refused = browser
        .post("/sessions/s/calls/1/1/close", &[("mark", &mark)])
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let elsewhere = Browser::signed_in(&server, &stranger).await;
    elsewhere.get("/sessions").await.shows("No agent has told");
    assert_eq!(
        elsewhere.get("/sessions/s").await.status,
        StatusCode::NOT_FOUND
    );
}

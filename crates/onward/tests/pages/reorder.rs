//! Adding and moving steps, and the permissions for it.

use onward_testbed::Server;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::browser::{Browser, plan, text};
use crate::program;

async fn create_plan(server: &Server) -> (String, Vec<String>) {
    let created = plan("Boats", &["Offers", "Compare", "Write"]);
    let created = server.post("/api/v1/plans", created).await.expect_success();
    let steps = created["steps"].as_array().unwrap().iter();
    let steps = steps.map(|step| text(step, "stepId")).collect();
    (text(&created, "planId"), steps)
}

async fn titles(server: &Server, plan: &str) -> Vec<String> {
    let listed = server.get(&format!("/api/v1/plans/{plan}/steps")).await;
    let listed = listed.expect_success();
    let steps = listed["steps"].as_array().unwrap().iter();
    let title = |step: &Value| step["title"].as_str().unwrap_or("–").to_owned();
    steps.map(title).collect()
}

#[tokio::test]
async fn adds_a_step_at_the_given_position() {
    let server = program("pages-add").serve();
    let (id, _) = create_plan(&server).await;
    let browser = Browser::new(&server);
    let (at, to) = (format!("/plans/{id}"), format!("/plans/{id}/steps"));
    let page = format!("{at}?tab=about");
    let fields = [
        ("instructions", "Ask the yard.\r\nBoth of them."),
        ("title", "Ask"),
        ("type", "search"),
        ("after", "1"),
    ];
    let redirect = browser.submit(&page, &to, &fields).await;
    assert_eq!(redirect.location, format!("{at}?done=added"));
    browser
        .get(&redirect.location)
        .await
        .assert_contains("class=\"flash\"");
    let fields = [("instructions", "Last."), ("type", "custom"), ("after", "")];
    browser.submit(&page, &to, &fields).await;
    assert_eq!(
        titles(&server, &id).await,
        ["Offers", "Ask", "Compare", "Write", "–"]
    );
    for (name, invalid) in [
        ("type", "dance"),
        ("after", "x"),
        ("after", "99"),
        ("instructions", ""),
    ] {
        let mut fields = vec![("instructions", "More."), ("type", "custom"), ("after", "")];
        fields.retain(|(field, _)| *field != name);
        fields.push((name, invalid));
        let rejected = browser.submit(&page, &to, &fields).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{name}={invalid}");
    }
    assert_eq!(titles(&server, &id).await.len(), 5);
}

#[tokio::test]
async fn moves_steps_by_one_or_to_any_position() {
    let server = program("pages-move").serve();
    let (id, steps) = create_plan(&server).await;
    let browser = Browser::new(&server);
    browser
        .get(&format!("/plans/{id}"))
        .await
        .assert_lacks("name=\"position\"");
    let page = format!("/plans/{id}?reorder=1");
    let response = browser.get(&page).await;
    let up_disabled = "value=\"0\" disabled><span aria-hidden=\"true\">↑";
    response.assert_contains(up_disabled);
    let to = format!("/plans/{id}/steps/{}/move", steps[0]);
    let redirect = browser.submit(&page, &to, &[("position", "2")]).await;
    let back = format!("/plans/{id}?reorder=1&after=0#step-{}", steps[0]);
    assert_eq!(redirect.location, back);
    assert_eq!(titles(&server, &id).await, ["Compare", "Offers", "Write"]);
    let page = format!("/plans/{id}/steps/{}", steps[2]);
    let to = format!("{page}/move");
    let redirect = browser
        .submit(&page, &to, &[("position", "1"), ("back", "step")])
        .await;
    assert_eq!(redirect.location, format!("{page}?done=moved"));
    assert_eq!(titles(&server, &id).await, ["Write", "Compare", "Offers"]);
    let rejected = browser.submit(&page, &to, &[("position", "first")]).await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn viewers_see_no_buttons_and_blocked_buttons_have_a_reason() {
    let setup = program("pages-arrange-roles").with_config("[access]\nrequire_tokens = true");
    let owner = setup.token("local", "boss", "owner");
    let viewer = setup.token("local", "eve", "viewer");
    let server = setup.serve();
    let created = plan("Boats", &["Offers", "Write"]);
    let created = server
        .post_as(&owner, "/api/v1/plans", created)
        .await
        .expect_success();
    let (id, step) = (
        text(&created, "planId"),
        text(&created["firstStep"], "stepId"),
    );
    let eve = Browser::signed_in(&server, &viewer).await;
    let response = eve.get(&format!("/plans/{id}")).await;
    response.assert_lacks("action=\"/plans/");
    for control in ["id=\"add\"", "reorder=1", "id=\"cancel\""] {
        response.assert_lacks(control);
    }
    response.assert_contains("id=\"read-only\"");
    let step_page = eve.get(&format!("/plans/{id}/steps/{step}")).await;
    step_page.assert_lacks("action=\"/plans/");
    for control in [
        "id=\"fail\"",
        "id=\"move\"",
        "id=\"instruct\"",
        "<button disabled",
    ] {
        step_page.assert_lacks(control);
    }
    step_page.assert_contains("id=\"read-only\"");
    let csrf_token = response.csrf_token();
    for to in [
        format!("/plans/{id}/steps"),
        format!("/plans/{id}/steps/{step}/move"),
    ] {
        let fields = [
            ("csrf_token", csrf_token.as_str()),
            ("position", "2"),
            ("type", "custom"),
            ("instructions", "More."),
        ];
        let rejected = eve.post(&to, &fields).await;
        assert_eq!(rejected.status, StatusCode::FORBIDDEN, "{to}");
        let without_token = eve.post(&to, &fields[1..]).await;
        assert_eq!(without_token.status, StatusCode::FORBIDDEN, "{to}");
        without_token.assert_contains("data-code=\"forbidden\"");
    }
    let boss = Browser::signed_in(&server, &owner).await;
    let at = format!("/api/v1/plans/{id}/abandon");
    server
        .post_as(&owner, &at, json!({}))
        .await
        .expect_success();
    let finished = boss.get(&format!("/plans/{id}?tab=about")).await;
    finished
        .assert_contains("<button disabled aria-describedby=\"modify-blocked\">Add step…</button>");
    let finished = boss.get(&format!("/plans/{id}?view=table")).await;
    finished.assert_contains(
        "<button disabled aria-describedby=\"reorder-blocked\">Reorder steps</button>",
    );
    let finished = boss.get(&format!("/plans/{id}/steps/{step}")).await;
    finished.assert_contains("<button disabled aria-describedby=\"blocked\">Move…</button>");
    finished.assert_contains("id=\"blocked\"");
}

//! Steps that people add and move; and what they may not, or cannot any more.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::browser::{Browser, plan, text};
use crate::house::{House, Server};

async fn made(server: &Server) -> (String, Vec<String>) {
    let made = plan("Boats", &["Offers", "Compare", "Write"]);
    let made = server.post("/api/v1/plans", made).await.done();
    let steps = made["steps"].as_array().unwrap().iter();
    let steps = steps.map(|step| text(step, "stepId")).collect();
    (text(&made, "planId"), steps)
}

async fn titles(server: &Server, plan: &str) -> Vec<String> {
    let listed = server.get(&format!("/api/v1/plans/{plan}/steps")).await;
    let listed = listed.done();
    let steps = listed["steps"].as_array().unwrap().iter();
    let title = |step: &Value| step["title"].as_str().unwrap_or("–").to_owned();
    steps.map(title).collect()
}

#[tokio::test]
async fn a_step_is_added_where_one_says() {
    let server = House::new("pages-add").serve();
    let (id, _) = made(&server).await;
    let browser = Browser::at(&server);
    let (page, to) = (format!("/plans/{id}"), format!("/plans/{id}/steps"));
    let fields = [
        ("instructions", "Ask the yard.\r\nBoth of them."),
        ("title", "Ask"),
        ("type", "search"),
        ("after", "1"),
    ];
    let led = browser.fill(&page, &to, &fields).await;
    assert_eq!(led.to, format!("{page}?done=added"));
    browser.get(&led.to).await.shows("The step was added.");
    let fields = [("instructions", "Last."), ("type", "custom"), ("after", "")];
    browser.fill(&page, &to, &fields).await;
    assert_eq!(
        titles(&server, &id).await,
        ["Offers", "Ask", "Compare", "Write", "–"]
    );
    for (name, wrong) in [
        ("type", "dance"),
        ("after", "x"),
        ("after", "99"),
        ("instructions", ""),
    ] {
        let mut fields = vec![("instructions", "More."), ("type", "custom"), ("after", "")];
        fields.retain(|(field, _)| *field != name);
        fields.push((name, wrong));
        let refused = browser.fill(&page, &to, &fields).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{name}={wrong}");
    }
    assert_eq!(titles(&server, &id).await.len(), 5);
}

#[tokio::test]
async fn steps_are_moved_one_place_at_a_time_or_far() {
    let server = House::new("pages-move").serve();
    let (id, steps) = made(&server).await;
    let browser = Browser::at(&server);
    browser
        .get(&format!("/plans/{id}"))
        .await
        .hides("Move step 1 down");
    let page = format!("/plans/{id}?arrange=1");
    let seen = browser.get(&page).await;
    let up = "value=\"0\" disabled><span aria-hidden=\"true\">↑";
    seen.shows(up);
    let to = format!("/plans/{id}/steps/{}/move", steps[0]);
    let led = browser.fill(&page, &to, &[("place", "2")]).await;
    let back = format!("/plans/{id}?arrange=1&behind=0#step-{}", steps[0]);
    assert_eq!(led.to, back);
    assert_eq!(titles(&server, &id).await, ["Compare", "Offers", "Write"]);
    let page = format!("/plans/{id}/steps/{}", steps[2]);
    let to = format!("{page}/move");
    let led = browser
        .fill(&page, &to, &[("place", "1"), ("back", "step")])
        .await;
    assert_eq!(led.to, format!("{page}?done=moved"));
    assert_eq!(titles(&server, &id).await, ["Write", "Compare", "Offers"]);
    let refused = browser.fill(&page, &to, &[("place", "first")]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_reader_has_no_buttons_and_what_cannot_be_done_says_why() {
    let house = House::new("pages-arrange-roles").configured("[access]\nrequire_tokens = true");
    let owner = house.token("local", "boss", "owner");
    let viewer = house.token("local", "eve", "viewer");
    let server = house.serve();
    let made = plan("Boats", &["Offers", "Write"]);
    let made = server.post_as(&owner, "/api/v1/plans", made).await.done();
    let (id, step) = (text(&made, "planId"), text(&made["firstStep"], "stepId"));
    let eve = Browser::signed_in(&server, &viewer).await;
    let seen = eve.get(&format!("/plans/{id}")).await;
    seen.hides("action=\"/plans/");
    for button in ["Add a step", "Change the order", "Abandon the plan"] {
        seen.hides(button);
    }
    seen.shows("the role viewer may not intervene in plans");
    let alone = eve.get(&format!("/plans/{id}/steps/{step}")).await;
    alone.hides("action=\"/plans/");
    for button in [
        "Hand out again",
        "Fail the step",
        "Move it",
        "Change the instructions",
    ] {
        alone.hides(button);
    }
    alone.shows("the role viewer may not intervene in plans");
    let mark = seen.mark();
    for to in [
        format!("/plans/{id}/steps"),
        format!("/plans/{id}/steps/{step}/move"),
    ] {
        let fields = [
            ("mark", mark.as_str()),
            ("place", "2"),
            ("type", "custom"),
            ("instructions", "More."),
        ];
        let refused = eve.post(&to, &fields).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{to}");
        let unmarked = eve.post(&to, &fields[1..]).await;
        assert_eq!(unmarked.status, StatusCode::FORBIDDEN, "{to}");
        unmarked.shows("not from a page of this server");
    }
    let boss = Browser::signed_in(&server, &owner).await;
    let at = format!("/api/v1/plans/{id}/abandon");
    server.post_as(&owner, &at, json!({})).await.done();
    let over = boss.get(&format!("/plans/{id}")).await;
    over.shows("<button disabled aria-describedby=\"why-not-modify\">Add a step…</button>");
    over.shows("<button disabled aria-describedby=\"why-not-modify\">Change the order</button>");
    let over = boss.get(&format!("/plans/{id}/steps/{step}")).await;
    over.shows("aria-describedby=\"why-not\">Move it…</button>");
    over.shows("the plan is failed");
}
